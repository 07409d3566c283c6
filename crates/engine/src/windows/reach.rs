//! Memory in reach, for calls that take no lock of the library.
//!
//! A [`Reachable`] is published under the window's handle ([`kw_sys::published`]). It knows the
//! addresses of the memory of each rank of the host, and which of it may be accessed in the current
//! epoch. Calls that are not as simple, those with wrong arguments included, are left to the
//! ordinary way, which starts from the beginning: here nothing has happened then.
//!
//! The owner of the library's lock writes the epoch ([`Published::publish_epoch`]). Calls without
//! the lock change it in three ways, which the next owner of the lock finds out
//! ([`Published::adopt`]): an epoch between fences has been used; a fence ended it and began the
//! next; MPI_Win_lock began one on a single rank, and MPI_Win_unlock ended that.

use super::{Extent, LockMode};
use kw_base::sync::Mutex;
use kw_base::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use kw_path::shm::window::{Locking, SharedMemory};
use kw_proto::rma::{Access, Epochs};
use kw_sys::buf::Addr;
use kw_sys::reduce::{Kernel, Op, add_one, adds_one};
use kw_sys::region::Region;
use kw_types::layout::Basic;
use std::sync::Arc;

/// The current epoch, in a word: its kind in the upper half.
mod epoch {
    /// None, if the window cannot be locked; or only the owner of the library's lock knows.
    pub const ASK: u64 = 0;
    /// None: MPI_Win_lock may begin one.
    pub const NONE: u64 = 1 << 32;
    /// Between two fences.
    pub const FENCE: u64 = 2 << 32;
    /// Between two fences, with operations.
    pub const FENCE_USED: u64 = 3 << 32;
    /// MPI_Win_start named the marked ranks.
    pub const STARTED: u64 = 4 << 32;
    /// All ranks are locked.
    pub const LOCKED_ALL: u64 = 5 << 32;
    /// The marked ranks are locked.
    pub const LOCKED_SOME: u64 = 6 << 32;
    /// The rank in the lower half is locked.
    pub const LOCKED: u64 = 7 << 32;
    /// The rank in the lower half is locked, by a call without the library's lock: shared.
    pub const TAKEN: u64 = 8 << 32;
    /// The rank in the lower half is locked by such a call: exclusive.
    pub const TAKEN_ALONE: u64 = 9 << 32;

    /// Whether the rank in the lower half, and no other, is locked.
    #[inline(always)]
    pub fn locks_only(now: u64, rank: i32) -> bool {
        now >= LOCKED && now as u32 == rank as u32
    }
}

/// The memory of a rank.
#[derive(Debug)]
struct TargetMemory {
    base: Addr,
    /// Bytes; 0 if it is not in reach.
    size: u64,
    /// Bytes of a displacement unit.
    unit: u64,
    /// Position of the rank in the shared memory, if it has one.
    place: Option<u32>,
    /// In an epoch of some ranks: it is one of them.
    marked: AtomicBool,
}

/// Longest operand of an accumulate that is read before the target's memory is taken, in bytes.
const SHORT: usize = 64;
/// Bytes that are combined while others wait for the target's memory: they wait for about half a
/// microsecond, and taking it costs little beside the work.
const BLOCK: u64 = 32 << 10;

/// See the module.
#[derive(Debug)]
pub struct Reachable {
    memory: Arc<SharedMemory>,
    me: u32,
    /// Memory of each rank of the window.
    targets: Box<[TargetMemory]>,
    /// Every rank's memory is in reach.
    all: bool,
    epoch: AtomicU64,
    /// This rank has posted.
    posted: AtomicBool,
    /// Several threads may change the epoch at once.
    threads: AtomicBool,
    /// MPI_Win_lock may be called.
    lockable: AtomicBool,
    /// See [`Reachable::promise`].
    meet: AtomicUsize,
    /// Locks that were taken beside an epoch that another thread began: they are given back.
    strays: Mutex<Vec<u32>>,
    counts: Counts,
}

/// Counts of operations of calls without the lock. Each thread writes what it has read plus one: of
/// several that do so at once, some are not counted.
#[derive(Default, Debug)]
struct Counts {
    operations: AtomicU64,
    bytes: AtomicU64,
    epochs: AtomicU64,
}

