//! Context ids of communicators whose members belong to several worlds (jobs that were started
//! apart).
//!
//! The shares of [`super::ContextPool`] are disjoint within one world; two worlds own the same
//! numbers. This is harmless as long as all members of a communicator belong to one world, because
//! a process belongs to one world. Communicators with members of several worlds take their ids from
//! a range of their own, from [`FIRST`] on, in which no world owns anything.
//!
//! Their members agree on an id by maximum, in two steps:
//!
//! 1. Each member says [`SpanningPool::wanted`]; the greatest is the candidate.
//! 2. Each member says whether the candidate is free there ([`SpanningPool::claim`]). If it is for
//!    all, they have agreed. If not, those who claimed it let go ([`SpanningPool::release`]), and
//!    all continue step 1 as the next attempt.
//!
//! Step 2 is needed because threads of one process may make two communicators at once: then a
//! member's answers to both may lead to one candidate, and only one of them can claim it. Two
//! agreements that disturb each other must not meet again at each attempt. So from the second
//! attempt on, the number that a member wants is further up by an offset that all members of an
//! agreement know, and that members of another agreement do not share (the id of the communicator
//! that this one is made from).

use super::context::{END, STRIDE};
use kw_base::ContextId;
use std::collections::HashSet;

/// The range begins here. Below it are the shares of processes of one world.
pub const FIRST: u32 = END - (1 << 28);

/// Ids in the range.
const COUNT: u32 = (END - FIRST) / STRIDE;

/// State of one process for the ids of communicators that span worlds.
#[derive(Clone, Default, Debug)]
pub struct SpanningPool {
    /// One more than the greatest number that was a candidate here.
    next: u32,
    /// Numbers of live communicators, and of candidates that are claimed.
    live: HashSet<u32>,
}

impl SpanningPool {
    /// Lowest id that this member accepts. `attempt`: how often the members of this agreement have
    /// tried; `agreement`: a number that all of them know. `None`: every id is in use.
    pub fn wanted(&self, agreement: u32, attempt: u32) -> Option<ContextId> {
        let further = agreement.wrapping_mul(attempt) % COUNT;
        let from = (self.next % COUNT + further) % COUNT;
        let mut all = (from..COUNT).chain(0..from);
        all.find(|n| !self.live.contains(n)).map(id)
    }

    /// Claims the candidate; returns whether it was free here. An id outside the range never is.
    pub fn claim(&mut self, candidate: ContextId) -> bool {
        let Some(number) = number(candidate) else {
            return false;
        };
        self.next = self.next.max(number + 1);
        if self.next == COUNT {
            // From now on ids are used again; those that were free for longest come first.
            self.next = 0;
        }
        self.live.insert(number)
    }

    /// The communicator with this id is gone here, or another member could not claim the candidate
    /// that this one has claimed.
    pub fn release(&mut self, id: ContextId) {
        if let Some(number) = number(id) {
            self.live.remove(&number);
        }
    }

    /// Whether an id is one of a communicator that spans worlds.
    pub fn has(id: ContextId) -> bool {
        number(id).is_some()
    }
}

fn id(number: u32) -> ContextId {
    ContextId(FIRST + STRIDE * number)
}

