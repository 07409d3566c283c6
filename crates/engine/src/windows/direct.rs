//! Memory that this rank reads and writes itself: its own, and that of ranks of its host where the
//! window's memory is shared. Operations on it end when they are issued.

use super::At;
use super::access::in_pieces;
use super::combine::{Combine, compare_and_swap};
use super::locks::Locks;
use kw_path::shm::window::{Locking, SharedMemory, WindowLock};
use kw_proto::rma::LockMode;
use kw_sys::buf::Buf;
use kw_sys::reduce::Op;
use kw_types::layout::Basic;
use std::sync::Arc;

/// The ranks whose memory this rank shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub memory: Arc<SharedMemory>,
    /// Position of each rank of the window in it.
    places: Vec<Option<u32>>,
}

impl Shared {
    pub fn new(memory: Arc<SharedMemory>, ranks: &[u32], size: u32) -> Shared {
        let mut places = vec![None; size as usize];
        for (place, &rank) in ranks.iter().enumerate() {
            places[rank as usize] = Some(place as u32);
        }
        Shared { memory, places }
    }

    /// The lock of this rank's memory.
    pub fn own_lock(&self) -> WindowLock<'_> {
        self.memory.lock(self.memory.index())
    }

    /// The ranks of the window that hold the lock at a place, as far as they share the memory or
    /// hold it exclusively.
    pub fn holders(&self, place: usize) -> Vec<u32> {
        let lock = self.memory.lock(place);
        match lock.held() {
            (0, _) => Vec::new(),
            (_, Some(alone)) => vec![alone],
            _ => {
                let has = |&rank: &u32| self.place(rank).is_some_and(|p| lock.is_shared_by(p));
                self.ranks().filter(has).collect()
            }
        }
    }

    /// Position of a rank in it.
    pub fn place(&self, rank: u32) -> Option<usize> {
        Some((*self.places.get(rank as usize)?)? as usize)
    }

    /// Ranks whose memory is shared.
    pub fn ranks(&self) -> impl Iterator<Item = u32> {
        let shared = |(rank, place): (usize, &Option<u32>)| place.map(|_| rank as u32);
        self.places.iter().enumerate().filter_map(shared)
    }
}

/// The memory in reach, as this rank uses it.
#[derive(Debug)]
pub(super) struct Near {
    me: u32,
    pub shared: Option<Arc<Shared>>,
    /// Ranks whose lock this rank has taken itself.
    pub held: Vec<u32>,
}

impl Near {
    pub fn new(me: u32, shared: Option<Arc<Shared>>) -> Near {
        let held = Vec::new();
        Near { me, shared, held }
    }

    /// Position of a rank in the shared memory.
    pub fn place_of(&self, rank: u32) -> Option<usize> {
        self.shared.as_ref()?.place(rank)
    }

    /// Whether operations on a rank's memory need no message.
    #[inline]
    pub fn is_direct(&self, rank: u32) -> bool {
        rank == self.me || self.place_of(rank).is_some()
    }

    /// This rank, and those whose memory it shares.
    pub fn ranks(&self) -> Vec<u32> {
        match &self.shared {
            Some(shared) => shared.ranks().collect(),
            None => vec![self.me],
        }
    }

    /// The memory of an operation on another rank whose memory is shared; its bounds have been
    /// checked.
    pub fn memory_of(&self, at: i64, to: &At<'_>) -> Option<Buf> {
        let (base, _) = self.shared.as_ref()?.memory.part(self.place_of(to.rank)?);
        Some(Buf::typed(base.assume_offset(at), to.count, to.layout))
    }

    /// Runs `what` while no other rank combines with that memory.
    fn combining<T>(&self, rank: u32, what: impl FnOnce() -> T) -> T {
        match (&self.shared, self.place_of(rank)) {
            (Some(shared), Some(place)) => shared.memory.combine(place, what),
            // Others come through this rank, one after the other.
            _ => what(),
        }
    }

    /// Combines operands with memory in reach; `result`: receives the old data.
    pub fn combine(
        &self,
        (rank, target): (u32, &Buf),
        (operand, result): (&Buf, Option<&Buf>),
        (op, basic): (Op, Basic),
        scratch: &mut Vec<u8>,
    ) {
        let Some(combine) = Combine::find(op, basic) else {
            return;
        };
        in_pieces(
            scratch,
            operand,
            (target.len(), basic),
            |from, some, data| {
                let part = target.slice(from, some);
                self.combining(rank, || {
                    if let Some(result) = result {
                        part.copy_to(0, result, from, some);
                    }
                    combine.run(data, &part);
                });
            },
        );
    }

    /// Replaces an element in reach that equals `compare`.
    pub fn swap(&self, rank: u32, target: &Buf, (compare, swap): (&[u8], &[u8]), result: &Buf) {
        self.combining(rank, || {
            let before = compare_and_swap(target, (compare, swap));
            result.write(0, &before[..compare.len()]);
        });
    }

    /// Takes the lock of memory in reach, if it is free and no rank waits for it; `own`: the lock
    /// of this rank's memory.
    pub fn try_lock(&mut self, own: &mut Locks, rank: u32, mode: LockMode) -> bool {
        let locked = match (&self.shared, self.place_of(rank)) {
            _ if rank == self.me => own.try_lock(rank, mode),
            (Some(shared), Some(place)) => {
                let how = match mode {
                    LockMode::Exclusive => Locking::Alone(self.me),
                    LockMode::Shared => Locking::Shared(shared.memory.index()),
                };
                shared.memory.lock(place).try_lock(how, false)
            }
            _ => false,
        };
        if locked {
            self.held.push(rank);
        }
        locked
    }

    /// This rank no longer holds a lock; returns whether it did.
    pub fn forget_lock(&mut self, rank: u32) -> bool {
        let at = self.held.iter().position(|&r| r == rank);
        at.map(|at| self.held.swap_remove(at)).is_some()
    }

    /// Gives back the lock of another rank's shared memory; returns whether a rank waits for it.
    pub fn unlock(&self, rank: u32) -> bool {
        match (&self.shared, self.place_of(rank)) {
            (Some(shared), Some(place)) => {
                let own = shared.memory.index();
                shared.memory.lock(place).unlock(Some(own))
            }
            _ => false,
        }
    }
}
