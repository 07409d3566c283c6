//! Datagram sockets: many datagrams to a system call (GSO, GRO, recvmmsg, by `quinn-udp`), and what the network complains of.

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Bytes of the longest datagram over IPv4.
pub const LONGEST: usize = 65_507;
/// Pieces of an [`Inbox`].
const PIECES: usize = 8;
/// Bytes of a piece: the kernel joins datagrams up to this.
const PIECE: usize = 64 << 10;

/// A datagram socket, bound to one address, that never blocks.
#[derive(Debug)]
pub struct Sock {
    socket: UdpSocket,
    state: UdpSocketState,
    at: SocketAddr,
}

impl AsFd for Sock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Several datagrams of one sender that came together.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The sender.
    pub from: SocketAddr,
    /// The datagrams, one behind the other.
    pub bytes: &'a [u8],
    /// Bytes of each but the last.
    pub size: usize,
    /// The network says that a queue is filling (ECN: congestion experienced).
    pub marked: bool,
}

/// Memory for what comes.
pub struct Inbox {
    memory: Box<[u8]>,
    metas: [RecvMeta; PIECES],
    count: usize,
    /// Pieces that the next call offers: one, unless the last call filled what it was offered; asking for more than there is costs time.
    offer: usize,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Inbox with {} batches", self.count)
    }
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox {
            memory: vec![0; PIECES * PIECE].into_boxed_slice(),
            metas: [RecvMeta::default(); PIECES],
            count: 0,
            offer: 1,
        }
    }
}

impl Inbox {
    /// What the last [`Sock::recv`] brought.
    pub fn batches(&self) -> impl Iterator<Item = Batch<'_>> {
        let pieces = self.memory.chunks_exact(PIECE).zip(&self.metas);
        pieces.take(self.count).map(|(bytes, meta)| Batch {
            from: meta.addr,
            bytes: &bytes[..meta.len],
            size: meta.stride.max(1),
            marked: meta.ecn == Some(EcnCodepoint::Ce),
        })
    }
}

/// What a kernel on the way answered to a datagram of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// Where the datagram was to go.
    pub to: SocketAddr,
    /// Nobody has the port open, says the host it was for; else something on the way did not let it through.
    pub refused: bool,
}