fn number(id: ContextId) -> Option<u32> {
    let at = id.0.checked_sub(FIRST)?;
    (id.0 < END && at.is_multiple_of(STRIDE)).then_some(at / STRIDE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An agreement of some members and its progress.
    struct Agreement {
        number: u32,
        members: Vec<usize>,
        attempt: u32,
        /// The values proposed by the members in this step, in order.
        answers: Vec<(ContextId, bool)>,
        candidate: Option<ContextId>,
    }

    impl Agreement {
        /// The next member sends its value or answer; returns the id once all have claimed it.
        fn step(&mut self, pools: &mut [SpanningPool]) -> Option<ContextId> {
            let pool = &mut pools[self.members[self.answers.len()]];
            self.answers.push(match self.candidate {
                None => (pool.wanted(self.number, self.attempt).unwrap(), true),
                Some(candidate) => (candidate, pool.claim(candidate)),
            });
            if self.answers.len() < self.members.len() {
                return None;
            }
            let answers = std::mem::take(&mut self.answers);
            let Some(candidate) = self.candidate.take() else {
                self.candidate = answers.iter().map(|s| s.0).max();
                return None;
            };
            if answers.iter().all(|s| s.1) {
                return Some(candidate);
            }
            let claimed = self.members.iter().zip(&answers).filter(|(_, s)| s.1);
            claimed.for_each(|(&m, _)| pools[m].release(candidate));
            self.attempt += 1;
            None
        }
    }

    /// Four processes make and free communicators at once, each agreement going on when the dice
    /// say so: no two live communicators that share a member have the same id, and every agreement
    /// ends.
    fn agree(masks: &[u8], dice: &[u8], worn: u32) {
        const N: usize = 4;
        let mut pools = vec![SpanningPool::default(); N];
        pools[0].next = worn;
        let mut live: Vec<(ContextId, Vec<usize>)> = Vec::new();
        let members = |mask: u8| (0..N).filter(|m| mask >> m & 1 == 1).collect::<Vec<_>>();
        let mut going: Vec<Agreement> = (0..)
            .zip(masks)
            .map(|(number, &mask)| Agreement {
                number,
                members: members(mask),
                attempt: 0,
                answers: Vec::new(),
                candidate: None,
            })
            .filter(|a| !a.members.is_empty())
            .collect();
        let mut steps = 0;
        let mut dice = dice.iter().cycle();
        while !going.is_empty() {
            let at = *dice.next().unwrap() as usize % going.len();
            if let Some(id) = going[at].step(&mut pools) {
                let done = going.swap_remove(at);
                assert!(SpanningPool::has(id) && id.0 < END);
                for (other, theirs) in &live {
                    let share = theirs.iter().any(|m| done.members.contains(m));
                    assert!(*other != id || !share, "{id:?} twice");
                }
                live.push((id, done.members));
                if live.len() > 5 {
                    let (id, members) = live.remove(0);
                    members.iter().for_each(|&m| pools[m].release(id));
                }
            }
            steps += 1;
            assert!(steps < 100_000, "agreements disturb each other for ever");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn live_ids_differ_on_every_member(
            masks in prop::collection::vec(any::<u8>(), 1..20),
            dice in prop::collection::vec(any::<u8>(), 1..50),
            worn in prop::sample::select(vec![0, 7, COUNT - 3, COUNT - 1]),
        ) {
            agree(&masks, &dice, worn);
        }
    }

    #[test]
    fn agreements_in_step_with_each_other_end() {
        agree(&[0b11, 0b11, 0b11, 0b11], &[0, 1, 2, 3], 0);
        agree(&[0b11, 0b110, 0b101], &[0, 1, 2], 0);
    }

    #[test]
    fn no_share_of_a_world_reaches_into_the_range() {
        use crate::comm::ContextPool;
        use kw_base::Peer;
        for size in [1, 7, 100_000] {
            let last = ContextPool::new(Peer(size - 1), size).last();
            assert!(!SpanningPool::has(last) && last.0 < FIRST);
        }
        assert_eq!(number(id(COUNT - 1)), Some(COUNT - 1));
        assert_eq!(number(ContextId(END)), None);
    }

    #[test]
    fn ids_are_used_again_when_all_were() {
        let mut pool = SpanningPool {
            next: COUNT - 1,
            ..SpanningPool::default()
        };
        let last = pool.wanted(0, 0).unwrap();
        assert!(last == id(COUNT - 1) && pool.claim(last) && !pool.claim(last));
        let again = pool.wanted(0, 0).unwrap();
        assert_eq!(again, id(0));
        pool.release(last);
        assert!(pool.claim(last));
    }
}
