//! Signals as events of a descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// Its number.
    pub number: i32,
    /// Whether the terminal (the kernel) sent it, not a process.
    pub terminal: bool,
    /// The value that it was sent with ([`send`]); 0 if without one.
    pub value: i32,
}

/// A descriptor that is readable when one of its signals has come.
#[derive(Debug)]
pub struct Signals(OwnedFd);

/// Keeps these signals from interrupting this thread (and threads started from it) and delivers
/// them as events.
pub fn take(numbers: &[i32]) -> io::Result<Signals> {
    // SAFETY: a local signal set, filled before it is used.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &n in numbers {
            libc::sigaddset(&mut set, n);
        }
        set
    };
    // SAFETY: both calls read the set that was made above.
    let fd = unsafe {
        if libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) == -1 {
            return Err(io::Error::last_os_error());
        }
        libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that no other code owns.
    Ok(Signals(unsafe { OwnedFd::from_raw_fd(fd) }))
}

impl Signals {
    /// The next signal that came; `None` when there is none now.
    pub fn poll_signal(&self) -> Option<Came> {
        // SAFETY: the structure is plain data, and the read fills it whole or fails.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = std::mem::size_of_val(&info);
            let n = libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), size);
            (n == size as isize).then_some(Came {
                number: info.ssi_signo as i32,
                terminal: info.ssi_code == libc::SI_KERNEL,
                value: if info.ssi_code == libc::SI_QUEUE {
                    info.ssi_int
                } else {
                    0
                },
            })
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a process a signal with a value, which may be lost if the same signal already waits there.
pub fn send(pid: i32, number: i32, value: i32) -> io::Result<()> {
    let value = libc::sigval {
        sival_ptr: value as usize as *mut libc::c_void,
    };
    // SAFETY: the value is a number, which is not used as a pointer.
    match unsafe { libc::sigqueue(pid, number, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stops this process as Ctrl-Z would; returns when it is continued.
pub fn stop_self() {
    // SAFETY: raises a signal of this process.
    unsafe {
        libc::raise(libc::SIGSTOP);
    }
}

/// Name of a signal, such as `SIGKILL`.
pub fn name(number: i32) -> String {
    match word(number) {
        "" => format!("SIG{number}"),
        name => name.to_string(),
    }
}

/// The name without allocation; empty if it has none.
pub fn word(number: i32) -> &'static str {
    let known = NAMES.iter().find(|(n, _)| *n == number);
    known.map_or("", |(_, name)| name)
}

const NAMES: &[(i32, &str)] = &[
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGCHLD, "SIGCHLD"),
    (libc::SIGCONT, "SIGCONT"),
    (libc::SIGSTOP, "SIGSTOP"),
    (libc::SIGTSTP, "SIGTSTP"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGSYS, "SIGSYS"),
];

macro_rules! numbers {
    ($($name:ident = $libc:ident),*) => { $(
        #[doc = concat!("Number of ", stringify!($libc), ".")]
        pub const $name: i32 = libc::$libc;
    )* };
}

numbers! {
    CHLD = SIGCHLD, INT = SIGINT, TERM = SIGTERM, HUP = SIGHUP, QUIT = SIGQUIT, USR1 = SIGUSR1, USR2 = SIGUSR2,
    TSTP = SIGTSTP, CONT = SIGCONT, STOP = SIGSTOP, KILL = SIGKILL, URG = SIGURG, SEGV = SIGSEGV, BUS = SIGBUS
}
