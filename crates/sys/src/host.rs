//! The machine's name, which boot of it this is, and the way out of the process.

#[cfg(target_env = "gnu")]
use std::ffi::CStr;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

/// How long writing the buffers of C's standard streams may take.
const WRITING: Duration = Duration::from_secs(1);
/// How long leaving may take in all.
const LEAVING: i64 = 5;
/// Bytes of stack of the thread that writes.
const STACK: usize = 64 << 10;

/// The number of this process's user.
pub fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The host name as the kernel knows it (no resolver is asked).
pub fn name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// The id that the kernel has given itself when it was booted; empty if `/proc` is not mounted.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_string()
}

/// The version of the GNU C library that this runs on, if it is that one.
pub fn glibc() -> Option<(u32, u32)> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: a text that is never changed.
        let text = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        let (major, minor) = text.to_str().ok()?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Ends the process: [`leave_after`] with nothing more to do.
pub fn leave(code: i32) -> ! {
    leave_after(code, || ())
}

/// Ends the process and writes nothing.
pub fn leave_at_once(code: i32) -> ! {
    // SAFETY: `_exit` has no requirement.
    unsafe { libc::_exit(code) }
}

/// Ends the process without running exit handlers (they may call MPI, or wait for threads that hold
/// its lock). Output buffered in C's standard streams is written first, then `last` is called.
///
/// Terminates whatever the program was doing: a stream may be locked by a thread that waits for
/// input, or be a pipe without a reader; this thread may have been interrupted by a signal while it
/// held a lock. A separate thread writes, and is waited for at most one second; anything else is
/// cut off after five.
pub fn leave_after(code: i32, last: impl FnOnce()) -> ! {
    write_before_end(code);
    last();
    leave_at_once(code)
}

/// Writes the buffers of C's standard streams; the process is about to end, and does so in
/// [`LEAVING`] seconds, with `code`, if writing takes longer.
pub fn write_before_end(code: i32) {
    end_within_limit(code);
    write_streams();
}

/// Makes the kernel end this process with `code` in [`LEAVING`] seconds. Without such a timer the
/// time is unlimited.
fn end_within_limit(code: i32) {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = end_now;
    // SAFETY: structures of plain data, filled before they are used; the handler has the type that
    // SA_SIGINFO requires, and calls only functions that a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_value.sival_ptr = code as usize as *mut c_void;
        let mut at: libc::itimerspec = std::mem::zeroed();
        at.it_value.tv_sec = LEAVING as _;
        let mut ours: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut ours);
        libc::sigaddset(&mut ours, libc::SIGALRM);
        let mut timer: libc::timer_t = ptr::null_mut();
        if libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) == 0 {
            libc::sigaction(libc::SIGALRM, &action, ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &ours, ptr::null_mut());
            libc::timer_settime(timer, 0, &at, ptr::null_mut());
        }
    }
}

extern "C" fn end_now(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives the handler the value that the timer was made with; an alarm of
    // a foreign program may have another or none, and ends the process with a nonzero status all
    // the same.
    unsafe {
        let code = (*info).si_value().sival_ptr as usize as i32;
        libc::_exit(if code == 0 { 1 } else { code })
    }
}

/// Writes the buffers of C's standard streams, within [`WRITING`].
fn write_streams() {
    let caller = std::thread::current();
    let write = move || {
        // SAFETY: null stands for all streams; each is locked while it is written.
        unsafe { libc::fflush(ptr::null_mut()) };
        caller.unpark();
    };
    let Ok(writer) = crate::threads::spawn("kw-flush", STACK, write) else {
        return;
    };
    let until = Instant::now() + WRITING;
    while !writer.is_finished() && Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
