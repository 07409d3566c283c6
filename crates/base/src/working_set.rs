//! Memory that is reused in turn, as a ring: how much of it is used, and when that grows.
//!
//! Memory that is reused soon is in the caches of its readers, which makes writing it slow; the
//! first use of a page is even slower. So the buffer starts short and grows after it has been used
//! several times.

/// After this many rounds a working set becomes twice as long: a built-in value that is not
/// measured. The first use of a page (2.4 us on a virtual machine) cost as much as eight uses of
/// one whose lines another core has (0.3 us).
pub const ROUNDS: u32 = 8;

/// Length of the part that is used, in the caller's units.
#[derive(Clone, Copy, Debug)]
pub struct WorkingSet {
    len: u64,
    rounds: u32,
    longest: u64,
}

impl WorkingSet {
    /// A working set of `first` that may grow up to `longest`; it starts no longer than that.
    pub fn new(first: u64, longest: u64) -> WorkingSet {
        WorkingSet {
            len: first.min(longest),
            rounds: 0,
            longest,
        }
    }

    /// Current length.
    #[inline]
    pub fn length(&self) -> u64 {
        self.len
    }

    /// Limits the working set to this length from now on.
    pub fn bound(&mut self, longest: u64) {
        (self.len, self.longest) = (self.len.min(longest), longest);
    }

    /// Makes the working set at least this long from now on, as far as its limit allows.
    #[inline]
    pub fn stretch(&mut self, least: u64) {
        self.len = self.len.max(least.min(self.longest));
    }

    /// Counts one more round.
    pub fn end_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= ROUNDS && self.len < self.longest {
            (self.len, self.rounds) = ((self.len * 2).min(self.longest), 0);
        }
    }
}
