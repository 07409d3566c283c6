//! Datagram sockets: many datagrams to a system call (GSO, GRO: udp(7)), and errors that the
//! network reports.
//!
//! A socket requests nothing that is not used: every control message that the kernel adds to a
//! datagram costs time. Control messages and their lengths are those of `libc`, because `rustix`
//! defines none of these. The crate quinn-udp is not used: it does not read the error queue, which
//! reports at once that no process listens at an address, and makes the kernel add the destination
//! address of each datagram.

use crate::socket_option;
use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Bytes of the longest datagram over IPv4.
pub const LONGEST: usize = 65_507;
/// Bytes of an [`Inbox`]: the kernel joins datagrams up to this.
const JOINED: usize = 64 << 10;
/// Most datagrams of one call (`UDP_MAX_SEGMENTS` of older kernels).
const SEGMENTS: usize = 64;
/// ECN bits of the type of service (RFC 3168, 5): the network may mark; it has marked.
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// A datagram socket, bound to one address, that never blocks.
#[derive(Debug)]
pub struct Sock {
    socket: UdpSocket,
    at: SocketAddr,
    /// Datagrams of one call; 1 if the kernel or the device does not segment (GSO).
    most: Cell<usize>,
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
    /// The network reports that a queue is filling (ECN: congestion experienced).
    pub marked: bool,
}

/// Memory for incoming datagrams.
pub struct Inbox(Box<[u8]>);

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inbox")
    }
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox(vec![0; JOINED].into_boxed_slice())
    }
}

/// Room for control messages, aligned as they must be.
type Control = [u64; 16];

/// An ICMP answer to one of this rank's datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// Destination of the datagram.
    pub to: SocketAddr,
    /// The destination host reports a closed port; otherwise a device on the way rejected it.
    pub refused: bool,
}

impl Sock {
    /// Binds to an address; port zero lets the system choose. Requests a receive buffer of this
    /// many bytes. `ecn`: the network may mark datagrams instead of dropping them.
    pub fn bind(at: SocketAddr, buffer: usize, ecn: bool) -> io::Result<Sock> {
        let socket = UdpSocket::bind(at)?;
        socket.set_nonblocking(true)?;
        sockopt::set_socket_recv_buffer_size(&socket, buffer)?;
        let at = socket.local_addr()?;
        let sock = Sock {
            socket,
            at,
            most: Cell::new(SEGMENTS),
        };
        sock.set_options(ecn)?;
        Ok(sock)
    }

    /// Options: errors, marks, no fragments, joined datagrams.
    fn set_options(&self, ecn: bool) -> io::Result<()> {
        let tos = if ecn { ECT_0 as i32 } else { 0 };
        let (level, complaints, marks, class, fragments, none) = match self.at {
            SocketAddr::V4(_) => (
                libc::IPPROTO_IP,
                libc::IP_RECVERR,
                libc::IP_RECVTOS,
                libc::IP_TOS,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_PROBE,
            ),
            SocketAddr::V6(_) => (
                libc::IPPROTO_IPV6,
                libc::IPV6_RECVERR,
                libc::IPV6_RECVTCLASS,
                libc::IPV6_TCLASS,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_PROBE,
            ),
        };
        for (name, value) in [(complaints, 1), (marks, 1), (class, tos), (fragments, none)] {
            self.set(level, name, value)?;
        }
        // A kernel that joins nothing hands over one datagram at a time.
        let _ = self.set(libc::SOL_UDP, libc::UDP_GRO, 1);
        Ok(())
    }

    fn set(&self, level: i32, name: i32, value: i32) -> io::Result<()> {
        socket_option::set(&self.socket, level, name, value)
    }

