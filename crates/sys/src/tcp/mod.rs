//! Non-blocking TCP sockets that send from and receive into message buffers without a copy in
//! between.
//!
//! A [`Sock`] is owned and used by the owner of the lock. Nothing here waits; "nothing now" is a
//! value, not an error. System calls go through `rustix`; through `libc` only if that has no such
//! call: memory that a [`Buf`] names by address, and information that Linux alone gives of a
//! connection.

use crate::buf::{Buf, HELD_BY_CALL};
use crate::socket_option;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

mod runs;

use runs::{Runs, fits};

/// Bytes that are packed for one system call.
const PACK_WINDOW: u64 = 64 << 10;

/// Result of a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Got {
    /// Number of bytes.
    Bytes(usize),
    /// Nothing has come.
    Nothing,
    /// The other side has closed.
    End,
}

/// Marks between pieces of the data that is sent.
#[derive(Clone, Copy, Debug)]
pub struct Cuts<'a> {
    /// Prefix of each piece but the first.
    pub mark: &'a [u8],
    /// Bytes of a piece.
    pub every: u64,
    /// End of the last piece in the buffer.
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
    /// The other end of a connection.
    there: Option<SocketAddr>,
    /// Bytes that must have come for a sleep on it to end.
    wakes_at: u32,
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

/// Within a machine there is no congestion, but a system whose default is BBR paces anyway: with a
/// timer between any two packets of a long message. Reno does not, and every system has it. It must
/// be set before there is a connection (pacing stays when the control changes), also on the
/// listening socket: accepted connections inherit it.
fn leave_unpaced(fd: &OwnedFd) {
    // A system that refuses goes on as it would have.
    let _ = sockopt::set_tcp_congestion(fd, "reno");
}

/// The system's measurements of a connection (TCP_INFO).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The shortest time until something was acknowledged.
    pub round_trip: Duration,
    /// Bytes per second that were acknowledged last, if the network and not the sender limited
    /// them.
    pub rate: Option<u64>,
}