#[inline(always)]
fn add(count: &AtomicU64, more: u64) {
    let now = count.load(Ordering::Relaxed);
    count.store(now.wrapping_add(more), Ordering::Relaxed);
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
            posted: AtomicBool::new(false),
            threads: AtomicBool::new(true),
            lockable: AtomicBool::new(false),
            meet: AtomicUsize::new(0),
            strays: Mutex::default(),
            counts: Counts::default(),
        }
    }

    /// The program's promises: whether several `threads` call at once, and whether the window is
    /// `lockable`; and the handle of the communicator where its ranks `meet`. Call it before the
    /// window is published.
    pub fn promise(&self, threads: bool, lockable: bool, meet: usize) {
        self.threads.store(threads, Ordering::Relaxed);
        self.lockable.store(lockable, Ordering::Relaxed);
        self.meet.store(meet, Ordering::Relaxed);
        if lockable {
            self.epoch.store(epoch::NONE, Ordering::Relaxed);
        }
    }

    /// Changes the epoch, if it is this one.
    #[inline(always)]
    fn change(&self, from: u64, to: u64) -> bool {
        if self.threads.load(Ordering::Relaxed) {
            let done = (Ordering::AcqRel, Ordering::Relaxed);
            return self
                .epoch
                .compare_exchange(from, to, done.0, done.1)
                .is_ok();
        }
        let same = self.epoch.load(Ordering::Relaxed) == from;
        if same {
            self.epoch.store(to, Ordering::Relaxed);
        }
        same
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
            _ => epoch::locks_only(now, rank),
        }
    }

    /// The `len` bytes of an operation, if its target is in reach, its displacement inside the
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
        add(&self.counts.operations, 1);
        add(&self.counts.bytes, len);
        Some((
            target,
            Region::assume_lent(target.base.assume_offset(at as i64), len),
        ))
    }

    /// The rank that a call without the lock has locked. Unlike [`Published::adopt`] it leaves the
    /// epoch as it is: a thread that only waits may ask (of a file's, or for a report), while the
    /// only one that calls on windows changes the epoch in two steps ([`Reachable::change`]).
    pub(super) fn taken(&self) -> Option<u32> {
        let now = self.epoch.load(Ordering::Relaxed);
        (now >= epoch::TAKEN).then_some(now as u32)
    }

    /// Operations and their bytes, and epochs, of calls without the lock.
    pub(super) fn counted(&self) -> ((u64, u64), u64) {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts {
            operations,
            bytes,
            epochs,
        } = &self.counts;
        ((now(operations), now(bytes)), now(epochs))
    }

    /// MPI_Put of contiguous bytes, as many as the target has room for.
    #[inline(always)]
    pub fn put(&self, data: Region<'_>, (rank, disp): (i32, i64), room: u64) -> Option<()> {
        if data.len() > room {
            return None;
        }
        let (_, target) = self.site(rank, disp, room)?;
        data.copy_to(target.part(0, data.len()));
        Some(())
    }

    /// MPI_Get of `len` contiguous bytes.
    #[inline(always)]
    pub fn get(&self, into: Region<'_>, (rank, disp): (i32, i64), len: u64) -> Option<()> {
        if len > into.len() {
            return None;
        }
        let (_, target) = self.site(rank, disp, len)?;
        target.copy_to(into.part(0, len));
        Some(())
    }

    /// Combines contiguous elements without padding with those of the target, which are copied to
    /// `result` before.
    #[inline(always)]
    pub fn combine(
        &self,
        (op, basic): (Op, Basic),
        operand: Region<'_>,
        result: Option<Region<'_>>,
        (rank, disp): (i32, i64),
        len: u64,
    ) -> Option<()> {
        let kernel = match adds_one(op, basic, len) {
            true => None,
            false => Some(Kernel::find(op, basic)?),
        };
        let (of, target) = self.site(rank, disp, len)?;
        let place = of.place? as usize;
        if len > SHORT as u64 {
            // MPI_NO_OP has no operand.
            let kernel = kernel.filter(|_| op != Op::NoOp);
            self.combine_blocks((kernel, basic), operand, result, (place, target));
            return Some(());
        }
        let mut copy = [0; SHORT];
        let copy = copy.get_mut(..operand.len() as usize)?;
        operand.read(copy);
        self.memory.combine(place, || {
            if let Some(result) = result {
                target.copy_to(result);
            }
            match kernel {
                None => add_one(basic, copy, target),
                Some(kernel) if op != Op::NoOp => kernel.combine(copy, target),
                Some(_) => {}
            }
        });
        Some(())
    }

    /// Combines long contiguous data block by block, since each element is atomic by itself. The
    /// operand is read in place.
    #[inline(never)]
    fn combine_blocks(
        &self,
        (kernel, basic): (Option<Kernel>, Basic),
        operand: Region<'_>,
        result: Option<Region<'_>>,
        (place, target): (usize, Region<'_>),
    ) {
        let most = BLOCK - BLOCK % basic.size();
        let mut from = 0;
        while from < target.len() {
            let some = most.min(target.len() - from);
            let block = target.part(from, some);
            self.memory.combine(place, || {
                if let Some(result) = result {
                    block.copy_to(result.part(from, some));
                }
                if let Some(kernel) = kernel {
                    kernel.run(operand.part(from, some), block);
                }
            });
            from += some;
        }
    }

    /// MPI_Compare_and_swap of an element.
    #[inline(always)]
    pub fn compare_and_swap<const N: usize>(
        &self,
        (compare, swap): ([u8; N], [u8; N]),
        result: Region<'_>,
        (rank, disp): (i32, i64),
    ) -> Option<()> {
        let mut now = [0; N];
        let (of, target) = self.site(rank, disp, N as u64)?;
        self.memory.combine(of.place? as usize, || {
            target.read(&mut now);
            if now == compare {
                target.write(&swap);
            }
        });
        result.write(&now);
        Some(())
    }

    /// MPI_Win_flush of a rank, or MPI_Win_flush_all: operations on memory in reach have ended.
    /// `None` if others may be under way, or if this rank may have to send something on.
    #[inline(always)]
    pub fn flush(&self, rank: Option<i32>) -> Option<()> {
        let now = self.epoch.load(Ordering::Relaxed);
        let Some(rank) = rank else {
            return (self.all && now >= epoch::LOCKED_ALL).then_some(());
        };
        let target = self.targets.get(rank as u32 as usize)?;
        target
            .place
            .filter(|_| self.all || rank as u32 != self.me)?;
        let open = match now {
            epoch::LOCKED_ALL => true,
            epoch::LOCKED_SOME => target.marked.load(Ordering::Relaxed),
            _ => epoch::locks_only(now, rank),
        };
        open.then_some(())
    }

    /// MPI_Win_lock, if no epoch is open and the lock is free.
    #[inline(always)]
    pub fn lock(&self, rank: i32, mode: LockMode) -> Option<()> {
        let target = self.targets.get(rank as u32 as usize)?;
        if self.epoch.load(Ordering::Relaxed) != epoch::NONE {
            return None;
        }
        let (kind, how) = match mode {
            LockMode::Shared => (epoch::TAKEN, Locking::Shared(self.memory.index())),
            LockMode::Exclusive => (epoch::TAKEN_ALONE, Locking::Alone(self.me)),
        };
        if !self
            .memory
            .lock(target.place? as usize)
            .try_lock(how, false)
        {
            return None;
        }
        if !self.change(epoch::NONE, kind | rank as u64) {
            self.stray(rank);
            return None;
        }
        add(&self.counts.epochs, 1);
        Some(())
    }

    #[cold]
    fn stray(&self, rank: i32) {
        let strays = self.strays.lock();
        strays.unwrap_or_else(|e| e.into_inner()).push(rank as u32);
    }

    /// MPI_Win_unlock of a rank that [`Reachable::lock`] locked; returns whether a rank waits for
    /// the lock, which [`Windows::wake`](super::Windows::wake) then wakes.
    #[inline(always)]
    pub fn unlock(&self, rank: i32) -> Option<bool> {
        let target = self.targets.get(rank as u32 as usize)?;
        let now = self.epoch.load(Ordering::Relaxed);
        let ours = now >= epoch::TAKEN && now as u32 == rank as u32;
        if !ours || !self.change(now, epoch::NONE) {
            return None;
        }
        let lock = self.memory.lock(target.place? as usize);
        Some(lock.unlock(Some(self.memory.index())))
    }

    /// MPI_Win_fence between two fences, if all memory is in reach: returns the handle of the
    /// communicator where all ranks meet then; nothing else is to do.
    #[inline(always)]
    pub fn fence(&self) -> Option<usize> {
        let now = self.epoch.load(Ordering::Relaxed);
        let fenced = now == epoch::FENCE || now == epoch::FENCE_USED;
        let alone = self.posted.load(Ordering::Relaxed);
        if !self.all || !fenced || alone || !self.change(now, epoch::FENCE) {
            return None;
        }
        add(&self.counts.epochs, 1);
        Some(self.meet.load(Ordering::Relaxed))
    }
}

