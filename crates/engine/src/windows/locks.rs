//! The lock of this rank's memory (MPI_Win_lock): its holders and the ranks that wait for it.
//!
//! Where ranks of the host share the memory, a rank that finds the lock free takes it in shared
//! memory; the others ask this rank, as ranks of other hosts do. It grants the lock in the order of
//! the requests, and while a request waits, no rank takes the lock directly.

use kw_path::shm::window::SharedMemory;
use kw_proto::rma::{LockMode, LockQueue};
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(super) enum Locks {
    /// All ask this rank.
    Asked(LockQueue),
    /// The lock lies in shared memory.
    Shared {
        memory: Arc<SharedMemory>,
        waiting: VecDeque<(u32, LockMode)>,
    },
}

impl Locks {
    pub fn new(memory: Option<Arc<SharedMemory>>) -> Locks {
        match memory {
            None => Locks::Asked(LockQueue::default()),
            Some(memory) => Locks::Shared {
                memory,
                waiting: VecDeque::new(),
            },
        }
    }

    /// Takes the lock if it is free and no rank waits for it.
    pub fn try_lock(&mut self, who: u32, mode: LockMode) -> bool {
        match self {
            Locks::Asked(queue) => queue.may_have(mode) && queue.request(who, mode),
            Locks::Shared { memory, .. } => try_shared(memory, who, mode, false),
        }
    }

    /// Asks for the lock. Returns the ranks that have it now: this one, or others that have waited.
    pub fn request(&mut self, who: u32, mode: LockMode) -> Vec<u32> {
        match self {
            Locks::Asked(queue) => match queue.request(who, mode) {
                true => vec![who],
                false => Vec::new(),
            },
            Locks::Shared { memory, waiting } => {
                waiting.push_back((who, mode));
                memory.lock(memory.index()).set_awaited(true);
                self.grant()
            }
        }
    }

    /// Gives the lock back; who has it now.
    pub fn release(&mut self, who: u32) -> Vec<u32> {
        match self {
            Locks::Asked(queue) => queue.release(who),
            Locks::Shared { memory, .. } => match memory.lock(memory.index()).unlock() {
                true => self.grant(),
                false => Vec::new(),
            },
        }
    }

    /// Whether a rank waits for the lock.
    pub fn is_awaited(&self) -> bool {
        match self {
            Locks::Asked(queue) => queue.is_awaited(),
            Locks::Shared { waiting, .. } => !waiting.is_empty(),
        }
    }

    /// How many hold the lock, and the ranks of these that are known.
    pub fn holders(&self) -> (u32, Vec<u32>) {
        match self {
            Locks::Asked(queue) => {
                let all: Vec<u32> = queue.holders().collect();
                (all.len() as u32, all)
            }
            Locks::Shared { memory, .. } => {
                let (count, alone) = memory.lock(memory.index()).held();
                (count, alone.into_iter().collect())
            }
        }
    }

    /// Grants the lock to those who wait, as far as it is free; who has it now.
    pub fn grant(&mut self) -> Vec<u32> {
        let Locks::Shared { memory, waiting } = self else {
            return Vec::new();
        };
        let mut granted = Vec::new();
        while let Some(&(next, mode)) = waiting.front() {
            if !try_shared(memory, next, mode, true) {
                return granted;
            }
            waiting.pop_front();
            granted.push(next);
        }
        memory.lock(memory.index()).set_awaited(false);
        granted
    }
}

fn try_shared(memory: &SharedMemory, who: u32, mode: LockMode, granting: bool) -> bool {
    let alone = (mode == LockMode::Exclusive).then_some(who);
    memory.lock(memory.index()).try_lock(alone, granting)
}
