//! Non-blocking TCP sockets that send from and receive into message buffers without a copy in between.
//!
//! A [`Sock`] is owned and used by the owner of the lane. Nothing here waits; "nothing now" is a value, not an error.

use crate::buf::Buf;
use crate::socket_option;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Most pieces of memory that one system call gathers or scatters.
const MAX_RUNS: usize = 64;
/// How much of a buffer in pieces one system call covers.
const RUN_WINDOW: u64 = 256 << 10;
/// How much of a buffer in pieces is looked at to judge the rest.
const PROBE: u64 = 16 << 10;
/// Pieces shorter than this on average are packed: the kernel's work for a piece exceeds a copy.
const SMALL_RUN: u64 = 512;
/// How much is packed for one system call.
const PACK_WINDOW: u64 = 64 << 10;

/// What a receive brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Got {
    /// So many bytes.
    Bytes(usize),
    /// Nothing has come.
    Nothing,
    /// The other side has closed.
    End,
}

/// Marks between pieces of what is sent.
#[derive(Clone, Copy, Debug)]
pub struct Cuts<'a> {
    /// What stands before each piece but the first.
    pub mark: &'a [u8],
    /// Bytes of a piece.
    pub every: u64,
    /// Where in the buffer the last one ends.
    pub end: u64,
}

impl Cuts<'_> {
    /// Only the first piece.
    pub const NONE: Cuts<'static> = Cuts {
        mark: &[],
        every: 0,
        end: 0,
    };
}

/// Progress of a connect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connect {
    /// Still on its way.
    Pending,
    /// There is a connection.
    Made,
}

/// A TCP socket, listening or connected.
#[derive(Debug)]
pub struct Sock {
    fd: OwnedFd,
    /// Bytes that must have come for a sleep on it to end.
    wakes_at: u32,
}

impl From<OwnedFd> for Sock {
    fn from(fd: OwnedFd) -> Sock {
        Sock { fd, wakes_at: 1 }
    }
}

impl AsFd for Sock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn socket(addr: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if addr.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        Some(ipproto::TCP),
    )?)
}

/// Within a machine nothing is congested, and a system whose default is BBR paces all the same: a timer between any two packets of a long
/// message. Reno does not, and every system has it. To be said before there is a connection (pacing stays when the control changes), also by
/// who listens: what is accepted has the same.
fn leave_unpaced(fd: &OwnedFd) {
    // A system that refuses goes on as it would have.
    let _ = sockopt::set_tcp_congestion(fd, "reno");
}

impl Sock {
    /// Listens on an address; port zero lets the system choose. A port that is named may have connections of an
    /// earlier job that the kernel still remembers, but no other listener. Returns the address with its port.
    pub fn listen(addr: SocketAddr) -> io::Result<(Sock, SocketAddr)> {
        let fd = socket(&addr)?;
        if addr.ip().is_loopback() {
            leave_unpaced(&fd);
        }
        if addr.is_ipv6() {
            sockopt::set_ipv6_v6only(&fd, true)?;
        }
        if addr.port() != 0 {
            sockopt::set_socket_reuseaddr(&fd, true)?;
        }
        net::bind(&fd, &addr)?;
        net::listen(&fd, 4096)?;
        let at = SocketAddr::try_from(net::getsockname(&fd)?)?;
        Ok((fd.into(), at))
    }

    /// The next connection that waits on a listening socket.
    pub fn accept(&self) -> io::Result<Option<Sock>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match net::accept_with(&self.fd, flags) {
            Ok(fd) => Sock::tuned(fd).map(Some),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Begins to connect, from an address of ours or from the one that the kernel chooses.
    pub fn connect(from: Option<IpAddr>, addr: SocketAddr) -> io::Result<Sock> {
        let fd = socket(&addr)?;
        if addr.ip().is_loopback() {
            leave_unpaced(&fd);
        }
        if let Some(from) = from {
            net::bind(&fd, &SocketAddr::new(from, 0))?;
        }
        match net::connect(&fd, &addr) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Sock::tuned(fd),
            Err(e) => Err(e.into()),
        }
    }

