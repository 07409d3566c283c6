//! Memory of a window that the ranks of a host share (MPI_Win_allocate, MPI_Win_allocate_shared):
//! each of them reads and writes the memory of all with loads and stores.
//!
//! ```text
//! 0        a [`RankWords`] for each rank, one cache line each
//! pairs    a [`PairWords`] for each target and each origin, row by row
//! data     each rank's memory: at multiples of a page, or one after the other (`contiguous`)
//! ```
//!
//! The memory is a memfd without a name: nothing is left when the processes end, and no file system
//! limits it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kw_sys::buf::Addr;
use kw_sys::memfd::{self, Mapping, OpenedElsewhere};

use super::handout::{Handout, Joining, ShmError, failed};

/// Polls of a word that another rank holds before the CPU is given up.
const SPINS: u32 = 64;

/// Words beside the memory of a rank.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct RankWords {
    /// The window's lock of this rank ([`WindowLock`]).
    lock: AtomicU32,
    /// Not zero while a rank combines with this rank's memory.
    combining: AtomicU32,
}

/// Words of a target and an origin.
#[derive(Debug, Default)]
#[repr(C)]
struct PairWords {
    /// How often the target has posted for the origin (MPI_Win_post).
    posts: AtomicU32,
    /// How often the origin has completed (MPI_Win_complete).
    completes: AtomicU32,
    /// How often the origin shares the target's lock (MPI_LOCK_SHARED): the target gives it back for
    /// an origin that has died. Written by the origin, and by the target while the origin waits.
    shares: AtomicU32,
}

/// A number that one rank counts up and another waits for. Its highest bit means that the other
/// rank waits, and wants to be told by a message.
#[derive(Clone, Copy, Debug)]
pub struct Count<'a>(&'a AtomicU32);

/// A rank waits for the next.
const WAITED: u32 = 1 << 31;

impl Count<'_> {
    /// Counts one more; returns whether the other rank waits for it and has to be told.
    pub fn add(self) -> bool {
        let mut now = self.0.load(Ordering::Relaxed);
        loop {
            let next = now.wrapping_add(1) & !WAITED;
            // SYNC: counted
            match self
                .0
                .compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return now & WAITED != 0,
                Err(other) => now = other,
            }
        }
    }

    /// Whether it has come as far as `number`, from which it is less than 2^30 away.
    #[inline]
    pub fn reached(self, number: u32) -> bool {
        // SYNC: counted
        let now = self.0.load(Ordering::Acquire);
        now.wrapping_sub(number) & !WAITED < 1 << 30
    }

    /// Asks the rank that counts to tell when it has counted on. Check the count again afterwards.
    pub fn wait(self) {
        self.0.fetch_or(WAITED, Ordering::SeqCst);
    }
}

/// See the module.
#[derive(Debug)]
pub struct SharedMemory {
    map: Mapping,
    /// Offset and bytes of each rank's memory.
    parts: Vec<(usize, u64)>,
    index: usize,
}

/// Offset of each rank's memory, and the bytes of all. Memory that is not contiguous shares no
/// page, so each rank's is placed where that rank first touches it.
fn lay_out(sizes: &[u64], contiguous: bool) -> Option<(Vec<(usize, u64)>, usize)> {
    let (ranks, pairs) = (sizes.len(), sizes.len().checked_mul(sizes.len())?);
    let head = ranks * size_of::<RankWords>() + pairs.checked_mul(size_of::<PairWords>())?;
    let page = memfd::page();
    let mut at = (head as u64).next_multiple_of(page);
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        parts.push((usize::try_from(at).ok()?, size));
        at = at.checked_add(size)?;
        if !contiguous {
            at = at.checked_next_multiple_of(page)?;
        }
    }
    // One byte more: memory of no bytes needs an address as well.
    let all = at.checked_add(1)?.checked_next_multiple_of(page)?;
    let all = usize::try_from(all)
        .ok()
        .filter(|&a| a <= isize::MAX as usize)?;
    Some((parts, all))
}

/// Shared memory of a rank, before its size is known: others open its file in `/proc`, if the
/// system permits that. Otherwise [`SharedMemoryLead`] hands memory out.
#[derive(Debug)]
pub struct SharedMemoryFile(OwnedFd);

impl SharedMemoryFile {
    /// A file without bytes.
    pub fn new() -> Result<SharedMemoryFile, ShmError> {
        let made = memfd::create_empty().map_err(failed("making a window (memfd)"))?;
        Ok(SharedMemoryFile(made))
    }