/// What a window has published for calls without the lock.
#[derive(Debug)]
pub(super) struct Published {
    pub reachable: Option<Arc<Reachable>>,
    /// Ranks that are marked in it.
    marked: Vec<u32>,
}

impl Published {
    pub fn new(reachable: Option<Arc<Reachable>>) -> Published {
        let marked = Vec::new();
        Published { reachable, marked }
    }

    /// Learns the effects of calls without the lock; `held`: the locks that this rank holds.
    #[inline]
    pub fn adopt(&self, epochs: &mut Epochs, held: &mut Vec<u32>) {
        let Some(reachable) = &self.reachable else {
            return;
        };
        match reachable.epoch.load(Ordering::Relaxed) {
            epoch::FENCE => epochs.use_fence(false),
            epoch::FENCE_USED => epochs.use_fence(true),
            _ => reachable.adopt_lock(epochs, held),
        }
    }

    /// Locks that a thread has taken without need.
    pub fn take_strays(&self) -> Vec<u32> {
        let Some(reachable) = &self.reachable else {
            return Vec::new();
        };
        let strays = reachable.strays.lock();
        std::mem::take(&mut *strays.unwrap_or_else(|e| e.into_inner()))
    }

    /// Publishes the current epoch.
    pub fn publish_epoch(&mut self, epochs: &mut Epochs, held: &mut Vec<u32>) {
        let Some(reachable) = &self.reachable else {
            return;
        };
        loop {
            // Another thread may have locked a rank meanwhile. The word's information about a fence
            // is known, and no longer true after MPI_Win_fence.
            reachable.adopt_lock(epochs, held);
            let before = reachable.epoch.load(Ordering::Relaxed);
            let now = reachable.open_epoch(epochs.access(), &mut self.marked);
            if before < epoch::TAKEN && reachable.change(before, now) {
                return;
            }
        }
    }

