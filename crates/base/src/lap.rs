//! Memory that is gone round: how much of it, and when that becomes more.
//!
//! Memory that is reused soon is in the caches of its readers, which makes writing it slow; the
//! first use of a page is even slower. So the buffer starts short and grows after it has been used
//! several times.

/// A lap that has been gone round so often becomes twice as long: a built-in value that nothing
/// measures. The first use of a page (2.4 us on a virtual machine) cost as much as eight uses of
/// one whose lines another core has (.3 us).
pub const ROUNDS: u32 = 8;

/// How much is gone round, in the caller's units.
#[derive(Clone, Copy, Debug)]
pub struct Lap {
    len: u64,
    rounds: u32,
    longest: u64,
}

impl Lap {
    /// One of `first` that may become as long as `longest`, or is no longer than that from the
    /// beginning.
    pub fn new(first: u64, longest: u64) -> Lap {
        Lap {
            len: first.min(longest),
            rounds: 0,
            longest,
        }
    }

    /// How long it is.
    #[inline]
    pub fn length(&self) -> u64 {
        self.len
    }

    /// It may become so long from now on, and is no longer.
    pub fn bound(&mut self, longest: u64) {
        (self.len, self.longest) = (self.len.min(longest), longest);
    }

    /// It is at least so long from now on, as far as it may be.
    #[inline]
    pub fn stretch(&mut self, least: u64) {
        self.len = self.len.max(least.min(self.longest));
    }

    /// It has been gone round once more.
    pub fn end_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= ROUNDS && self.len < self.longest {
            (self.len, self.rounds) = ((self.len * 2).min(self.longest), 0);
        }
    }
}
