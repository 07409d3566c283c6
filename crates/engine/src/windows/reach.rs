//! Memory in reach, for calls that take no lock of the library.
//!
//! A [`Reachable`] is published under the window's handle ([`kw_sys::published`]). It knows where
//! the memory of each rank of the host lies, and which of it may be accessed in the epoch that is
//! open. What is not so simple, wrong arguments among it, is left to the ordinary way, which starts
//! from the beginning: here nothing has happened then.
//!
//! The owner of the library's lock writes the epoch ([`Window::publish_epoch`]). The one thing that
//! others find out is that an epoch between fences has been used ([`Window::adopt`]).

use super::{Extent, Window};
use kw_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kw_path::shm::window::SharedMemory;
use kw_proto::rma::Access;
use kw_sys::buf::Addr;
use kw_sys::reduce::{Kernel, Op};
use kw_sys::region::Region;
use kw_types::layout::Basic;
use std::sync::Arc;

/// The epoch that is open, in a word: its kind, and in the lower half a rank.
mod epoch {
    /// None; or only the owner of the library's lock knows.
    pub const ASK: u64 = 0;
    /// Between two fences.
    pub const FENCE: u64 = 1 << 32;
    /// The same, with operations in it.
    pub const FENCE_USED: u64 = 2 << 32;
    /// All ranks are locked.
    pub const LOCKED_ALL: u64 = 3 << 32;
    /// This rank is locked.
    pub const LOCKED: u64 = 4 << 32;
    /// Those are locked that are marked.
    pub const LOCKED_SOME: u64 = 5 << 32;
    /// MPI_Win_start named those that are marked.
    pub const STARTED: u64 = 6 << 32;
}

/// The memory of a rank.
#[derive(Debug)]
struct TargetMemory {
    base: Addr,
    /// Bytes; none where it is not in reach.
    size: u64,
    /// Bytes of a displacement unit.
    unit: u64,
    /// Where the rank stands in the shared memory, where it does.
    place: Option<u32>,
    /// In an epoch of some ranks: it is one of them.
    marked: AtomicBool,
}

/// Longest operand of an accumulate that takes this way, in bytes.
pub const MOST_COMBINED: usize = 64;

/// See the module.
#[derive(Debug)]
pub struct Reachable {
    memory: Arc<SharedMemory>,
    me: u32,
    /// Of each rank of the window.
    targets: Box<[TargetMemory]>,
    /// Every rank's memory is in reach.
    all: bool,
    epoch: AtomicU64,
}

impl Reachable {
    pub(super) fn new(
        memory: &Arc<SharedMemory>,
        place: impl Fn(u32) -> Option<usize>,
        me: u32,
        extents: &[Extent],
    ) -> Reachable {
        let target = |(rank, extent): (usize, &Extent)| {
            let place = place(rank as u32);
            let (base, size) = place.map_or((Addr::NULL, 0), |place| memory.part(place));
            TargetMemory {
                base,
                size,
                unit: extent.unit,
                place: place.map(|place| place as u32),
                marked: AtomicBool::new(false),
            }
        };
        let targets: Box<[TargetMemory]> = extents.iter().enumerate().map(target).collect();
        Reachable {
            memory: memory.clone(),
            me,
            all: targets.iter().all(|t| t.place.is_some()),
            targets,
            epoch: AtomicU64::new(epoch::ASK),
        }
    }

    /// Whether the epoch lets operations access a rank; then it has been used.
    #[inline(always)]
    fn is_open(&self, rank: i32, target: &TargetMemory) -> bool {
        let now = self.epoch.load(Ordering::Relaxed);
        match now {
            epoch::LOCKED_ALL | epoch::FENCE_USED => true,
            epoch::FENCE => {
                self.epoch.store(epoch::FENCE_USED, Ordering::Relaxed);
                true
            }
            epoch::LOCKED_SOME | epoch::STARTED => target.marked.load(Ordering::Relaxed),
            _ => now == epoch::LOCKED | rank as u64,
        }
    }

    /// The `len` bytes of an operation, where its target is in reach, its displacement inside the
    /// window and the epoch open.
    #[inline(always)]
    fn site(&self, rank: i32, disp: i64, len: u64) -> Option<(&TargetMemory, Region<'_>)> {
        let target = self.targets.get(rank as u32 as usize)?;
        // A negative displacement is a large one, too.
        let at = (disp as u64).checked_mul(target.unit)?;
        let inside = at.checked_add(len)? <= target.size && len != 0;
        if !inside || !self.is_open(rank, target) {
            return None;
        }
        Some((target, Region::lent(target.base.offset(at as i64), len)))
    }

