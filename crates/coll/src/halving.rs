//! Recursive halving and its way back, for any number of ranks: a power of two of them, the *core*,
//! works; each of the others has a twin in the core that takes its data over before and hands the
//! result back after.

use super::fold::Fold;
use super::{Schedule, Slice};

/// The core of `n` ranks: the first `2 * twins` ranks stand in pairs, one of each is in the core.
#[derive(Clone, Copy, Debug)]
pub struct Core {
    /// Ranks in the core, a power of two.
    pub size: u32,
    /// Ranks outside of it.
    pub twins: u32,
}

impl Core {
    /// The core of `n` ranks, at least 1.
    pub fn of(n: u32) -> Core {
        let size = 1 << n.ilog2();
        Core {
            size,
            twins: n - size,
        }
    }

    /// Whether a rank is one of a pair.
    pub fn is_paired(&self, rank: u32) -> bool {
        rank < 2 * self.twins
    }

    /// Number in the core of a rank's pair, or of the rank.
    pub fn number(&self, rank: u32) -> u32 {
        if self.is_paired(rank) {
            rank / 2
        } else {
            rank - self.twins
        }
    }

    /// First rank that the `v`th of the core stands for; `v == size` gives the end.
    pub fn first(&self, v: u32) -> u32 {
        v + v.min(self.twins)
    }

    /// Last rank that the `v`th of the core stands for.
    pub fn last(&self, v: u32) -> u32 {
        self.first(v + 1) - 1
    }
}

/// A seat in the core, and how data is cut: `cut(all, i, j)` is the part of `all` that belongs to
/// the core's ranks `i..j`.
pub struct Seat<'a> {
    /// Number in the core.
    pub v: u32,
    /// Ranks in the core.
    pub size: u32,
    /// Rank of a number in the core.
    pub rank: &'a dyn Fn(u32) -> u32,
    /// How data is cut.
    pub cut: &'a dyn Fn(Slice, u32, u32) -> Slice,
}

impl Seat<'_> {
    /// Reduce-scatter by recursive halving: leaves cut `v` of the result at its place in `home`.
    /// The operation commutes; `fold` holds this rank's contribution.
    pub fn halve(&self, fold: Fold, s: &mut Schedule, home: Slice) {
        if self.size == 1 {
            return fold.finish(s);
        }
        let input = fold.acc();
        let (mut low, mut mask, mut aside) = (0, self.size / 2, None);
        while mask > 0 {
            let first = mask == self.size / 2;
            let up = self.v & mask;
            let (keep, give) = (low + up, low + (mask - up));
            let from = if first { input } else { home };
            let (out, mine) = (
                (self.cut)(from, give, give + mask),
                (self.cut)(from, keep, keep + mask),
            );
            let stay = (self.cut)(home, keep, keep + mask);
            // If the input is elsewhere, the first half to arrive goes straight home.
            let direct = first && input != home;
            let fresh = if direct || stay.is_empty() {
                stay
            } else {
                aside
                    .get_or_insert_with(|| s.elements(stay.len))
                    .part(0, stay.len)
            };
            s.exchange((self.rank)(self.v ^ mask), out, fresh);
            s.reduce(if direct { mine } else { fresh }, stay);
            low = keep;
            mask /= 2;
        }
    }

    /// Allgather by recursive doubling: from cut `v` in `home` to all of it.
    pub fn double(&self, s: &mut Schedule, home: Slice) {
        let mut mask = 1;
        while mask < self.size {
            let (mine, theirs) = (self.v & !(mask - 1), (self.v ^ mask) & !(mask - 1));
            let out = (self.cut)(home, mine, mine + mask);
            let into = (self.cut)(home, theirs, theirs + mask);
            s.exchange((self.rank)(self.v ^ mask), out, into);
            mask *= 2;
        }
    }

    /// Gather by a binomial tree: from cut `v` in `home` to all of it at number 0.
    pub fn collect(&self, s: &mut Schedule, home: Slice) {
        let mut mask = 1;
        while mask < self.size {
            let other = self.v ^ mask;
            let theirs = self.v.max(other);
            let moving = (self.cut)(home, theirs, theirs + mask);
            if self.v & mask != 0 {
                s.fence();
                s.send_some((self.rank)(other), moving);
                return;
            }
            s.recv_some((self.rank)(other), moving);
            mask *= 2;
        }
    }
}
