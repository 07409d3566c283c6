//! Unix sockets with abstract names: they live nowhere in the file system and vanish with their
//! process.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

/// Random bytes from the kernel.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut out = [0; N];
    let mut at = 0;
    while at < N {
        at += rustix::rand::getrandom(&mut out[at..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(out)
}

/// A listening socket of packets (SOCK_SEQPACKET) under an abstract name.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A connection of packets: each send arrives whole.
#[derive(Debug)]
pub struct Conn(OwnedFd);

fn socket(kind: SocketType) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

impl Listener {
    /// Listens under `name`.
    pub fn bind(name: &str, backlog: u32) -> io::Result<Listener> {
        let fd = socket(SocketType::SEQPACKET)?;
        rustix::net::bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        rustix::net::listen(&fd, backlog as i32)?;
        Ok(Listener(fd))
    }

    /// Takes the next connection, if one comes within `patience`.
    pub fn accept(&self, patience: Duration) -> io::Result<Conn> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(patience))?;
        let fd =
            rustix::io::retry_on_intr(|| rustix::net::accept_with(&self.0, SocketFlags::CLOEXEC))?;
        Ok(Conn(fd))
    }

    /// Takes the next connection, if one has been made.
    pub fn accept_connected(&self) -> io::Result<Option<Conn>> {
        match crate::fd::is_readable(&self.0) {
            true => self.accept(Duration::from_secs(1)).map(Some),
            false => Ok(None),
        }
    }
}

impl Conn {
    /// Connects to the listener of that name; waits for `patience` where its queue is full.
    pub fn connect(name: &str, patience: Duration) -> io::Result<Conn> {
        let fd = socket(SocketType::SEQPACKET)?;
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Send, Some(patience))?;
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
        rustix::io::retry_on_intr(|| rustix::net::connect(&fd, &address))?;
        Ok(Conn(fd))
    }

    /// How long a receive waits.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, Some(patience))?;
        Ok(())
    }

    /// Whether the other side runs as the same user. It may be in a container of its own: there its
    /// process has no number that is known here, which is not an error (unlike in rustix's
    /// `socket_peercred`).
    pub fn same_user(&self) -> io::Result<bool> {
        let mut cred = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the option's value is a `ucred`, and the kernel writes no more than `size` bytes.
        let done = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut cred).cast(),
                &raw mut size,
            )
        };
        match done {
            0 => Ok(cred.uid == rustix::process::geteuid().as_raw()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Sends one packet, with a file descriptor if one is given.
    pub fn send(&self, data: &[u8], fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        rustix::io::retry_on_intr(|| {
            rustix::net::sendmsg(
                &self.0,
                &[IoSlice::new(data)],
                &mut control,
                SendFlags::NOSIGNAL,
            )
        })?;
        Ok(())
    }

    /// Receives one packet of exactly `N` bytes, and a file descriptor if one came with it.
    pub fn recv<const N: usize>(&self) -> io::Result<([u8; N], Option<OwnedFd>)> {
        let mut data = [0; N];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = rustix::io::retry_on_intr(|| {
            rustix::net::recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut data)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        let mut fd = None;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                fd = fds.into_iter().next_back();
            }
        }
        if got.bytes != N {
            return Err(io::Error::other(format!(
                "a packet of {} bytes came, {N} were expected",
                got.bytes
            )));
        }
        Ok((data, fd))
    }
}

/// A datagram socket under a name the kernel chose, and that name's bytes.
pub fn datagram_bound() -> io::Result<(OwnedFd, Vec<u8>)> {
    let fd = socket(SocketType::DGRAM)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    let name = format!("kw-{}", hex(&random::<12>()?));
    rustix::net::bind(&fd, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok((fd, name.into_bytes()))
}

/// A datagram socket to send from.
pub fn datagram() -> io::Result<OwnedFd> {
    let fd = socket(SocketType::DGRAM)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

/// Sends one byte to the datagram socket of that abstract name; a full or vanished one is not an
/// error.
pub fn poke(from: BorrowedFd<'_>, name: &[u8]) {
    if let Ok(to) = SocketAddrUnix::new_abstract_name(name) {
        let _ = rustix::net::sendto(from, &[1], SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &to);
    }
}

/// Throws away all datagrams that are ready.
pub fn drain(fd: BorrowedFd<'_>) {
    let mut bytes = [0u8; 8];
    while rustix::net::recv(fd.as_fd(), &mut bytes[..], RecvFlags::DONTWAIT).is_ok() {}
}

/// Lower-case hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The bytes of a text written by [`hex`]; `None` if it is not the text of this many bytes.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}