    /// The text that the others need for [`SharedMemory::open`].
    pub fn name(&self) -> Result<[u8; 16], ShmError> {
        let at = OpenedElsewhere::of(self.0.as_fd()).map_err(failed("naming a window's memory"))?;
        let mut name = [0; 16];
        name[..4].copy_from_slice(&at.pid.to_le_bytes());
        name[4..8].copy_from_slice(&at.fd.to_le_bytes());
        name[8..].copy_from_slice(&at.inode.to_le_bytes());
        Ok(name)
    }

    /// Gives it bytes for these sizes. This rank is the first. The file has to live until the
    /// others have opened it.
    pub fn make(&self, sizes: &[u64], contiguous: bool) -> Result<Arc<SharedMemory>, ShmError> {
        let what = || made(sizes);
        let (_, all) = lay_out(sizes, contiguous).ok_or_else(|| what()(too_large()))?;
        memfd::set_len(self.0.as_fd(), all).map_err(what())?;
        let memory = SharedMemory::map(self.0.as_fd(), 0, sizes, contiguous).map_err(what())?;
        Ok(Arc::new(memory))
    }
}

fn made(sizes: &[u64]) -> impl FnOnce(io::Error) -> ShmError + use<> {
    let all: u128 = sizes.iter().map(|&s| s as u128).sum();
    failed(format!("making a window of {all} bytes (memfd)"))
}

/// The rank that makes the memory, before its size is known.
#[derive(Debug)]
pub struct SharedMemoryLead(Handout);

impl SharedMemoryLead {
    /// Listens for up to `ranks` others.
    pub fn new(ranks: usize) -> Result<SharedMemoryLead, ShmError> {
        Ok(SharedMemoryLead(Handout::new(ranks)?))
    }

    /// The text that the others need for [`SharedMemoryJoin`].
    pub fn name(&self) -> [u8; 16] {
        self.0.name()
    }

    /// Makes memory of these sizes and hands it to the other ranks, all of which have connected
    /// ([`SharedMemoryJoin::new`]). This rank is the first.
    pub fn serve(
        self,
        key: &[u8; 32],
        sizes: &[u64],
        contiguous: bool,
    ) -> Result<Arc<SharedMemory>, ShmError> {
        let what = || made(sizes);
        let (_, all) = lay_out(sizes, contiguous).ok_or_else(|| what()(too_large()))?;
        let fd = memfd::create(all).map_err(what())?;
        let memory = SharedMemory::map(fd.as_fd(), 0, sizes, contiguous).map_err(what())?;
        let mut missing = vec![true; sizes.len()];
        missing[0] = false;
        let served = self.0.serve_connected(fd.as_fd(), key, &mut missing);
        served.map_err(failed("handing out the memory of a window"))?;
        match missing.iter().position(|&m| m) {
            None => Ok(Arc::new(memory)),
            Some(first) => Err(ShmError {
                what: format!("handing out the memory of a window to process {first} of the host"),
                why: io::Error::other("it has failed, or another user's process came instead"),
            }),
        }
    }
}

/// A rank that will get the memory: connected to the one that makes it.
#[derive(Debug)]
pub struct SharedMemoryJoin(Joining);

impl SharedMemoryJoin {
    /// Connects to the rank that makes the memory.
    pub fn new(name: &[u8; 16]) -> Result<SharedMemoryJoin, ShmError> {
        let connected = Joining::new(name);
        Ok(SharedMemoryJoin(connected.map_err(failed(
            "connecting to the rank that makes the memory of a window",
        ))?))
    }

    /// Takes the memory, as the rank with this index.
    pub fn take(
        self,
        key: &[u8; 32],
        index: usize,
        sizes: &[u64],
        contiguous: bool,
    ) -> Result<Arc<SharedMemory>, ShmError> {
        let what = || failed("joining the memory of a window");
        let fd = self.0.take(index as u32, key).map_err(what())?;
        let memory = SharedMemory::map(fd.as_fd(), index, sizes, contiguous).map_err(what())?;
        Ok(Arc::new(memory))
    }
}

fn too_large() -> io::Error {
    io::Error::other("it is larger than any memory")
}