    /// The address, with the port.
    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// Bytes that may wait to be received; the kernel counts its own bookkeeping, so about half of
    /// it is payload.
    pub fn recv_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }

    /// Most datagrams of one call of [`Sock::send`].
    pub fn most(&self) -> usize {
        self.most.get()
    }

    /// Sends datagrams of `size` bytes each (the last may be shorter). `false`: the socket is full,
    /// nothing was sent. Other errors are those of a network that may lose anything: the datagrams
    /// count as sent.
    pub fn send(&self, to: SocketAddr, bytes: &[u8], size: usize) -> bool {
        let train = bytes.len() > size;
        if !train || self.most.get() > 1 {
            match self.send_train(to, bytes, size) {
                Ok(()) => return true,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                // A device that does not sum, or a kernel before 4.18, does not segment (udp(7)).
                Err(e) if train && matches!(e.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => {
                    self.most.set(1);
                }
                Err(_) => return true,
            }
        }
        for one in bytes.chunks(size) {
            // A datagram for which the socket has no room is lost, as it may be anywhere on the
            // way.
            let _ = self.send_train(to, one, size);
        }
        true
    }

    fn send_train(&self, to: SocketAddr, bytes: &[u8], size: usize) -> io::Result<()> {
        let piece = [IoSlice::new(bytes)];
        let mut control: Control = [0; 16];
        let mut message = header();
        message.msg_iov = piece.as_ptr().cast_mut().cast();
        message.msg_iovlen = piece.len() as _;
        if bytes.len() > size {
            let segment = size as u16;
            message.msg_control = control.as_mut_ptr().cast();
            // SAFETY: the macros only calculate.
            message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<u16>() as u32) } as _;
            // SAFETY: the control messages have room for one with a u16, which the first pointer
            // points to.
            unsafe {
                let c = &mut *libc::CMSG_FIRSTHDR(&raw const message);
                c.cmsg_level = libc::SOL_UDP;
                c.cmsg_type = libc::UDP_SEGMENT;
                c.cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
                libc::CMSG_DATA(c).cast::<u16>().write_unaligned(segment);
            }
        }
        // SAFETY: the header points to memory of the sizes it names, which is not written
        // meanwhile; the address is used in the call only.
        let sent = unsafe {
            to.with_sockaddr(|name, len| {
                message.msg_name = name.cast_mut().cast();
                message.msg_namelen = len;
                libc::sendmsg(self.socket.as_raw_fd(), &raw const message, 0)
            })
        };
        match sent {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Receives joined datagrams, or a single one. `None`: nothing is there. An error is one that
    /// the network reported for an earlier datagram; [`Sock::complaint`] tells more.
    pub fn recv<'a>(&self, inbox: &'a mut Inbox) -> io::Result<Option<Batch<'a>>> {
        let mut control: Control = [0; 16];
        let came = match self.receive(&mut inbox.0, &mut control, 0) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            came => came?,
        };
        let bytes = &inbox.0[..came.bytes];
        let (mut size, mut marked) = (bytes.len(), false);
        for_each_control(&mut control, came.control, |c, data| {
            match (c.cmsg_level, c.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    // SAFETY: the kernel writes an int.
                    size = unsafe { data.cast::<i32>().read_unaligned() } as usize;
                }
                (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    // SAFETY: the kernel writes a byte, or an int of which the first byte is the
                    // lowest.
                    marked = unsafe { *data } & CE == CE;
                }
                _ => {}
            }
        });
        Ok(came.from.map(|from| Batch {
            from,
            bytes,
            size: size.max(1),
            marked,
        }))
    }

    /// The next reported error.
    pub fn complaint(&self) -> Option<Complaint> {
        let mut control = [0u64; 32];
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        let came = self.receive(&mut [0], &mut control, flags).ok()?;
        let to = came.from?;
        let error = extended_error(&mut control, came.control)?;
        let (host, port) = match error.ee_origin {
            libc::SO_EE_ORIGIN_ICMP => (3, 3),
            libc::SO_EE_ORIGIN_ICMP6 => (1, 4),
            _ => (0, 0),
        };
        let refused = error.ee_origin != 0 && (error.ee_type, error.ee_code) == (host, port);
        Some(Complaint { to, refused })
    }

    /// One call for the waiting data.
    fn receive(&self, into: &mut [u8], control: &mut [u64], flags: i32) -> io::Result<Came> {
        // SAFETY: all zeros is a valid address.
        let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut piece = libc::iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let mut message = header();
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = size_of_val(&name) as _;
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(control) as _;
        // SAFETY: the header points to memory of the sizes it names.
        let got = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, flags) };
        match got {
            0.. => Ok(Came {
                bytes: got as usize,
                from: address(&name),
                control: message.msg_controllen as _, // an int in musl
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Result of one call.
struct Came {
    bytes: usize,
    /// The source; for an ICMP error, the destination of the rejected datagram.
    from: Option<SocketAddr>,
    /// Bytes of control messages.
    control: usize,
}

/// An empty message header.
fn header() -> libc::msghdr {
    // SAFETY: all zeros is a valid message header.
    unsafe { std::mem::zeroed() }
}

/// Calls `each` with every control message among the first `len` bytes of `control`, which the
/// kernel has written, and with the place of its data.
fn for_each_control(
    control: &mut [u64],
    len: usize,
    mut each: impl FnMut(&libc::cmsghdr, *const u8),
) {
    let mut message = header();
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = len.min(size_of_val(control)) as _;
    // SAFETY: the header describes control messages that the kernel has written.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !next.is_null() {
        // SAFETY: the pointer is one that the macros of the C library gave for this message.
        unsafe {
            each(&*next, libc::CMSG_DATA(next));
            next = libc::CMSG_NXTHDR(&raw const message, next);
        }
    }
}

/// The extended error among them.
fn extended_error(control: &mut [u64], len: usize) -> Option<libc::sock_extended_err> {
    let mut error = None;
    for_each_control(control, len, |c, data| {
        if matches!(
            (c.cmsg_level, c.cmsg_type),
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
        ) {
            // SAFETY: such a message carries an extended error, perhaps not aligned.
            error = Some(unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() });
        }
    });
    error
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
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    use std::time::{Duration, Instant};

    fn local() -> Sock {
        Sock::bind((Ipv4Addr::LOCALHOST, 0).into(), 1 << 20, true).expect("loopback")
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
        many_in_one_call(SEGMENTS);
    }

    /// The other way, for devices that cannot segment.
    #[test]
    fn many_datagrams_go_one_by_one_where_nothing_cuts_them() {
        many_in_one_call(1);
    }

    #[test]
    fn the_mark_of_a_full_queue_is_seen_and_no_other() {
        for host in [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ] {
            // A machine without IPv6 is tested with the addresses that it has.
            let (Ok(a), Ok(b)) = (
                Sock::bind((host, 0).into(), 0, true),
                Sock::bind((host, 0).into(), 0, true),
            ) else {
                assert!(host.is_ipv6());
                continue;
            };
            let (level, name) = match host {
                IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            let mut inbox = Inbox::default();
            for marked in [false, true] {
                if marked {
                    a.set(level, name, CE as i32).expect("any type of service");
                }
                assert!(a.send(b.at(), b"full?", 1472));
                let seen = until("datagram", || {
                    b.recv(&mut inbox).ok().flatten().map(|batch| batch.marked)
                });
                assert_eq!(seen, marked, "{host}");
            }
        }
    }

    fn many_in_one_call(most: usize) {
        let (a, b) = (local(), local());
        a.most.set(most);
        let sent: Vec<u8> = (0..10_500u32).map(|i| i as u8).collect();
        assert!(a.send(b.at(), &sent, 1000));
        let (mut inbox, mut came) = (Inbox::default(), Vec::new());
        until("datagrams", || {
            if let Ok(Some(batch)) = b.recv(&mut inbox) {
                assert_eq!(batch.from, a.at());
                came.extend(batch.bytes.chunks(batch.size).map(<[u8]>::to_vec));
            }
            (came.len() == 11).then_some(())
        });
        assert_eq!(came.concat(), sent);
        assert!(b.recv(&mut inbox).expect("no error").is_none());
    }

    #[test]
    fn a_port_that_nobody_has_open_is_complained_of_by_its_host() {
        let (a, gone) = (local(), local().at());
        assert!(a.send(gone, b"anybody?", 1472));
        let complaint = until("complaint", || a.complaint());
        let want = Complaint {
            to: gone,
            refused: true,
        };
        assert_eq!(complaint, want);
    }
}