    fn tuned(fd: OwnedFd) -> io::Result<Sock> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        Ok(fd.into())
    }

    /// Our own end.
    pub fn here(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(&self.fd)?)?)
    }

    /// The other end.
    pub fn there(&self) -> io::Result<SocketAddr> {
        match net::getpeername(&self.fd)? {
            Some(addr) => Ok(SocketAddr::try_from(addr)?),
            None => Err(rustix::io::Errno::NOTCONN.into()),
        }
    }

    /// How the connect is getting on.
    pub fn connecting(&self) -> io::Result<Connect> {
        match sockopt::socket_error(&self.fd)? {
            Err(e) => Err(e.into()),
            Ok(()) => match net::getpeername(&self.fd) {
                Ok(_) => Ok(Connect::Made),
                Err(rustix::io::Errno::NOTCONN) => Ok(Connect::Pending),
                Err(e) => Err(e.into()),
            },
        }
    }

    /// Asks for send and receive buffers of a fixed size; turns the system's own tuning off.
    pub fn set_buffers(&self, bytes: usize) -> io::Result<()> {
        sockopt::set_socket_send_buffer_size(&self.fd, bytes)?;
        sockopt::set_socket_recv_buffer_size(&self.fd, bytes)?;
        Ok(())
    }

    /// Keeps what the kernel holds and has not sent yet below `bytes`: what is sent next need not wait behind more.
    pub fn limit_unsent(&self, bytes: u32) -> io::Result<()> {
        self.set_int(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
    }

    /// Has a sleep on this socket end only when so many bytes have come (or the connection ends, or the system has no room for
    /// so many). Receiving does not wait for them. A system that refuses goes on as before.
    pub fn wake_at(&mut self, bytes: u32) {
        let bytes = bytes.max(1);
        let set = || self.set_int(libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
        if bytes != self.wakes_at && set().is_ok() {
            self.wakes_at = bytes;
        }
    }

    /// Whether what is sent waits while the other side has not acknowledged a short packet, to go with what is sent next (Nagle's algorithm). What
    /// waits when this ends goes at once.
    pub fn set_joining(&self, joining: bool) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(&self.fd, !joining)?)
    }

    /// Has the system acknowledge now what was read.
    pub fn acknowledge(&self) {
        // A system that refuses acknowledges when it wants to, 40 ms later at most.
        let _ = sockopt::set_tcp_quickack(&self.fd, true);
    }

    /// Bytes that end a sleep on this socket.
    #[inline]
    pub fn wakes_at(&self) -> u32 {
        self.wakes_at
    }

    /// Has the system end the connection when the other side's kernel has not answered for `limit`: what was sent, or, after a silence
    /// of three quarters of that, whether it is still there. A process that is stopped or busy answers nothing itself, but its
    /// kernel does.
    pub fn watch(&self, limit: Duration) -> io::Result<()> {
        let seconds = limit.as_secs().max(4) as u32;
        self.set_int(libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
        self.set_int(libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds * 3 / 4)?;
        self.set_int(libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1)?;
        self.set_int(libc::IPPROTO_TCP, libc::TCP_KEEPCNT, seconds / 4)?;
        let millis = seconds * 1000;
        self.set_int(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis)
    }

    /// Bytes that were sent, and that the other side's kernel has not acknowledged; also of a connection that has ended.
    #[inline]
    pub fn unacknowledged(&self) -> io::Result<u32> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: SIOCOUTQ (the number of TIOCOUTQ) writes one int.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
        match done {
            0 => Ok(bytes.max(0) as u32),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Bytes that this side's kernel was given and has not sent yet.
    pub fn unsent(&self) -> io::Result<u32> {
        /// Number of the request (`linux/sockios.h`).
        const SIOCOUTQNSD: libc::Ioctl = 0x894b;
        let mut bytes: libc::c_int = 0;
        // SAFETY: SIOCOUTQNSD writes one int.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), SIOCOUTQNSD, &raw mut bytes) };
        match done {
            0 => Ok(bytes.max(0) as u32),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// How long the other side's kernel has answered nothing, as far as it counts: zero until what was sent was sent again twice. `None`: it has
    /// acknowledged everything that it was sent (what it has no room for was not), or the system does not say.
    pub fn unanswered(&self) -> Option<Duration> {
        // SAFETY: a tcp_info of zeros is one.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut len = size_of_val(&info) as libc::socklen_t;
        let (fd, level) = (self.fd.as_raw_fd(), libc::IPPROTO_TCP);
        // SAFETY: the pointer and length are those of `info`; the kernel writes no more than that.
        let done = unsafe {
            libc::getsockopt(
                fd,
                level,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut len,
            )
        };
        if done != 0 || info.tcpi_unacked == 0 {
            return None;
        }
        let again = info.tcpi_retransmits >= 2;
        let silent = if again { info.tcpi_last_ack_recv } else { 0 };
        Some(Duration::from_millis(silent.into()))
    }

    fn set_int(&self, level: libc::c_int, name: libc::c_int, value: u32) -> io::Result<()> {
        socket_option::set(&self.fd, level, name, value.try_into().unwrap_or(i32::MAX))
    }

    /// Whether the other end is this machine's loopback interface.
    pub fn is_loopback(&self) -> bool {
        let peer = net::getpeername(&self.fd)
            .ok()
            .flatten()
            .and_then(|a| SocketAddr::try_from(a).ok());
        peer.is_some_and(|a| a.ip().is_loopback())
    }

    /// Nothing more will be sent.
    pub fn shut_write(&self) {
        // A connection that is gone already needs no shutting.
        let _ = net::shutdown(&self.fd, net::Shutdown::Write);
    }

    /// Nothing more is sent or received.
    pub fn shut(&self) {
        // A connection that is gone already needs no shutting.
        let _ = net::shutdown(&self.fd, net::Shutdown::Both);
    }

    /// Sends what fits of `data`; zero when nothing does.
    #[inline]
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        // SAFETY: the pointer and length are those of a slice.
        let n = unsafe {
            libc::send(
                self.fd.as_raw_fd(),
                data.as_ptr().cast(),
                data.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        sent(n)
    }

    /// Sends what fits of `head` and then of bytes `from..from+len` of `buf`, gathered where they lie. A buffer in
    /// small pieces is packed first, a window at a time.
    pub fn send_with(&self, head: &[u8], buf: &Buf, from: u64, len: u64) -> io::Result<usize> {
        self.send_cut(head, buf, from, len, &Cuts::NONE)
    }

    /// As `send_with`, with pieces of memory between pieces of the buffer, where it lies in one: the first `len` bytes, then again and again the
    /// mark and as many bytes as `cuts` says, as long as one call allows.
    pub fn send_cut(
        &self,
        head: &[u8],
        buf: &Buf,
        from: u64,
        len: u64,
        cuts: &Cuts<'_>,
    ) -> io::Result<usize> {
        let mut runs = Runs::new();
        runs.push(head.as_ptr() as usize, head.len());
        if !runs.gather(buf, from, len) {
            return self.send_packed(head, buf, from, len);
        }
        let mut at = from + len;
        while buf.contiguous().is_some() && at < cuts.end && runs.len < MAX_RUNS {
            let piece = cuts.every.min(cuts.end - at);
            runs.push(cuts.mark.as_ptr() as usize, cuts.mark.len());
            runs.gather(buf, at, piece);
            at += piece;
        }
        // SAFETY: a zeroed msghdr is an empty one.
        let mut msg: libc::msghdr = unsafe { std::mem::zeroed() };
        msg.msg_iov = runs.as_mut_ptr();
        msg.msg_iovlen = runs.len as _;
        // SAFETY: the runs lie in `head`, in the mark and in memory that `Buf` vouches for; the kernel reads them only.
        let n = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &msg, libc::MSG_NOSIGNAL) };
        sent(n)
    }

    #[cold]
    fn send_packed(&self, head: &[u8], buf: &Buf, from: u64, len: u64) -> io::Result<usize> {
        let n = len.min(PACK_WINDOW) as usize;
        let mut packed = Vec::with_capacity(head.len() + n);
        packed.extend_from_slice(head);
        packed.resize(head.len() + n, 0);
        buf.read(from, &mut packed[head.len()..]);
        self.send(&packed)
    }

    /// Receives into a slice.
    #[inline]
    pub fn recv(&self, into: &mut [u8]) -> io::Result<Got> {
        // SAFETY: the pointer and length are those of a mutable slice.
        let n = unsafe { libc::recv(self.fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), 0) };
        got(n)
    }

    /// Receives into bytes `at..at+len` of `buf`, and what comes after those into `rest`. `None`: the buffer lies in small
    /// pieces, receive elsewhere and copy.
    pub fn recv_into(
        &self,
        buf: &Buf,
        at: u64,
        len: u64,
        rest: &mut [u8],
    ) -> Option<io::Result<Got>> {
        if rest.is_empty() {
            if let Some(base) = buf.contiguous() {
                let p = base.wrapping_add(at as usize) as *mut libc::c_void;
                // SAFETY: as below; the range lies in the buffer (checked by the caller's arithmetic, see `fits`).
                let n = unsafe { libc::recv(self.fd.as_raw_fd(), p, fits(buf, at, len), 0) };
                return Some(got(n));
            }
        }
        let mut runs = Runs::new();
        if !runs.gather(buf, at, len) {
            return None;
        }
        if runs.bytes as u64 == len {
            runs.push(rest.as_mut_ptr() as usize, rest.len());
        }
        // SAFETY: the runs lie in memory that `Buf` vouches for, given to us for writing by the protocol, and in `rest`.
        let n = unsafe { libc::readv(self.fd.as_raw_fd(), runs.as_mut_ptr(), runs.len as i32) };
        Some(got(n))
    }
}

fn fits(buf: &Buf, at: u64, len: u64) -> usize {
    len.min(buf.len().saturating_sub(at)) as usize
}

/// Whether a socket could not be made because too many files are open.
pub fn is_out_of_files(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[inline]
fn sent(n: isize) -> io::Result<usize> {
    if n >= 0 {
        return Ok(n as usize);
    }
    let e = io::Error::last_os_error();
    match e.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
        _ => Err(e),
    }
}

#[inline]
fn got(n: isize) -> io::Result<Got> {
    match n {
        1.. => Ok(Got::Bytes(n as usize)),
        0 => Ok(Got::End),
        _ => {
            let e = io::Error::last_os_error();
            match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Got::Nothing),
                _ => Err(e),
            }
        }
    }
}

