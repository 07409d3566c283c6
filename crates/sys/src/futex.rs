//! Sleeping on a word of shared memory. Under loom no thread sleeps: its models only check which
//! threads would be woken.

use kw_base::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `value`; `false` after a signal or when `timeout` has passed.
#[cfg(not(loom))]
pub fn wait(word: &AtomicU32, value: u32, timeout: Option<Duration>) -> bool {
    use rustix::io::Errno;
    use rustix::thread::futex;
    let until = timeout.map(|t| rustix::time::Timespec {
        tv_sec: t.as_secs() as i64,
        tv_nsec: t.subsec_nanos() as _,
    });
    matches!(
        futex::wait(word, futex::Flags::empty(), value, until.as_ref()),
        Ok(()) | Err(Errno::AGAIN)
    )
}

/// Wakes all threads that sleep on `word`, in any process.
#[cfg(not(loom))]
pub fn wake(word: &AtomicU32) {
    use rustix::thread::futex;
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX >> 1);
}

/// Does not sleep: models have no futex.
#[cfg(loom)]
pub fn wait(_word: &AtomicU32, _value: u32, _timeout: Option<Duration>) -> bool {
    kw_base::sync::thread::yield_now();
    true
}

/// Wakes nothing here.
#[cfg(loom)]
pub fn wake(_word: &AtomicU32) {}
