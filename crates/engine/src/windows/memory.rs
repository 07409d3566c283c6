//! The memory that a rank exposes in a window.

use kw_path::shm::window::SharedMemory;
use kw_proto::rma::Placed;
use kw_sys::buf::{Addr, Buf};
use std::sync::Arc;

/// The memory of a window.
#[derive(Clone, Debug)]
pub enum Memory {
    /// The program's.
    Lent {
        /// Its first byte.
        base: Addr,
        /// Bytes.
        size: u64,
    },
    /// Allocated for the window.
    Own(Buf),
    /// Shared with ranks of the host.
    Shared {
        /// The memory of all of them.
        memory: Arc<SharedMemory>,
        /// The rank in the window of each place in it.
        ranks: Vec<u32>,
    },
    /// The attached regions.
    Dynamic,
}

/// A region that the program has attached to a dynamic window.
#[derive(Clone, Copy, Debug)]
struct Attached {
    base: Addr,
    size: u64,
}

impl Attached {
    fn first(&self) -> i128 {
        self.base.bits() as i128
    }

    fn end(&self) -> i128 {
        self.first() + self.size as i128
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Area {
    memory: Memory,
    /// Attached regions, by address.
    attached: Vec<Attached>,
}

impl Area {
    pub fn new(memory: Memory) -> Area {
        Area {
            memory,
            attached: Vec::new(),
        }
    }

    /// Base of displacements.
    pub fn base(&self) -> usize {
        match &self.memory {
            Memory::Lent { base, .. } => base.bits(),
            Memory::Own(buf) => buf.contiguous().unwrap_or_default(),
            Memory::Shared { memory, .. } => memory.part(memory.index()).0.bits(),
            Memory::Dynamic => 0,
        }
    }

    /// Whether any byte of a buffer is exposed.
    pub fn shares_memory(&self, buf: &Buf) -> bool {
        match &self.memory {
            Memory::Lent { base, size } => Buf::bytes(*base, *size).shares_memory(buf),
            Memory::Own(own) => own.shares_memory(buf),
            Memory::Shared { memory, .. } => {
                let (base, size) = memory.part(memory.index());
                Buf::bytes(base, size).shares_memory(buf)
            }
            Memory::Dynamic => {
                let mut all = self.attached.iter();
                all.any(|a| Buf::bytes(a.base, a.size).shares_memory(buf))
            }
        }
    }

    pub fn is_dynamic(&self) -> bool {
        matches!(self.memory, Memory::Dynamic)
    }

    /// Attaches a region; returns whether it overlaps none that is attached.
    pub fn attach(&mut self, base: Addr, size: u64) -> bool {
        let new = Attached { base, size };
        let mut others = self.attached.iter();
        if others.any(|a| a.first() < new.end() && new.first() < a.end() || a.base == base) {
            return false;
        }
        let at = self.attached.partition_point(|a| a.first() < new.first());
        self.attached.insert(at, new);
        true
    }

    /// Detaches the region that begins at an address; returns whether there was one.
    pub fn detach(&mut self, base: Addr) -> bool {
        let at = self.attached.iter().position(|a| a.base == base);
        at.map(|at| self.attached.remove(at)).is_some()
    }

    /// The data of a place, if all of it is exposed.
    #[inline]
    pub fn find(&self, place: &Placed<'_>) -> Option<Buf> {
        match (&self.memory, place.layout) {
            (&Memory::Lent { base, size }, None) if place.count != 0 => {
                // A negative first byte is a large one, too.
                let end = (place.at as u64).checked_add(place.count)?;
                (end <= size).then(|| lent(base.assume_offset(place.at), place))
            }
            _ => self.find_any(place),
        }
    }

    fn find_any(&self, place: &Placed<'_>) -> Option<Buf> {
        let len = place.len()?;
        let Some((first, end)) = place.reach() else {
            return Some(Buf::EMPTY);
        };
        let size = match &self.memory {
            Memory::Lent { size, .. } => *size,
            Memory::Own(buf) => buf.len(),
            Memory::Shared { memory, .. } => memory.part(memory.index()).1,
            Memory::Dynamic => return self.find_attached(place, len, (first, end)),
        };
        if first < 0 || end > size as i128 {
            return None;
        }
        Some(match (&self.memory, place.layout) {
            (Memory::Own(buf), Some(layout)) => buf.typed_at(place.at, place.count, layout),
            (Memory::Own(buf), None) => buf.slice(place.at as u64, len),
            (Memory::Lent { base, .. }, _) => lent(base.assume_offset(place.at), place),
            (Memory::Shared { memory, .. }, _) => {
                let (base, _) = memory.part(memory.index());
                lent(base.assume_offset(place.at), place)
            }
            (Memory::Dynamic, _) => return None,
        })
    }

    /// Runs `what` while no other rank combines with this rank's memory.
    pub fn combining<T>(&self, what: impl FnOnce() -> T) -> T {
        match &self.memory {
            Memory::Shared { memory, .. } => memory.combine(memory.index(), what),
            // All ranks come through the owner of the lock.
            _ => what(),
        }
    }

    /// The same if displacements are addresses.
    fn find_attached(
        &self,
        place: &Placed<'_>,
        len: u64,
        (first, end): (i128, i128),
    ) -> Option<Buf> {
        let after = self.attached.partition_point(|a| a.first() <= first);
        let region = self.attached.get(after.checked_sub(1)?)?;
        let mut reached = region.end();
        for next in &self.attached[after..] {
            if reached >= end || next.first() != reached {
                break;
            }
            reached = next.end();
        }
        let away = place.at as i128 - region.first();
        let away = i64::try_from(away).ok().filter(|_| reached >= end)?;
        (len != 0).then(|| lent(region.base.assume_offset(away), place))
    }
}

fn lent(at: Addr, place: &Placed<'_>) -> Buf {
    match place.layout {
        Some(layout) => Buf::typed(at, place.count, layout),
        None => Buf::bytes(at, place.count),
    }
}