impl SharedMemory {
    /// Opens the memory of a [`SharedMemoryFile`], as the rank with this index. Its bytes are there
    /// when the rank that makes them says so.
    pub fn open(
        name: &[u8; 16],
        index: usize,
        sizes: &[u64],
        contiguous: bool,
    ) -> Result<Arc<SharedMemory>, ShmError> {
        let what = || failed("opening the memory of a window");
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| name[at + i]));
        let there = OpenedElsewhere {
            pid: word(0),
            fd: word(4) as i32,
            inode: u64::from(word(12)) << 32 | u64::from(word(8)),
        };
        let (parts, all) = lay_out(sizes, contiguous).ok_or_else(|| what()(too_large()))?;
        let fd = there.open().map_err(what())?;
        let map = Mapping::of_future(fd.as_fd(), all, all).map_err(what())?;
        Ok(Arc::new(SharedMemory { map, parts, index }))
    }

    fn map(
        fd: std::os::fd::BorrowedFd<'_>,
        index: usize,
        sizes: &[u64],
        contiguous: bool,
    ) -> io::Result<SharedMemory> {
        let (parts, all) = lay_out(sizes, contiguous).ok_or_else(too_large)?;
        let map = Mapping::of(fd, all, all)?;
        Ok(SharedMemory { map, parts, index })
    }

    /// This rank's index.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Ranks that share it.
    pub fn ranks(&self) -> usize {
        self.parts.len()
    }

    /// The memory of a rank: its first byte, which lasts as long as this does, and its bytes.
    ///
    /// # Panics
    /// If there is no such rank (a fault of our own).
    pub fn part(&self, index: usize) -> (Addr, u64) {
        let (at, size) = self.parts[index];
        let base = self.map.at(at);
        // SAFETY: the bytes lie inside the mapping; the user of the address keeps it mapped.
        (unsafe { Addr::new(base.cast()) }, size)
    }

    #[inline(always)]
    fn sync(&self, index: usize) -> &RankWords {
        assert!(index < self.parts.len(), "rank {index} of a window");
        let at = self.map.at(index * size_of::<RankWords>());
        // SAFETY: zeroed when made, aligned, inside the mapping, and atomics only.
        unsafe { &*at.cast::<RankWords>() }
    }

    fn pair(&self, target: usize, origin: usize) -> &PairWords {
        let ranks = self.parts.len();
        assert!(target < ranks && origin < ranks, "ranks of a window");
        let before = ranks * size_of::<RankWords>();
        let at = self
            .map
            .at(before + (target * ranks + origin) * size_of::<PairWords>());
        // SAFETY: zeroed when made, aligned, inside the mapping, and atomics only.
        unsafe { &*at.cast::<PairWords>() }
    }

    /// How often a target has posted for an origin.
    pub fn posts(&self, target: usize, origin: usize) -> Count<'_> {
        Count(&self.pair(target, origin).posts)
    }

    /// How often an origin has completed an epoch that a target had posted.
    pub fn completes(&self, target: usize, origin: usize) -> Count<'_> {
        Count(&self.pair(target, origin).completes)
    }

    /// The window's lock of a rank.
    #[inline]
    pub fn lock(&self, index: usize) -> WindowLock<'_> {
        WindowLock {
            memory: self,
            target: index,
        }
    }

    /// Runs `what` while no other rank combines with the memory of this rank. Others wait
    /// meanwhile: it does not wait itself.
    #[inline]
    pub fn combine<T>(&self, index: usize, what: impl FnOnce() -> T) -> T {
        let word = &self.sync(index).combining;
        if !take(word) {
            wait_for(word);
        }
        let result = what();
        word.store(0, Ordering::Release);
        result
    }
}

#[inline(always)]
fn take(word: &AtomicU32) -> bool {
    let taken = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
    taken.is_ok()
}

#[cold]
#[inline(never)]
fn wait_for(word: &AtomicU32) {
    let mut tries = 0u32;
    loop {
        // Reading does not take the line from its holder.
        if word.load(Ordering::Relaxed) == 0 && take(word) {
            return;
        }
        tries += 1;
        match tries < SPINS {
            true => std::hint::spin_loop(),
            // Its holder may not be running.
            false => std::thread::yield_now(),
        }
    }
}

/// Exclusive.
const EXCLUSIVE: u32 = 1 << 31;
/// A rank waits: no other rank gets the lock at once.
const AWAITED: u32 = 1 << 30;

/// The rank that asks for a lock, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Locking {
    /// This rank of the window, exclusively.
    Alone(u32),
    /// The rank with this index in the memory, shared.
    Shared(usize),
    /// A rank that does not share the memory, shared: it asks the target, which remembers it.
    SharedFar,
}

