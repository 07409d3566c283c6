//! Polling for a limited time, where a poll costs much less than a reading of the clock.

use crate::constants::wait::LOOKS_PER_CLOCK;
use kw_base::Tick;
use std::time::Duration;

/// Polls for a while.
#[derive(Debug)]
pub struct Spin {
    most: Duration,
    looks: u32,
    end: Option<Tick>,
}

impl Spin {
    /// Polls for `most` from the first reading of the clock on; if that is zero, once.
    #[inline(always)]
    pub fn new(most: Duration) -> Spin {
        Spin {
            most,
            looks: 0,
            end: None,
        }
    }

    /// After an unsuccessful poll: whether there is time for another. `now` reads the clock.
    #[inline(always)]
    pub fn goes_on(&mut self, now: impl FnOnce() -> Tick) -> bool {
        self.looks += 1;
        match self.looks.is_multiple_of(LOOKS_PER_CLOCK) || self.most.is_zero() {
            true => self.is_early(now),
            false => true,
        }
    }

    #[cold]
    fn is_early(&mut self, now: impl FnOnce() -> Tick) -> bool {
        if self.most.is_zero() {
            return false;
        }
        let now = now();
        now < *self.end.get_or_insert(now + self.most)
    }
}
