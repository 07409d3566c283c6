//! Flow control of the memory that the ranks of a node share: which rank may touch which part, and
//! when.
//!
//! Collectives are numbered in the order in which they are called; at each rank they run one after
//! the other. Collective `k` uses line `k % lines`, which `k - lines` used before. A rank *marks*
//! `k` when it stores a word of that number: with its first signal, or at its end at the latest. So
//! a mark of `k` means that the rank has ended `k - 1` and all before it, and the line is free once
//! all ranks have marked `k - lines + 1`. A rank that also touches slots, its own or others', waits
//! in the same way for `k - slots + 1`; a part of the rings that `u` used before ([`Ring`]) is free
//! once all have marked `u + 1`. Known marks are cached, so ranks that wait for each other anyway
//! seldom poll twice.

use super::ring::Ring;
use super::{Flags, STAGE_BITS};

/// Each rank's share of the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Lines of a rank.
    pub lines: u64,
    /// Slots for short data of a rank.
    pub slots: u64,
    /// Bytes of a rank's ring for long data.
    pub ring: u64,
    /// Bytes of it after which parts begin at the front again.
    pub working_set: u64,
}

/// Memory that a collective touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Lines only.
    Lines,
    /// Lines and slots.
    Slots,
    /// Lines, and that many bytes of the rings.
    Ring(u64),
}

/// One collective's place in the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// Its number.
    pub number: u64,
    /// First byte of its part of the rings.
    pub at: u64,
    /// Every rank must have marked this one before memory is touched.
    needs: u64,
    /// Whether the turn has come and the memory is free.
    is_open: bool,
}

impl Reservation {
    /// No part; for a rank that gets one later.
    pub const NONE: Reservation = Reservation {
        number: 0,
        at: 0,
        needs: 0,
        is_open: false,
    };

    /// Memory is touched this many collectives too early: a fault that tests must find.
    #[cfg(test)]
    pub(crate) fn hurry(&mut self, by: u64) {
        self.needs = self.needs.saturating_sub(by);
    }
}

/// Condition for which a collective waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Its turn, which comes when another collective of this rank ends.
    Turn(u64),
    /// A member's word of collective `number` to be that large.
    Flag {
        /// Its member.
        member: u32,
        /// Its line.
        number: u64,
        /// The least word.
        word: u64,
    },
}

/// Last known state of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// It has come.
    Yes,
    /// It has not.
    NotYet(Wait),
    /// It never will, because it is in another call, which has this signature.
    Elsewhere(u64),
}

/// One rank's side of one communicator's shared memory.
#[derive(Debug)]
pub struct FlowControl {
    capacity: Capacity,
    /// This rank's member number.
    own: u32,
    /// Last collective that each member is known to have marked.
    marked: Box<[u64]>,
    /// The last collective that all members are known to have marked.
    all_marked: u64,
    /// Number of the last collective that has a place.
    last: u64,
    /// Number of the collective whose turn it is.
    turn: u64,
    /// Owners of the parts of the rings.
    ring: Ring,
}

impl FlowControl {
    /// For member `own` of a number of members.
    pub fn new(own: u32, members: u32, capacity: Capacity) -> FlowControl {
        FlowControl {
            capacity,
            own,
            marked: vec![0; members as usize].into(),
            all_marked: 0,
            last: 0,
            turn: 1,
            ring: Ring::new(capacity.ring, capacity.working_set),
        }
    }

    /// Members.
    #[inline]
    pub fn members(&self) -> u32 {
        self.marked.len() as u32
    }

    /// Number of the last collective that has a place.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Most bytes of a part of the rings, if the next collective is not to wait for the one before.
    #[inline]
    pub fn most(&self) -> u64 {
        self.ring.most()
    }

