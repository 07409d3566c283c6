//! Flushes a process's output when SIGTERM ends it: that is how a launcher ends the ranks of a job
//! in which one has failed.
//!
//! Only if SIGTERM has its default action: a program's own handler stays. The handler has a thread
//! write the buffers of C's standard streams, for a second at most, and then lets the signal end
//! the process. A child that was forked has its parent's text in its streams and writes nothing.

use std::ffi::c_int;

use kw_base::sync::atomic::{AtomicU32, Ordering};

use crate::host;

/// The process that installed the handler. A handler has no other way to find it.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Installs the handler, if SIGTERM has none.
pub fn install() {
    OWNER.store(std::process::id(), Ordering::Release);
    replace(libc::SIG_DFL, handler());
}

/// Removes the handler if it is still ours.
pub fn remove() {
    replace(handler(), libc::SIG_DFL);
}

fn handler() -> usize {
    on_signal as extern "C" fn(c_int) as usize
}

fn replace(before: usize, after: usize) {
    // SAFETY: both structures are plain data; the handler has the signature of one without
    // SA_SIGINFO.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGTERM, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == before
        {
            let mut then: libc::sigaction = std::mem::zeroed();
            then.sa_sigaction = after;
            libc::sigemptyset(&mut then.sa_mask);
            libc::sigaction(libc::SIGTERM, &then, std::ptr::null_mut());
        }
    }
}

/// The signal is blocked while its handler runs, so that a signal raised here ends the process when
/// the handler returns.
extern "C" fn on_signal(signal: c_int) {
    if OWNER.load(Ordering::Acquire) == std::process::id() {
        host::write_before_end(128 + signal);
    }
    // SAFETY: both are allowed in handlers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
