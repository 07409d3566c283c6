//! Descriptors inherited from a parent process, and connections to servers.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, sockopt};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// A copy of a descriptor that was inherited under a known number; neither survives an exec from
/// now on. The number stays open, so that it can be taken again. Fails if nothing is open under the
/// number.
pub fn adopt(number: RawFd) -> io::Result<File> {
    if number < 3 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: F_SETFD on any number is harmless; it fails with EBADF when nothing is open there.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the number is open (checked above); it is only copied.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    if copy == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) }.into())
}

/// Whether a descriptor can be read now.
pub fn is_readable(fd: impl AsFd) -> bool {
    let at_once = rustix::event::Timespec::default();
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&at_once)), Ok(1..))
}

/// Whether the other end of a connection is closed or broken.
pub fn is_hung_up(fd: impl AsFd) -> bool {
    let at_once = rustix::event::Timespec::default();
    let mut fds = [PollFd::new(&fd, PollFlags::RDHUP)];
    matches!(poll(&mut fds, Some(&at_once)), Ok(1..))
}

/// Blocks until the other end of a connection is closed or broken; what can be read stays where it
/// is.
pub fn wait_for_hang_up(fd: impl AsFd) {
    loop {
        let mut fds = [PollFd::new(&fd, PollFlags::RDHUP)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) | Ok(0) => {}
            _ => return,
        }
    }
}

/// Sends all of it over a socket, or nothing, without blocking; returns whether it was sent. The
/// socket must accept this much at once (a stream of the unix family accepts 16 KB).
pub fn send_now(socket: impl AsFd, bytes: &[u8]) -> bool {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::send(socket, bytes, flags) == Ok(bytes.len())
}

/// Sends all of it over a socket, blocking, or writes it to another kind of descriptor. A socket
/// whose other end is closed is an error (`BrokenPipe`) and does not end this process by SIGPIPE.
pub fn send_all(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = match rustix::net::send(&to, bytes, SendFlags::NOSIGNAL) {
            Err(Errno::NOTSOCK) => rustix::io::write(&to, bytes),
            sent => sent,
        };
        match sent {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Reads data that has come over a socket already; returns how many bytes.
pub fn recv_now(socket: impl AsFd, into: &mut [u8]) -> usize {
    let got = rustix::net::recv(socket, into, RecvFlags::DONTWAIT);
    got.map_or(0, |(n, _)| n)
}

/// Makes the kernel ask an idle TCP connection whether the other host is there; it breaks after
/// twelve seconds without an answer.
pub fn keep_alive(fd: BorrowedFd) -> io::Result<()> {
    sockopt::set_socket_keepalive(fd, true)?;
    sockopt::set_tcp_keepidle(fd, Duration::from_secs(3))?;
    sockopt::set_tcp_keepintvl(fd, Duration::from_secs(3))?;
    sockopt::set_tcp_keepcnt(fd, 3)?;
    Ok(())
}

/// A stream over a copy of a descriptor of the program's: a connected socket.
pub fn borrowed_stream(fd: i32) -> io::Result<std::net::TcpStream> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the descriptor is used during this call only; a number without a descriptor is an
    // error of `dup`.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let own = borrowed.try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&own)?;
    let stream = std::net::TcpStream::from(own);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// Whether SIGPIPE is pending for this thread, which blocks it: it is even if it is ignored.
    fn sigpipe_after(act: impl FnOnce()) -> bool {
        // SAFETY: an all-zero sigset_t is a valid place for sigemptyset, and the pointers are to
        // locals; the thread ends with its mask.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            act();
            libc::sigpending(&raw mut set);
            libc::sigismember(&raw const set, libc::SIGPIPE) == 1
        }
    }

    fn closed() -> UnixStream {
        UnixStream::pair().unwrap().0
    }

    #[test]
    fn a_word_to_a_launcher_that_is_gone_is_an_error_and_no_sigpipe() {
        let thread = std::thread::spawn(|| {
            let why = |e: io::Error| assert_eq!(e.kind(), io::ErrorKind::BrokenPipe);
            assert!(!sigpipe_after(
                || why(send_all(closed(), b"x").unwrap_err())
            ));
            assert!(
                sigpipe_after(|| assert!(rustix::io::write(closed(), b"x").is_err())),
                "a write gets one"
            );
        });
        thread.join().unwrap();
    }

    #[test]
    fn all_is_sent_over_sockets_and_pipes() {
        let sent = vec![7; 1 << 20];
        let (a, mut b) = UnixStream::pair().unwrap();
        let (mut end, pipe) = io::pipe().unwrap();
        std::thread::scope(|s| {
            s.spawn(|| (send_all(&a, &sent).unwrap(), drop(a)));
            s.spawn(|| (send_all(&pipe, &sent).unwrap(), drop(pipe)));
            for from in [&mut b as &mut dyn Read, &mut end] {
                let mut came = Vec::new();
                from.read_to_end(&mut came).unwrap();
                assert_eq!(came, sent);
            }
        });
    }
}