    /// Whether every collective that has a place has ended here.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.turn > self.last
    }

    /// The next collective's place.
    #[inline(always)]
    pub fn reserve(&mut self, need: Need) -> Reservation {
        self.last += 1;
        let number = self.last;
        let ahead = match need {
            Need::Lines => self.capacity.lines,
            Need::Slots | Need::Ring(_) => self.capacity.slots,
        };
        let (mut at, mut needs) = (0, (number + 1).saturating_sub(ahead));
        if let Need::Ring(bytes) = need {
            let (from, before) = self.ring.take(number, bytes);
            at = from;
            needs = needs.max(before.map_or(0, |u| u + 1));
        }
        Reservation {
            number,
            at,
            needs,
            is_open: false,
        }
    }

    /// The first collective, and so far the only one, is not run.
    pub fn take_back(&mut self, place: &Reservation) {
        debug_assert_eq!((place.number, self.last, self.turn), (1, 1, 1));
        self.last = 0;
        self.ring = Ring::new(self.capacity.ring, self.capacity.working_set);
    }

    /// Whether a collective may begin; otherwise its wait.
    #[inline(always)]
    pub fn open(&mut self, place: &mut Reservation, flags: &mut impl Flags) -> Option<Wait> {
        if place.is_open {
            return None;
        }
        if self.turn != place.number {
            return Some(Wait::Turn(place.number));
        }
        if self.all_marked < place.needs
            && let Some(member) = self.unmarked(place.number, place.needs, flags)
        {
            return Some(Wait::Flag {
                member,
                number: place.needs,
                word: place.needs << STAGE_BITS,
            });
        }
        place.is_open = true;
        None
    }

    /// A member that has not marked `needs`, as far as can be seen. If a flag has to be read, that
    /// of a later collective is read first, so that it is not needed again soon.
    #[inline(never)]
    fn unmarked(&mut self, now: u64, needs: u64, flags: &mut impl Flags) -> Option<u32> {
        let later = (needs + now) / 2;
        for member in 0..self.members() {
            if self.marked[member as usize] < needs {
                let mut mark = |number: u64| flags.word(member, number) >> STAGE_BITS;
                let mut seen = mark(later);
                if seen < later {
                    seen = mark(needs);
                }
                if seen < needs {
                    return Some(member);
                }
                self.marked[member as usize] = seen;
            }
        }
        self.all_marked = self.marked.iter().copied().min().unwrap_or(now);
        None
    }

    /// Whether a member has come to a stage of this collective; `signature`: of this rank's call.
    #[inline(always)]
    pub(super) fn look(
        &mut self,
        place: &Reservation,
        signature: u64,
        (member, stage): (u32, u32),
        flags: &mut impl Flags,
    ) -> Seen {
        let number = place.number;
        let (word, theirs) = flags.flag(member, number);
        let begun = number << STAGE_BITS;
        let wanted = begun | stage as u64;
        if word >= begun {
            self.marked[member as usize] = number;
            if theirs != signature && theirs != 0 && signature != 0 {
                return Seen::Elsewhere(theirs);
            }
            if word >= wanted {
                return Seen::Yes;
            }
        }
        Seen::NotYet(Wait::Flag {
            member,
            number,
            word: wanted,
        })
    }

    /// This rank has come to a stage.
    #[inline(always)]
    pub(super) fn raise(
        &mut self,
        place: &Reservation,
        signature: u64,
        stage: u32,
        flags: &mut impl Flags,
    ) {
        self.marked[self.own as usize] = place.number;
        flags.raise(place.number, stage, signature);
    }

    /// Whether the condition for which a collective waits has come true.
    #[inline]
    pub fn has_come(&self, wait: Wait, flags: &mut impl Flags) -> bool {
        match wait {
            Wait::Turn(number) => self.turn >= number,
            Wait::Flag {
                member,
                number,
                word,
            } => flags.word(member, number) >= word,
        }
    }

    /// The collective has ended here; the next one's turn has come. Returns whether there is one.
    #[inline(always)]
    pub(super) fn end(&mut self, place: &Reservation) -> bool {
        self.turn = place.number + 1;
        !self.is_idle()
    }
}
