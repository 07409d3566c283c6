//! The monotonic clock.

use kw_base::Tick;

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now() -> Tick {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Tick(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}