/// Pieces of memory for one system call, on the stack.
struct Runs {
    list: [MaybeUninit<libc::iovec>; MAX_RUNS + 2],
    len: usize,
    bytes: usize,
}

impl Runs {
    fn new() -> Runs {
        Runs {
            list: [const { MaybeUninit::uninit() }; MAX_RUNS + 2],
            len: 0,
            bytes: 0,
        }
    }

    fn push(&mut self, at: usize, len: usize) {
        self.list[self.len].write(libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: len,
        });
        self.len += 1;
        self.bytes += len;
    }

    /// Adds a range of a buffer; of one that lies in pieces only so much as there is room for. `false`, and nothing added,
    /// when the pieces are so small that copying is cheaper.
    fn gather(&mut self, buf: &Buf, from: u64, len: u64) -> bool {
        if let Some(base) = buf.contiguous() {
            self.push(base.wrapping_add(from as usize), fits(buf, from, len));
            return true;
        }
        let mut pieces = 0;
        let probe = len.min(PROBE);
        buf.runs(from, probe, &mut |_, _| pieces += 1);
        if probe / pieces.max(1) < SMALL_RUN {
            return false;
        }
        let room = self.len + MAX_RUNS;
        buf.runs(from, len.min(RUN_WINDOW), &mut |p, n| {
            if self.len < room {
                self.push(p, n);
            }
        });
        true
    }

    fn as_mut_ptr(&mut self) -> *mut libc::iovec {
        self.list.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Two ends of a connection, both non-blocking.
    fn pair() -> (Sock, Sock) {
        let (l, at) = Sock::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let a = Sock::connect(None, at).unwrap();
        let b = loop {
            if let Some(b) = l.accept().unwrap() {
                break b;
            }
        };
        while a.connecting().unwrap() == Connect::Pending {}
        (a, b)
    }

    #[test]
    fn a_header_and_a_payload_travel_in_one_call_and_land_in_place() {
        let (a, b) = pair();
        let from = Buf::alloc(1000);
        from.write(0, &[5; 1000]);
        assert_eq!(a.send_with(b"head", &from, 10, 900).unwrap(), 904);
        let mut head = [0; 4];
        while b.recv(&mut head).unwrap() == Got::Nothing {}
        assert_eq!(&head, b"head");
        let (to, mut rest) = (Buf::alloc(900), [0; 8]);
        let got = b.recv_into(&to, 0, 900, &mut rest).unwrap().unwrap();
        assert_eq!(got, Got::Bytes(900));
        let mut bytes = [0; 900];
        to.read(0, &mut bytes);
        assert_eq!(bytes, [5; 900]);
        drop(a);
        while b.recv(&mut head).unwrap() == Got::Nothing {}
        assert_eq!(b.recv(&mut head).unwrap(), Got::End);
    }

    /// Two ends that have answered each other for a while, as a rule: acknowledgements ride on answers.
    fn talked() -> (Sock, Sock) {
        let (a, b) = pair();
        let mut byte = [0];
        for _ in 0..40 {
            for (from, to) in [(&a, &b), (&b, &a)] {
                assert_eq!(from.send(&[1]).unwrap(), 1);
                while to.recv(&mut byte).unwrap() == Got::Nothing {}
            }
        }
        (a, b)
    }

    /// The first of two short packets is read; whether the second came with it or waits, and whether it is there after `then`.
    fn joined(a: &Sock, b: &Sock, then: impl Fn()) -> (bool, bool) {
        a.set_joining(true).unwrap();
        let mut bytes = [0; 8];
        a.send(&[1]).unwrap();
        while b.recv(&mut bytes[..1]).unwrap() == Got::Nothing {}
        a.send(&[2]).unwrap();
        let waits = b.recv(&mut bytes).unwrap() == Got::Nothing;
        then();
        let comes = b.recv(&mut bytes).unwrap() == Got::Bytes(1);
        a.set_joining(false).unwrap();
        (waits, comes)
    }

    #[test]
    fn what_waits_to_be_joined_goes_when_what_was_read_is_acknowledged_or_joining_ends() {
        // Each may come a little later, or for another reason; not every time.
        let (mut acknowledged, mut ended) = (false, false);
        for _ in 0..50 {
            let (a, b) = talked();
            acknowledged |= joined(&a, &b, || b.acknowledge()) == (true, true);
            let (a, b) = talked();
            ended |= joined(&a, &b, || a.set_joining(false).unwrap()) == (true, true);
        }
        assert!(acknowledged && ended);
    }

    #[test]
    fn within_a_machine_neither_end_is_paced() {
        let (a, b) = pair();
        for end in [&a, &b] {
            assert_eq!(sockopt::tcp_congestion(end).unwrap(), "reno");
        }
    }

    #[test]
    fn a_refused_connect_says_so() {
        let (l, at) = Sock::listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        drop(l);
        let outcome = Sock::connect(None, at).and_then(|s| {
            loop {
                if s.connecting()? == Connect::Made {
                    return Ok(());
                }
            }
        });
        assert_eq!(
            outcome.unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );
    }
}