/// The lock of a rank's memory in shared memory (MPI_Win_lock). Its word counts the ranks that share
/// it, or names the rank that holds it alone. A rank that does not get it at once asks the target,
/// which grants it in the order of the requests: it marks the lock as awaited, so that the rank that
/// gives it back tells the target.
#[derive(Clone, Copy, Debug)]
pub struct WindowLock<'a> {
    memory: &'a SharedMemory,
    target: usize,
}

impl WindowLock<'_> {
    #[inline(always)]
    fn word(&self) -> &AtomicU32 {
        &self.memory.sync(self.target).lock
    }

    /// Counts one holder more or less with this index, in the words of this target.
    #[inline(always)]
    fn share(&self, origin: usize, change: impl FnOnce(u32) -> u32) {
        let shares = &self.memory.pair(self.target, origin).shares;
        shares.store(change(shares.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// Takes the lock, if it is free and no rank waits. With `granting` it is for the rank that has
    /// waited longest.
    #[inline]
    pub fn try_lock(self, how: Locking, granting: bool) -> bool {
        let word = self.word();
        let mut now = word.load(Ordering::Relaxed);
        loop {
            let held = now & !AWAITED;
            let (free, next) = match how {
                Locking::Alone(rank) => (held == 0, now | EXCLUSIVE | rank & !AWAITED),
                _ => (held & EXCLUSIVE == 0, now.wrapping_add(1)),
            };
            if !free || now & AWAITED != 0 && !granting {
                return false;
            }
            match word.compare_exchange_weak(now, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => now = other,
            }
        }
        if let Locking::Shared(origin) = how {
            self.share(origin, |n| n.saturating_add(1));
        }
        true
    }

    /// Gives back the lock of the rank with this index; `None`: of one that does not share the
    /// memory. Returns whether a rank waits for it.
    #[inline]
    pub fn unlock(self, origin: Option<usize>) -> bool {
        let word = self.word();
        let mut now = word.load(Ordering::Relaxed);
        if let Some(origin) = origin.filter(|_| now & EXCLUSIVE == 0) {
            self.share(origin, |n| n.saturating_sub(1));
        }
        loop {
            let next = match now & EXCLUSIVE != 0 {
                true => now & AWAITED,
                false => now & AWAITED | (now & !AWAITED).saturating_sub(1),
            };
            match word.compare_exchange_weak(now, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return now & AWAITED != 0,
                Err(other) => now = other,
            }
        }
    }

    /// How many hold it, and which rank of the window if one holds it exclusively.
    pub fn held(self) -> (u32, Option<u32>) {
        let held = self.word().load(Ordering::Relaxed) & !AWAITED;
        match held & EXCLUSIVE {
            0 => (held, None),
            _ => (1, Some(held & !EXCLUSIVE)),
        }
    }

    /// Whether the rank with this index shares the lock.
    pub fn is_shared_by(&self, origin: usize) -> bool {
        let words = self.memory.pair(self.target, origin);
        words.shares.load(Ordering::Relaxed) != 0
    }

    /// Sets whether any rank waits. Try to grant afterwards: the lock may have come free before.
    pub fn set_awaited(self, awaited: bool) {
        match awaited {
            true => self.word().fetch_or(AWAITED, Ordering::SeqCst),
            false => self.word().fetch_and(!AWAITED, Ordering::SeqCst),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_sys::region::Region;

    #[test]
    fn memory_that_others_open_is_the_same() {
        let file = SharedMemoryFile::new().unwrap();
        // Before it has its bytes.
        let b = SharedMemory::open(&file.name().unwrap(), 1, &[8, 8], false).unwrap();
        let a = file.make(&[8, 8], false).unwrap();
        drop(file);
        Region::assume_lent(a.part(1).0, 8).write(b"together");
        let mut seen = [0; 8];
        Region::assume_lent(b.part(1).0, 8).read(&mut seen);
        assert_eq!((&seen, a.index(), b.index()), (b"together", 0, 1));
    }

    fn two(sizes: &'static [u64], contiguous: bool) -> [Arc<SharedMemory>; 2] {
        let lead = SharedMemoryLead::new(2).unwrap();
        let (name, key) = (lead.name(), [3; 32]);
        let second = SharedMemoryJoin::new(&name).unwrap();
        let first = std::thread::spawn(move || lead.serve(&key, sizes, contiguous));
        let second = second.take(&key, 1, sizes, contiguous).unwrap();
        [first.join().unwrap().unwrap(), second]
    }

    #[test]
    fn ranks_see_the_memory_of_each_other() {
        for (contiguous, away) in [(true, 8), (false, memfd::page() as usize)] {
            let [a, b] = two(&[8, 0], contiguous);
            assert_eq!((a.index(), b.index(), a.ranks()), (0, 1, 2));
            let (own, len) = a.part(0);
            Region::assume_lent(own, len).write(b"together");
            let mut seen = [0; 8];
            let (theirs, len) = b.part(0);
            Region::assume_lent(theirs, len).read(&mut seen);
            assert_eq!(&seen, b"together");
            assert_eq!(a.part(1).0.bits() - own.bits(), away);
            assert_eq!(a.part(1).1, 0);
        }
    }

    #[test]
    fn sizes_beyond_all_memory_are_refused() {
        assert!(lay_out(&[u64::MAX, 1], true).is_none());
        assert!(lay_out(&[1 << 62, 1 << 62], false).is_none());
        let lead = SharedMemoryLead::new(1).unwrap();
        let why = lead.serve(&[0; 32], &[u64::MAX - 9000], false);
        assert!(why.unwrap_err().to_string().contains("larger than"));
    }

    #[test]
    fn the_lock_is_shared_or_exclusive_and_its_waiters_are_notified() {
        let [a, b] = two(&[1, 1], false);
        let (a, b) = (a.lock(1), b.lock(1));
        let sharing = |of: WindowLock<'_>| {
            let ranks = 0..of.memory.ranks();
            ranks.filter(|&r| of.is_shared_by(r)).collect::<Vec<_>>()
        };
        assert!(a.try_lock(Locking::Shared(0), false) && b.try_lock(Locking::Shared(1), false));
        assert!(!b.try_lock(Locking::Alone(7), false));
        assert_eq!((b.held(), sharing(b)), ((2, None), vec![0, 1]));
        b.set_awaited(true);
        assert!(
            !a.try_lock(Locking::Shared(0), false),
            "behind the one who waits"
        );
        assert!(a.unlock(Some(0)));
        assert_eq!((b.held(), sharing(a)), ((1, None), vec![1]));
        assert!(b.unlock(Some(1)));
        assert!(!a.try_lock(Locking::Alone(7), false) && b.try_lock(Locking::Alone(7), true));
        assert!(!a.try_lock(Locking::Shared(0), true));
        assert_eq!((a.held(), sharing(a)), ((1, Some(7)), vec![]));
        b.set_awaited(false);
        assert!(!b.unlock(Some(1)));
        assert_eq!(a.held(), (0, None));
        assert!(a.try_lock(Locking::SharedFar, false));
        assert_eq!((a.held(), sharing(a)), ((1, None), vec![]));
        assert!(!a.unlock(None) && a.try_lock(Locking::Alone(7), false));
    }

    #[test]
    fn a_count_tells_who_waits_and_goes_round() {
        let [a, b] = two(&[1, 1], false);
        assert!(!b.posts(0, 1).reached(1) && !a.completes(0, 1).reached(1));
        assert!(!a.posts(0, 1).add(), "no rank waits");
        assert!(b.posts(0, 1).reached(1) && !b.posts(0, 1).reached(2));
        assert!(!b.posts(1, 0).reached(1) && !b.completes(0, 1).reached(1));
        b.posts(0, 1).wait();
        assert!(b.posts(0, 1).reached(1) && !b.posts(0, 1).reached(2));
        assert!(a.posts(0, 1).add() && b.posts(0, 1).reached(2));
        assert!(!a.posts(0, 1).add(), "told once");
        let last = AtomicU32::new(!WAITED);
        assert!(Count(&last).reached(!WAITED) && !Count(&last).reached(0));
        Count(&last).wait();
        assert!(Count(&last).add() && Count(&last).reached(0));
        assert_eq!(last.into_inner(), 0);
    }

    #[test]
    fn nobody_combines_at_once() {
        let [a, b] = two(&[8, 0], false);
        let count = |memory: Arc<SharedMemory>| {
            std::thread::spawn(move || {
                let (at, len) = memory.part(0);
                let word = Region::assume_lent(at, len);
                for _ in 0..10_000 {
                    memory.combine(0, || {
                        let mut now = [0; 8];
                        word.read(&mut now);
                        word.write(&(u64::from_ne_bytes(now) + 1).to_ne_bytes());
                    });
                }
            })
        };
        let both = [count(a.clone()), count(b)];
        both.into_iter().for_each(|t| t.join().unwrap());
        let mut now = [0; 8];
        Region::assume_lent(a.part(0).0, 8).read(&mut now);
        assert_eq!(u64::from_ne_bytes(now), 20_000);
    }
}