    /// MPI_Put of a row of bytes, where the target has room for so many.
    #[inline(always)]
    pub fn put(&self, data: Region<'_>, (rank, disp): (i32, i64), room: u64) -> Option<()> {
        if data.len() > room {
            return None;
        }
        let (_, target) = self.site(rank, disp, room)?;
        data.copy_to(target.part(0, data.len()));
        Some(())
    }

    /// MPI_Get of a row of `len` bytes.
    #[inline(always)]
    pub fn get(&self, into: Region<'_>, (rank, disp): (i32, i64), len: u64) -> Option<()> {
        if len > into.len() {
            return None;
        }
        let (_, target) = self.site(rank, disp, len)?;
        target.copy_to(into.part(0, len));
        Some(())
    }

    /// Combines a short row of elements without padding with those of the target, which `result`
    /// gets before.
    #[inline(always)]
    pub fn combine(
        &self,
        (op, basic): (Op, Basic),
        operand: Region<'_>,
        result: Option<Region<'_>>,
        (rank, disp): (i32, i64),
        len: u64,
    ) -> Option<()> {
        let kernel = Kernel::find(op, basic)?;
        let mut copy = [0; MOST_COMBINED];
        // Of MPI_NO_OP there is no operand.
        let copy = copy.get_mut(..operand.len() as usize)?;
        let (of, target) = self.site(rank, disp, len)?;
        operand.read(copy);
        self.memory.combine(of.place? as usize, || {
            if let Some(result) = result {
                target.copy_to(result);
            }
            if op != Op::NoOp {
                kernel.combine(copy, target);
            }
        });
        Some(())
    }

    /// MPI_Compare_and_swap of an element.
    #[inline(always)]
    pub fn compare_and_swap(
        &self,
        (compare, swap): (&[u8], &[u8]),
        result: Region<'_>,
        (rank, disp): (i32, i64),
    ) -> Option<()> {
        let mut now = [0; MOST_COMBINED];
        let now = now.get_mut(..compare.len())?;
        let (of, target) = self.site(rank, disp, compare.len() as u64)?;
        self.memory.combine(of.place? as usize, || {
            target.read(now);
            if now == compare {
                target.write(swap);
            }
        });
        result.write(now);
        Some(())
    }

    /// MPI_Win_flush of a rank, or MPI_Win_flush_all: operations on memory in reach have ended.
    /// `None` where others may be under way, or where this rank may have to send something on.
    #[inline(always)]
    pub fn flush(&self, rank: Option<i32>) -> Option<()> {
        let now = self.epoch.load(Ordering::Relaxed);
        match rank {
            None => (self.all && now >= epoch::LOCKED_ALL && now < epoch::STARTED).then_some(()),
            Some(rank) => {
                let target = self.targets.get(rank as u32 as usize)?;
                target
                    .place
                    .filter(|_| self.all || rank as u32 != self.me)?;
                let open = match now {
                    epoch::LOCKED_ALL => true,
                    epoch::LOCKED_SOME => target.marked.load(Ordering::Relaxed),
                    _ => now == epoch::LOCKED | rank as u64,
                };
                open.then_some(())
            }
        }
    }
}

impl Window {
    /// Learns what calls without the lock have done.
    #[inline]
    pub(super) fn adopt(&mut self) {
        let Some(reachable) = &self.reachable else {
            return;
        };
        if reachable.epoch.load(Ordering::Relaxed) == epoch::FENCE_USED {
            self.epochs.use_fence();
        }
    }

    /// Says which epoch is open to calls without the lock.
    pub(super) fn publish_epoch(&mut self) {
        let Some(reachable) = &self.reachable else {
            return;
        };
        let mark = |rank: u32, marked: bool| {
            if let Some(target) = reachable.targets.get(rank as usize) {
                target.marked.store(marked, Ordering::Relaxed);
            }
        };
        for rank in self.marked.drain(..) {
            mark(rank, false);
        }
        let now = match self.epochs.access() {
            Access::Closed => epoch::ASK,
            Access::Fence { used: false } => epoch::FENCE,
            Access::Fence { used: true } => epoch::FENCE_USED,
            Access::LockedAll => epoch::LOCKED_ALL,
            Access::Locked(ranks) if ranks.len() == 1 => {
                let rank = ranks.keys().next().copied().unwrap_or_default();
                epoch::LOCKED | rank as u64
            }
            Access::Locked(ranks) => {
                self.marked.extend(ranks.keys());
                epoch::LOCKED_SOME
            }
            Access::Started(ranks) => {
                self.marked.extend(ranks);
                epoch::STARTED
            }
        };
        self.marked.iter().for_each(|&rank| mark(rank, true));
        reachable.epoch.store(now, Ordering::Relaxed);
    }
}
