//! Vector clocks: which steps of the other ranks a rank's step comes after, whatever the
//! interleaving.

/// Most ranks the checker knows.
pub const RANKS: usize = 64;

/// For every rank, how many of its announcements (raises and messages) have reached here.
#[derive(Clone, Copy, Debug)]
pub struct Clock([u32; RANKS]);

/// A step of one rank, dated by that rank's own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    rank: usize,
    at: u32,
}

impl Clock {
    /// The clock of a rank that has neither received nor announced anything.
    pub fn new(rank: usize) -> Clock {
        let mut clock = Clock([0; RANKS]);
        clock.0[rank] = 1;
        clock
    }

    /// The present moment of its owner.
    pub fn now(&self, rank: usize) -> Moment {
        let at = self.0[rank];
        Moment { rank, at }
    }

    /// Whether events up to that moment are known here.
    pub fn knows(&self, moment: Moment) -> bool {
        moment.at <= self.0[moment.rank]
    }

    /// The owner announces its knowledge: later steps of it are not covered.
    pub fn announce(&mut self, rank: usize) -> Clock {
        let announced = *self;
        self.0[rank] += 1;
        announced
    }

    /// Takes in an announcement.
    pub fn join(&mut self, other: &Clock) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (*mine).max(*theirs);
        }
    }
}