impl Sock {
    /// Listens on an address; port zero lets the system choose. A port that is named may have
    /// connections of an earlier job that the kernel still remembers, but no other listener.
    /// Returns the address with its port.
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
        Ok((Sock::new(fd, None), at))
    }

    /// The next connection that waits on a listening socket.
    pub fn accept(&self) -> io::Result<Option<Sock>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match net::acceptfrom_with(&self.fd, flags) {
            Ok((fd, there)) => {
                let there = there.map(SocketAddr::try_from).transpose()?;
                Sock::tuned(fd, there).map(Some)
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Starts to connect, from a local address or from one that the kernel chooses.
    pub fn connect(from: Option<IpAddr>, addr: SocketAddr) -> io::Result<Sock> {
        let fd = socket(&addr)?;
        if addr.ip().is_loopback() {
            leave_unpaced(&fd);
        }
        if let Some(from) = from {
            net::bind(&fd, &SocketAddr::new(from, 0))?;
        }
        match net::connect(&fd, &addr) {
            Ok(()) | Err(Errno::INPROGRESS) => Sock::tuned(fd, Some(addr)),
            Err(e) => Err(e.into()),
        }
    }

    fn new(fd: OwnedFd, there: Option<SocketAddr>) -> Sock {
        let wakes_at = 1;
        Sock {
            fd,
            there,
            wakes_at,
        }
    }

    fn tuned(fd: OwnedFd, there: Option<SocketAddr>) -> io::Result<Sock> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        Ok(Sock::new(fd, there))
    }

    /// Our own end.
    pub fn here(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::try_from(net::getsockname(&self.fd)?)?)
    }

    /// Both ends of a connection, ours first; also for one that was reset, whose other end the
    /// system does not know any more.
    pub fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.here().ok().zip(self.there)
    }

    /// Progress of the connect.
    pub fn connecting(&self) -> io::Result<Connect> {
        match sockopt::socket_error(&self.fd)? {
            Err(e) => Err(e.into()),
            Ok(()) => match net::getpeername(&self.fd) {
                Ok(_) => Ok(Connect::Made),
                Err(Errno::NOTCONN) => Ok(Connect::Pending),
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

    /// Keeps the unsent bytes in the kernel below `bytes`: data that is sent next need not wait
    /// behind more.
    pub fn limit_unsent(&self, bytes: u32) -> io::Result<()> {
        self.set_int(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
    }

    /// Makes a sleep on this socket end only when this many bytes have arrived (or the connection
    /// ends, or the system has no room for them). Receiving does not wait for them. Without the
    /// system's support nothing changes.
    pub fn wake_at(&mut self, bytes: u32) {
        let bytes = bytes.max(1);
        let set = || self.set_int(libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
        if bytes != self.wakes_at && set().is_ok() {
            self.wakes_at = bytes;
        }
    }

    /// Whether sent data waits while the other side has not acknowledged a short packet, to go with
    /// the next data (Nagle's algorithm). Turning it off sends waiting data at once.
    pub fn set_coalescing(&self, coalescing: bool) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(&self.fd, !coalescing)?)
    }

    /// Makes the system acknowledge now the data that was read.
    pub fn acknowledge(&self) {
        // A system that refuses acknowledges when it wants to, 40 ms later at most.
        let _ = sockopt::set_tcp_quickack(&self.fd, true);
    }

    /// Bytes that end a sleep on this socket.
    #[inline]
    pub fn wakes_at(&self) -> u32 {
        self.wakes_at
    }

    /// Makes the system end the connection when the other side's kernel has not answered for
    /// `limit`: sent data, or, after a silence of three quarters of that, a probe. A process that
    /// is stopped or busy answers nothing itself, but its kernel does.
    pub fn watch(&self, limit: Duration) -> io::Result<()> {
        let seconds = limit.as_secs().max(4);
        sockopt::set_socket_keepalive(&self.fd, true)?;
        sockopt::set_tcp_keepidle(&self.fd, Duration::from_secs(seconds * 3 / 4))?;
        sockopt::set_tcp_keepintvl(&self.fd, Duration::from_secs(1))?;
        sockopt::set_tcp_keepcnt(&self.fd, seconds as u32 / 4)?;
        let millis = seconds as u32 * 1000;
        Ok(sockopt::set_tcp_user_timeout(&self.fd, millis)?)
    }

    /// Bytes that were sent, and that the other side's kernel has not acknowledged; also for a
    /// connection that has ended.
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

    /// How long the other side's kernel has answered nothing, as far as it counts: zero until sent
    /// data was sent again twice. `None`: it has acknowledged everything that it was sent (data
    /// that it has no room for was not), or the system does not tell.
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

    /// The system's measurements of the connection.
    pub fn measured(&self) -> Option<Measured> {
        // Like `struct tcp_info` of <linux/tcp.h>, of which libc declares only the beginning.
        const LIMITED: usize = 7;
        const SMOOTHED: usize = 68;
        const LEAST: usize = 148;
        const RATE: usize = 160;
        let mut info = [0u8; 168];
        let mut len = info.len() as libc::socklen_t;
        let (fd, level) = (self.fd.as_raw_fd(), libc::IPPROTO_TCP);
        // SAFETY: the pointer and length are those of `info`; the kernel writes no more than that.
        let done = unsafe {
            let info = info.as_mut_ptr().cast();
            libc::getsockopt(fd, level, libc::TCP_INFO, info, &raw mut len)
        };
        if done != 0 {
            return None;
        }
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|i| info[at + i]));
        // An older kernel writes less, and leaves zeros.
        let round_trip = [word(LEAST), word(SMOOTHED)];
        let round_trip = round_trip.into_iter().find(|t| *t != 0)?;
        let rate: [u8; 8] = std::array::from_fn(|i| info[RATE + i]);
        let rate = u64::from_ne_bytes(rate);
        Some(Measured {
            round_trip: Duration::from_micros(round_trip.into()),
            rate: (rate != 0 && info[LIMITED] & 1 == 0).then_some(rate),
        })
    }

    fn set_int(&self, level: libc::c_int, name: libc::c_int, value: u32) -> io::Result<()> {
        socket_option::set(&self.fd, level, name, value.try_into().unwrap_or(i32::MAX))
    }

    /// Whether the other end is this machine's loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.there.is_some_and(|a| a.ip().is_loopback())
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

    /// Sends as much of `data` as fits; zero if nothing does.
    #[inline]
    pub fn send(&self, data: &[u8]) -> io::Result<usize> {
        match net::send(&self.fd, data, SendFlags::NOSIGNAL) {
            Ok(n) => Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// Sends as much as fits of `head` and then of bytes `from..from+len` of `buf`, gathered where
    /// they are; a buffer in small pieces is packed first, a window at a time. If the buffer is in
    /// one piece, the mark and as many bytes as `cuts` says follow, again and again, as long as one
    /// call allows.
    pub fn send_cut(
        &self,
        head: &[u8],
        buf: &Buf,
        from: u64,
        len: u64,
        cuts: &Cuts<'_>,
    ) -> io::Result<usize> {
        if buf.is_moving() {
            return self.send_held(head, buf, from, len);
        }
        let mut runs = Runs::new();
        runs.push(head.as_ptr() as usize, head.len());
        if !runs.gather(buf, from, len) {
            return self.send_packed(head, buf, from, len);
        }
        let mut at = from + len;
        while buf.contiguous().is_some() && at < cuts.end && !runs.is_full() {
            let piece = cuts.every.min(cuts.end - at);
            runs.push(cuts.mark.as_ptr() as usize, cuts.mark.len());
            runs.gather(buf, at, piece);
            at += piece;
        }
        // SAFETY: a zeroed msghdr is an empty one.
        let mut msg: libc::msghdr = unsafe { std::mem::zeroed() };
        msg.msg_iov = runs.as_mut_ptr();
        msg.msg_iovlen = runs.len() as _;
        // SAFETY: the runs lie in `head`, in the mark and in memory that `Buf` vouches for; the
        // kernel reads them only.
        let n = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &msg, libc::MSG_NOSIGNAL) };
        sent(n)
    }

    /// [`Sock::send_cut`] of memory that moves, which is held for one system call at a time.
    #[cold]
    fn send_held(&self, head: &[u8], buf: &Buf, from: u64, len: u64) -> io::Result<usize> {
        let (mut done, mut sent, mut head) = (0, 0, head);
        loop {
            let some = HELD_BY_CALL.min(len - done);
            let now = self.send_cut(head, &buf.fixed(), from + done, some, &Cuts::NONE);
            let Ok(n) = now else {
                // The next call has the error again.
                return if sent > 0 { Ok(sent) } else { now };
            };
            (sent, done) = (sent + n, done + some);
            if n < head.len() + some as usize || done == len {
                return Ok(sent);
            }
            head = &[];
        }
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

    /// [`Sock::recv_into`] memory that moves, which is held for one system call at a time.
    #[cold]
    fn recv_held(&self, buf: &Buf, at: u64, len: u64, rest: &mut [u8]) -> io::Result<Got> {
        let mut done = 0;
        loop {
            let some = HELD_BY_CALL.min(len - done);
            let tail = if done + some == len {
                &mut rest[..]
            } else {
                &mut []
            };
            let fixed = buf.fixed();
            match self.recv_into(&fixed, at + done, some, tail) {
                Some(Ok(Got::Bytes(n))) => {
                    done += n as u64;
                    if (n as u64) < some || done >= len {
                        return Ok(Got::Bytes(done as usize));
                    }
                }
                // The next call has it again.
                _ if done > 0 => return Ok(Got::Bytes(done as usize)),
                other => return other.unwrap_or(Ok(Got::Nothing)),
            }
        }
    }

    /// Receives into a slice.
    #[inline]
    pub fn recv(&self, into: &mut [u8]) -> io::Result<Got> {
        match net::recv(&self.fd, into, RecvFlags::empty()) {
            Ok((0, _)) => Ok(Got::End),
            Ok((n, _)) => Ok(Got::Bytes(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Got::Nothing),
            Err(e) => Err(e.into()),
        }
    }

    /// Receives into bytes `at..at+len` of `buf`, and the data after those into `rest`. `None`: the
    /// buffer is in small pieces, receive elsewhere and copy.
    pub fn recv_into(
        &self,
        buf: &Buf,
        at: u64,
        len: u64,
        rest: &mut [u8],
    ) -> Option<io::Result<Got>> {
        if buf.is_moving() {
            return Some(self.recv_held(buf, at, len, rest));
        }
        if rest.is_empty() {
            if let Some(base) = buf.contiguous() {
                let p = base.wrapping_add(at as usize) as *mut libc::c_void;
                // SAFETY: the range lies in the buffer (checked by the caller's arithmetic, see
                // `fits`), whose memory `Buf` vouches for and the protocol gives us for writing.
                let n = unsafe { libc::recv(self.fd.as_raw_fd(), p, fits(buf, at, len), 0) };
                return Some(got(n));
            }
        }
        let mut runs = Runs::new();
        if !runs.gather(buf, at, len) {
            return None;
        }
        if runs.bytes() as u64 == len {
            runs.push(rest.as_mut_ptr() as usize, rest.len());
        }
        // SAFETY: the runs lie in memory that `Buf` vouches for, given to us for writing by the
        // protocol, and in `rest`.
        let n = unsafe { libc::readv(self.fd.as_raw_fd(), runs.as_mut_ptr(), runs.len() as i32) };
        Some(got(n))
    }
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

#[cfg(test)]
mod tests;
