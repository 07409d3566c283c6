//! Allocation of context ids for new communicators.
//!
//! The id must differ from that of every other live communicator of every member. Each process owns
//! a share of the ids (its serial numbers, interleaved with those of all other processes), and the
//! first member of a new communicator's group proposes one of its own. A *fresh* id was never used
//! before, so no member can object: creating a communicator takes one broadcast, and two threads
//! that create two communicators at once, on any two processes, never wait for one another (as they
//! would if all members had to lend out one mask of free ids together).
//!
//! Only when a process has used up its share (millions of communicators), it proposes an id that it
//! used before and that is free *here*; then each member answers whether it is free *there* too,
//! and the proposer goes on until all agree. Ids are reused in the order in which they were freed,
//! so the first proposal nearly always stands.
//!
//! This applies to communicators of one world, the processes that were started together.
//! Communicators whose members belong to several worlds take ids from [`super::SpanningPool`].
//!
//! An id stands for [`STRIDE`] contexts: point-to-point, collectives, and two for making
//! communicators.

use super::spanning::FIRST;
use kw_base::{ContextId, Peer};
use std::collections::VecDeque;

/// Context ids of communicators are multiples of this.
pub const STRIDE: u32 = 4;
/// MPI_COMM_WORLD's.
pub const WORLD: ContextId = ContextId(0);
/// MPI_COMM_SELF's; every process has its own, and messages to oneself never meet others.
pub const SELF: ContextId = ContextId(4);
/// For making communicators without a parent (MPI_Comm_create_from_group). Tags come from the
/// caller's string.
pub const BOOTSTRAP: ContextId = ContextId(8);
/// Stands for the id of a communicator that does not know it yet. No process has it in its share.
pub const UNKNOWN: ContextId = ContextId(12);
/// The first ids are constants; this is their number.
const RESERVED: u32 = 16;

/// An id proposed for a new communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// The id.
    pub id: ContextId,
    /// Never used before: needs no agreement.
    pub fresh: bool,
}

impl Proposal {
    /// The proposal as one number: ids are multiples of four, so the lowest bit is free for
    /// `fresh`.
    pub fn to_bits(self) -> u32 {
        self.id.0 | self.fresh as u32
    }

    /// Inverse of [`Proposal::to_bits`].
    pub fn from_bits(bits: u32) -> Proposal {
        Proposal {
            id: ContextId(bits & !(STRIDE - 1)),
            fresh: bits & 1 == 1,
        }
    }
}

/// Limit of all ids, including those of several worlds; a frame that names an id from here on is
/// invalid.
pub(super) const END: u32 = 1 << 31;

/// One process's share of the context ids.
#[derive(Clone, Debug)]
pub struct ContextPool {
    me: u32,
    size: u32,
    next: u32,
    unused: Vec<u32>,
    freed: VecDeque<u32>,
    limit: u32,
}

impl ContextPool {
    /// The share of process `me` in a job of `size`.
    pub fn new(me: Peer, size: u32) -> ContextPool {
        ContextPool {
            me: me.0,
            size: size.max(1),
            next: 0,
            unused: Vec::new(),
            freed: VecDeque::new(),
            limit: (FIRST / STRIDE - RESERVED) / size.max(1) - 1,
        }
    }

    /// An id of this process that is free here; `None` when every one of them is in use.
    pub fn propose(&mut self) -> Option<Proposal> {
        if let Some(serial) = self.unused.pop() {
            return Some(self.proposal(serial, true));
        }
        if self.next < self.limit {
            self.next += 1;
            return Some(self.proposal(self.next - 1, true));
        }
        let serial = self.freed.pop_front()?;
        Some(self.proposal(serial, false))
    }

    /// A fresh id of this process, for callers that cannot ask the members (MPI_Comm_idup); `None`
    /// when all were used before.
    pub fn propose_fresh(&mut self) -> Option<ContextId> {
        let fresh = !self.unused.is_empty() || self.next < self.limit;
        fresh.then(|| self.propose()).flatten().map(|p| p.id)
    }

    /// The proposal was not needed, or a member objected.
    pub fn take_back(&mut self, proposal: Proposal) {
        let Some(serial) = self.serial(proposal.id) else {
            return;
        };
        match proposal.fresh {
            true if serial + 1 == self.next => self.next = serial,
            true => self.unused.push(serial),
            false => self.freed.push_back(serial),
        }
    }

    /// The communicator with this id is gone here. Ids that other processes chose are theirs to
    /// reuse.
    pub fn release(&mut self, id: ContextId) {
        if let Some(serial) = self.serial(id) {
            self.freed.push_back(serial);
        }
    }

    /// The greatest id of this share.
    #[cfg(test)]
    pub(super) fn last(&self) -> ContextId {
        self.proposal(self.limit - 1, true).id
    }

    fn proposal(&self, serial: u32, fresh: bool) -> Proposal {
        Proposal {
            id: ContextId(STRIDE * (RESERVED + serial * self.size + self.me)),
            fresh,
        }
    }

    fn serial(&self, id: ContextId) -> Option<u32> {
        let number = (id.0 / STRIDE).checked_sub(RESERVED)?;
        (number % self.size == self.me && self.me < self.size).then_some(number / self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn small(me: u32, size: u32, limit: u32) -> ContextPool {
        ContextPool {
            limit,
            ..ContextPool::new(Peer(me), size)
        }
    }

    #[test]
    fn shares_never_overlap_and_leave_the_constants_alone() {
        let mut seen = HashSet::from([WORLD, SELF, BOOTSTRAP, UNKNOWN]);
        for me in 0..7 {
            let mut pool = small(me, 7, 20);
            while let Some(p) = pool.propose() {
                assert!(p.fresh && p.id.0 % STRIDE == 0);
                assert!(seen.insert(p.id), "{:?} twice", p.id);
                assert_eq!(Proposal::from_bits(p.to_bits()), p);
            }
        }
    }

    #[test]
    fn the_largest_serial_of_a_large_job_fits() {
        let size = 100_000;
        let mut pool = ContextPool::new(Peer(size - 1), size);
        pool.next = pool.limit - 1;
        let p = pool.propose().unwrap();
        assert_eq!(pool.serial(p.id), Some(pool.limit - 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Any number of processes make and free communicators of any members in any order, each
        /// freeing its own in its own time: no two live ones that share a member have the same id.
        #[test]
        fn live_ids_differ_on_every_member(ops in prop::collection::vec(any::<(u8, u8, u8)>(), 1..300)) {
            const N: usize = 4;
            let mut pools: Vec<ContextPool> = (0..N as u32).map(|me| small(me, N as u32, 3)).collect();
            let mut live: Vec<Vec<ContextId>> = vec![Vec::new(); N];
            for (what, mask, pick) in ops {
                let members: Vec<usize> = (0..N).filter(|m| mask >> m & 1 == 1).collect();
                if what % 2 == 0 && !members.is_empty() {
                    for _ in 0..8 {
                        let Some(p) = pools[members[0]].propose() else { break };
                        let free = members.iter().all(|&m| !live[m].contains(&p.id));
                        prop_assert!(free || !p.fresh, "{:?} is fresh and yet in use", p.id);
                        if free {
                            members.iter().for_each(|&m| live[m].push(p.id));
                            break;
                        }
                        pools[members[0]].take_back(p);
                    }
                } else {
                    let m = mask as usize % N;
                    if !live[m].is_empty() {
                        let at = pick as usize % live[m].len();
                        let id = live[m].swap_remove(at);
                        pools[m].release(id);
                    }
                }
            }
        }
    }
}
