//! Looking again and again for a limited time, where a look costs much less than to read the clock.

use kw_base::Tick;
use std::time::Duration;

/// Looks between two readings of the clock.
pub(crate) const LOOKS_PER_CLOCK: u32 = 64;

/// Looks for a while.
#[derive(Debug)]
pub(crate) struct Spin {
    most: Duration,
    looks: u32,
    end: Option<Tick>,
}

impl Spin {
    /// For `most` from the first reading of the clock on; if that is nothing, for one look.
    #[inline(always)]
    pub(crate) fn new(most: Duration) -> Spin {
        Spin {
            most,
            looks: 0,
            end: None,
        }
    }

    /// After an unsuccessful poll: whether there is time for another.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self) -> bool {
        self.looks += 1;
        match self.looks.is_multiple_of(LOOKS_PER_CLOCK) || self.most.is_zero() {
            true => self.is_early(),
            false => true,
        }
    }

    #[cold]
    fn is_early(&mut self) -> bool {
        if self.most.is_zero() {
            return false;
        }
        let now = kw_sys::clock::now();
        now < *self.end.get_or_insert(now + self.most)
    }
}
