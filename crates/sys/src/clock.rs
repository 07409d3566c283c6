//! The monotonic clock, and the CPU time of a thread.

use kw_base::Tick;
use std::time::Duration;

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now() -> Tick {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Tick(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Time that the calling thread has run on a CPU, including the system's work for it
/// (CLOCK_THREAD_CPUTIME_ID).
pub fn of_this_thread() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}