impl Sock {
    /// Binds to a port that the system chooses; asks for a receive buffer of so many bytes.
    pub fn bind(addr: IpAddr, buffer: usize) -> io::Result<Sock> {
        let socket = UdpSocket::bind(SocketAddr::new(addr, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        state.enable_transport_errors((&socket).into())?;
        sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
        let at = socket.local_addr()?;
        Ok(Sock { socket, state, at })
    }

    /// The address, with the port.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Bytes that may wait to be received; the kernel counts its own bookkeeping, so about half of it is payload.
    pub fn recv_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }

    /// Most datagrams of one call of [`Sock::send`].
    pub fn most(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends datagrams of `size` bytes each (the last may be shorter). `false`: the socket is full, nothing was sent. Other
    /// errors are those of a network that may lose anything: the datagrams count as sent.
    pub fn send(&self, to: SocketAddr, bytes: &[u8], size: usize, ecn: bool) -> bool {
        let transmit = Transmit {
            destination: to,
            ecn: ecn.then_some(EcnCodepoint::Ect0),
            contents: bytes,
            segment_size: (size < bytes.len()).then_some(size),
            src_ip: None,
        };
        let sent = self.state.try_send((&self.socket).into(), &transmit);
        !matches!(sent, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Receives what is there, as much as the inbox holds; says whether it is full, so that more may be there. `None`: nothing.
    /// An error is one that the network told of an earlier datagram; [`Sock::complaint`] says more.
    pub fn recv(&self, inbox: &mut Inbox) -> io::Result<Option<bool>> {
        inbox.count = 0;
        let mut pieces = inbox.memory.chunks_exact_mut(PIECE);
        let mut slices = [(); PIECES].map(|()| IoSliceMut::new(pieces.next().unwrap_or_default()));
        match self.state.recv(
            (&self.socket).into(),
            &mut slices[..inbox.offer],
            &mut inbox.metas,
        ) {
            Ok(n) => {
                inbox.count = n;
                inbox.offer = if n == inbox.offer { PIECES } else { 1 };
                Ok(Some(n == PIECES))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                inbox.offer = 1;
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// The next complaint.
    pub fn complaint(&self) -> Option<Complaint> {
        // SAFETY: all zeros is a valid address.
        let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut control = [0u64; 32];
        let mut byte = [0u8; 1];
        let mut piece = libc::iovec {
            iov_base: byte.as_mut_ptr().cast(),
            iov_len: byte.len(),
        };
        // SAFETY: all zeros is a valid message header.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of_val(&name) as _;
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the header points to memory of the sizes it names.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        if got < 0 {
            return None;
        }
        let to = address(&name)?;
        let error = extended_error(&message)?;
        let (host, port) = match error.ee_origin {
            libc::SO_EE_ORIGIN_ICMP => (3, 3),
            libc::SO_EE_ORIGIN_ICMP6 => (1, 4),
            _ => (0, 0),
        };
        let refused = error.ee_origin != 0 && (error.ee_type, error.ee_code) == (host, port);
        Some(Complaint { to, refused })
    }
}

/// The extended error among the control messages.
fn extended_error(message: &libc::msghdr) -> Option<libc::sock_extended_err> {
    // SAFETY: the header describes control messages that the kernel has written.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: the pointer is one that the macros of the C library gave for this message.
        let head = unsafe { &*next };
        let kind = (head.cmsg_level, head.cmsg_type);
        if matches!(
            kind,
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        ) {
            // SAFETY: such a message carries an extended error, perhaps not aligned.
            return Some(unsafe {
                libc::CMSG_DATA(next)
                    .cast::<libc::sock_extended_err>()
                    .read_unaligned()
            });
        }
        // SAFETY: as for the first.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}

fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let name: *const libc::sockaddr_storage = name;
    // SAFETY: a socket address begins with its family and is as long as its family says.
    unsafe {
        match (*name).ss_family as i32 {
            libc::AF_INET => {
                let a = name.cast::<libc::sockaddr_in>().read();
                let ip = std::net::Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(a.sin_port)))
            }
            libc::AF_INET6 => {
                let a = name.cast::<libc::sockaddr_in6>().read();
                let ip = std::net::Ipv6Addr::from(a.sin6_addr.s6_addr);
                Some(SocketAddr::new(ip.into(), u16::from_be(a.sin6_port)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::{Duration, Instant};

    fn local() -> Sock {
        Sock::bind(Ipv4Addr::LOCALHOST.into(), 1 << 20).expect("loopback")
    }

    fn until<T>(what: &str, mut turn: impl FnMut() -> Option<T>) -> T {
        let begin = Instant::now();
        loop {
            if let Some(t) = turn() {
                return t;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "stuck: {what}");
        }
    }

    #[test]
    fn many_datagrams_go_in_one_call_and_come_apart_again() {
        let (a, b) = (local(), local());
        let sent: Vec<u8> = (0..10_500u32).map(|i| i as u8).collect();
        assert!(a.send(b.at(), &sent, 1000, true));
        let (mut inbox, mut came) = (Inbox::default(), Vec::new());
        until("datagrams", || {
            if let Ok(Some(_)) = b.recv(&mut inbox) {
                for batch in inbox.batches() {
                    assert_eq!(batch.from, a.at());
                    came.extend(batch.bytes.chunks(batch.size).map(<[u8]>::to_vec));
                }
            }
            (came.len() == 11).then_some(())
        });
        assert_eq!(came.concat(), sent);
        assert!(b.recv(&mut inbox).expect("no error").is_none());
        assert_eq!(inbox.batches().count(), 0);
    }

    #[test]
    fn a_port_that_nobody_has_open_is_complained_of_by_its_host() {
        let (a, gone) = (local(), local().at());
        assert!(a.send(gone, b"anybody?", 1472, false));
        let complaint = until("complaint", || a.complaint());
        let want = Complaint {
            to: gone,
            refused: true,
        };
        assert_eq!(complaint, want);
    }
}
