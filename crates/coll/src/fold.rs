//! Accumulating contributions in the order of ranks with as few copies as the operation allows.

use super::{Schedule, Slice};

/// The partial result of a reduction, and its location.
///
/// The accumulator starts as the rank's own input (which may be the user's constant send buffer)
/// and moves between the destination of the result (`home`) and temporaries, so that a commutative
/// operation never copies.
#[derive(Debug)]
pub struct Fold {
    acc: Slice,
    ours: bool,
    home: Slice,
    spare: [Option<Slice>; 2],
    commutative: bool,
}

impl Fold {
    /// Starts with `input`; the result must end in `home`. `input == home` means in place.
    pub fn new(input: Slice, home: Slice, commutative: bool) -> Fold {
        Fold {
            acc: input,
            ours: input == home,
            home,
            spare: [None; 2],
            commutative,
        }
    }

    /// The combined data so far.
    pub fn acc(&self) -> Slice {
        self.acc
    }

    /// A buffer for receiving the next contribution.
    pub fn fresh(&mut self, s: &mut Schedule) -> Slice {
        if self.acc != self.home {
            self.home
        } else {
            self.other(s, self.home)
        }
    }

    /// A temporary that is neither the accumulator nor `not`.
    fn other(&mut self, s: &mut Schedule, not: Slice) -> Slice {
        for spare in &mut self.spare {
            let at = *spare.get_or_insert_with(|| s.elements(self.home.len));
            if at != self.acc && at != not {
                return at;
            }
        }
        unreachable!(
            "of two temporaries at most one is the accumulator when the other place is home"
        )
    }

    /// Combines with a contribution that has arrived in `fresh`, from ranks below (`lower`) or
    /// above all combined so far.
    pub fn take(&mut self, s: &mut Schedule, fresh: Slice, lower: bool) {
        let stay = self.ours && (lower || self.commutative);
        if stay && !(self.commutative && fresh == self.home) {
            s.reduce(fresh, self.acc);
        } else if !lower || self.commutative {
            s.reduce(self.acc, fresh);
            self.acc = fresh;
            self.ours = true;
        } else if self.ours {
            s.reduce(fresh, self.acc);
        } else {
            let into = if fresh == self.home {
                self.other(s, fresh)
            } else {
                self.home
            };
            s.copy(self.acc, into);
            s.reduce(fresh, into);
            self.acc = into;
            self.ours = true;
        }
    }

    /// Moves the result to `home`.
    pub fn finish(self, s: &mut Schedule) {
        if self.acc != self.home {
            s.copy(self.acc, self.home);
        }
    }
}
