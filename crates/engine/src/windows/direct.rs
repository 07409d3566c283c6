//! Memory that this rank reads and writes itself: its own, and that of ranks of its host where the
//! window's memory is shared. Operations on it end when they are issued.

use super::{At, Window};
use crate::messages::Messages;
use kw_path::shm::window::{Locking, SharedMemory, WindowLock};
use kw_proto::rma::{Frame, LockMode, Placed};
use kw_sys::buf::Buf;
use kw_sys::reduce::{Kernel, Op};
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

impl Window {
    /// Position of a rank in the shared memory.
    pub(super) fn place_of(&self, rank: u32) -> Option<usize> {
        self.shared.as_ref()?.place(rank)
    }

    /// Whether operations on a rank's memory need no message.
    #[inline]
    pub(super) fn is_direct(&self, rank: u32) -> bool {
        rank == self.me || self.place_of(rank).is_some()
    }

    /// The memory of an operation whose target is in reach; its bounds have been checked. For a
    /// dynamic window: `None` if it is not attached.
    pub(super) fn reach(&self, at: i64, to: &At<'_>) -> Option<Buf> {
        if to.rank == self.me {
            return self.area.find(&Placed {
                at,
                count: to.count,
                layout: Some(to.layout),
            });
        }
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
    pub(super) fn combine(
        &mut self,
        rank: u32,
        target: &Buf,
        (operand, result): (&Buf, Option<&Buf>),
        (op, basic): (Op, Basic),
    ) {
        let Some(kernel) = Kernel::find(op, basic) else {
            return;
        };
        let len = target.len();
        self.in_pieces(operand, len, basic, |window, from, some, data| {
            let part = target.slice(from, some);
            window.combining(rank, || {
                if let Some(result) = result {
                    part.copy_to(0, result, from, some);
                }
                if op != Op::NoOp {
                    kernel.combine_packed(basic, data, &part);
                }
            });
        });
    }

    /// Replaces an element in reach that equals `compare`.
    pub(super) fn swap(
        &mut self,
        rank: u32,
        target: &Buf,
        (compare, swap): (&[u8], &[u8]),
        result: &Buf,
    ) {
        self.combining(rank, || {
            let mut now = [0; 32];
            let now = &mut now[..compare.len()];
            target.read(0, now);
            if now == compare {
                target.write(0, swap);
            }
            result.write(0, now);
        });
    }

    /// Takes the lock of memory in reach, if it is free and no rank waits for it.
    pub(super) fn try_lock(&mut self, rank: u32, mode: LockMode) -> bool {
        let locked = match (&self.shared, self.place_of(rank)) {
            _ if rank == self.me => self.locks.try_lock(rank, mode),
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

    /// Gives back the lock of memory in reach, if this rank holds it.
    pub(super) fn unlock_direct(&mut self, messages: &mut Messages, rank: u32) {
        let Some(at) = self.held.iter().position(|&r| r == rank) else {
            return;
        };
        self.held.swap_remove(at);
        if rank == self.me {
            let granted = self.locks.release(rank);
            self.granted.extend(granted);
            self.pass_on(messages);
            return;
        }
        let awaited = match (&self.shared, self.place_of(rank)) {
            (Some(shared), Some(place)) => {
                let own = shared.memory.index();
                shared.memory.lock(place).unlock(Some(own))
            }
            _ => false,
        };
        if awaited {
            self.awaited(messages, rank);
        }
    }

    /// The lock of memory in reach was given back, and a rank waits for it.
    pub(super) fn awaited(&mut self, messages: &mut Messages, rank: u32) {
        if rank == self.me {
            let granted = self.locks.grant();
            self.granted.extend(granted);
            return self.pass_on(messages);
        }
        let mut frames = Vec::new();
        Frame::Wake.encode(&mut frames);
        self.say(messages, rank, &frames);
    }

    /// Gives back the lock of this rank's memory if a rank holds it that has died, and others wait;
    /// returns whether there was one.
    pub(super) fn free_lock_of_dead(&mut self, messages: &mut Messages) -> bool {
        if !self.locks.is_awaited() {
            return false;
        }
        let peers = &messages.machine.endpoint.peers;
        let is_gone = |&rank: &u32| {
            rank < self.group.size() && peers.why_gone(self.group.peer(rank)).is_some()
        };
        let holders = self.locks.holders();
        let Some(dead) = holders.into_iter().find(is_gone) else {
            return false;
        };
        let granted = self.locks.release(dead);
        self.granted.extend(granted);
        self.pass_on(messages);
        true
    }

    /// Wakes the ranks that have got the lock.
    pub(super) fn pass_on(&mut self, messages: &mut Messages) {
        while !self.granted.is_empty() {
            let granted = std::mem::take(&mut self.granted);
            let (target, mut side) = self.exposed(messages);
            target.granted(granted, &mut side);
        }
    }
}
