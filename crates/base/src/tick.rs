//! Time as a value: code below the engine never reads a clock; `now` is an argument.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds since some fixed moment of this process (monotonic, or a simulator's virtual time).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// A moment later than every other.
    pub const NEVER: Tick = Tick(u64::MAX);

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Tick) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Tick {
    type Output = Tick;
    fn add(self, d: Duration) -> Tick {
        Tick(self.0.saturating_add(d.as_nanos() as u64))
    }
}

impl Sub<Duration> for Tick {
    type Output = Tick;
    fn sub(self, d: Duration) -> Tick {
        Tick(self.0.saturating_sub(d.as_nanos() as u64))
    }
}