    /// Publishes whether this rank has posted.
    pub fn publish_posted(&self, yes: bool) {
        if let Some(reachable) = &self.reachable {
            reachable.posted.store(yes, Ordering::Relaxed);
        }
    }
}

impl Reachable {
    /// Learns of a lock that a call has taken.
    fn adopt_lock(&self, epochs: &mut Epochs, held: &mut Vec<u32>) {
        loop {
            let now = self.epoch.load(Ordering::Relaxed);
            if now < epoch::TAKEN {
                return;
            }
            let rank = now as u32;
            if self.change(now, epoch::LOCKED | rank as u64) {
                // A program that has another epoch open breaks MPI's rules.
                let _ = epochs.lock(rank);
                held.push(rank);
                return;
            }
        }
    }

    fn mark(&self, rank: u32, marked: bool) {
        if let Some(target) = self.targets.get(rank as usize) {
            target.marked.store(marked, Ordering::Relaxed);
        }
    }

    /// Marks the ranks of an epoch in place of those that are `marked`, and returns its word.
    fn open_epoch(&self, access: &Access, marked: &mut Vec<u32>) -> u64 {
        for rank in marked.drain(..) {
            self.mark(rank, false);
        }
        match access {
            Access::Closed if self.lockable.load(Ordering::Relaxed) => epoch::NONE,
            Access::Closed => epoch::ASK,
            Access::Fence { used: false } => epoch::FENCE,
            Access::Fence { used: true } => epoch::FENCE_USED,
            Access::LockedAll => epoch::LOCKED_ALL,
            Access::Locked(ranks) if ranks.len() == 1 => epoch::LOCKED | ranks[0] as u64,
            Access::Locked(ranks) => {
                marked.extend(ranks);
                marked.iter().for_each(|&rank| self.mark(rank, true));
                epoch::LOCKED_SOME
            }
            Access::Started(ranks) => {
                marked.extend(ranks);
                marked.iter().for_each(|&rank| self.mark(rank, true));
                epoch::STARTED
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
