//! The lock of this rank's memory (MPI_Win_lock): its holders and the ranks that wait for it.
//!
//! Where ranks of the host share the memory, a rank that finds the lock free takes it in shared
//! memory; the others ask this rank, as ranks of other hosts do. It grants the lock in the order of
//! the requests, and while a request waits, no rank takes the lock directly.

use super::direct::Shared;
use kw_path::shm::window::Locking;
use kw_proto::rma::{LockMode, LockQueue};
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(super) enum Locks {
    /// All ask this rank.
    Asked(LockQueue),
    /// The lock is in shared memory.
    Shared(SharedLock),
}

/// A lock in shared memory.
#[derive(Debug)]
pub(super) struct SharedLock {
    shared: Arc<Shared>,
    waiting: VecDeque<(u32, LockMode)>,
    /// Ranks that hold it with others and do not share the memory.
    far: Vec<u32>,
}

impl Locks {
    pub fn new(shared: Option<Arc<Shared>>) -> Locks {
        match shared {
            None => Locks::Asked(LockQueue::default()),
            Some(shared) => Locks::Shared(SharedLock {
                shared,
                waiting: VecDeque::new(),
                far: Vec::new(),
            }),
        }
    }

    /// Takes the lock if it is free and no rank waits for it.
    pub fn try_lock(&mut self, who: u32, mode: LockMode) -> bool {
        match self {
            Locks::Asked(queue) => queue.may_have(mode) && queue.request(who, mode),
            Locks::Shared(lock) => lock.try_lock(who, mode, false),
        }
    }

    /// Asks for the lock. Returns whether the rank has it now, and adds others that have waited and
    /// have it now.
    pub fn request(&mut self, who: u32, mode: LockMode, others: &mut Vec<u32>) -> bool {
        match self {
            Locks::Asked(queue) => queue.request(who, mode),
            Locks::Shared(lock) => {
                lock.waiting.push_back((who, mode));
                lock.shared.own_lock().set_awaited(true);
                let mut granted = lock.grant();
                let own = granted.iter().position(|&g| g == who);
                own.map(|at| granted.swap_remove(at));
                others.append(&mut granted);
                own.is_some()
            }
        }
    }

    /// Gives the lock back; returns the ranks that have it now.
    pub fn release(&mut self, who: u32) -> Vec<u32> {
        match self {
            Locks::Asked(queue) => queue.release(who),
            Locks::Shared(lock) => lock.release(who),
        }
    }

    /// Whether a rank waits for the lock.
    pub fn is_awaited(&self) -> bool {
        match self {
            Locks::Asked(queue) => queue.is_awaited(),
            Locks::Shared(lock) => !lock.waiting.is_empty(),
        }
    }

    /// The ranks that hold the lock.
    pub fn holders(&self) -> Vec<u32> {
        match self {
            Locks::Asked(queue) => queue.holders().collect(),
            Locks::Shared(lock) => {
                let mut all = lock.shared.holders(lock.shared.memory.index());
                all.extend(&lock.far);
                all
            }
        }
    }

    /// Grants the lock to waiting ranks, as far as it is free; returns the ranks that have it now.
    pub fn grant(&mut self) -> Vec<u32> {
        match self {
            Locks::Asked(_) => Vec::new(),
            Locks::Shared(lock) => lock.grant(),
        }
    }
}

impl SharedLock {
    fn try_lock(&mut self, who: u32, mode: LockMode, granting: bool) -> bool {
        let how = match (mode, self.shared.place(who)) {
            (LockMode::Exclusive, _) => Locking::Alone(who),
            (LockMode::Shared, Some(place)) => Locking::Shared(place),
            (LockMode::Shared, None) => Locking::SharedFar,
        };
        let locked = self.shared.own_lock().try_lock(how, granting);
        if locked && how == Locking::SharedFar {
            self.far.push(who);
        }
        locked
    }

    fn release(&mut self, who: u32) -> Vec<u32> {
        if let Some(at) = self.far.iter().position(|&far| far == who) {
            self.far.swap_remove(at);
        }
        match self.shared.own_lock().unlock(self.shared.place(who)) {
            true => self.grant(),
            false => Vec::new(),
        }
    }

    fn grant(&mut self) -> Vec<u32> {
        let mut granted = Vec::new();
        while let Some(&(next, mode)) = self.waiting.front() {
            if !self.try_lock(next, mode, true) {
                return granted;
            }
            self.waiting.pop_front();
            granted.push(next);
        }
        self.shared.own_lock().set_awaited(false);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::LockMode::{Exclusive, Shared as WithOthers};
    use super::*;
    use kw_path::shm::window::SharedMemoryFile;

    /// Rank 1 of four; ranks 0 to 2 share memory.
    fn locks() -> Locks {
        let file = SharedMemoryFile::new().unwrap();
        let memory = file.make(&[8, 8, 8], false).unwrap();
        Locks::new(Some(Arc::new(Shared::new(memory, &[1, 0, 2], 4))))
    }

    #[test]
    fn a_rank_that_shares_the_lock_is_known_and_its_share_can_be_given_back_for_it() {
        let (mut locks, mut others) = (locks(), Vec::new());
        for rank in [2, 3] {
            assert!(locks.request(rank, WithOthers, &mut others));
        }
        assert_eq!(locks.holders(), [2, 3]);
        assert!(!locks.request(0, Exclusive, &mut others));
        assert!(!locks.request(2, WithOthers, &mut others), "behind rank 0");
        assert!(locks.is_awaited());
        assert_eq!(locks.release(3), []);
        assert_eq!(locks.release(2), [0]);
        assert_eq!(locks.holders(), [0]);
        // Rank 0 and then rank 2, which has waited, have died.
        assert_eq!(locks.release(0), [2]);
        assert_eq!((locks.holders(), locks.is_awaited()), (vec![2], false));
        assert!(!locks.request(1, Exclusive, &mut others));
        assert_eq!(locks.release(2), [1]);
        assert_eq!(others, []);
    }
}
