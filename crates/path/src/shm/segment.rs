//! The node segment: one memfd for all ranks of a job on one host. Offsets, never pointers, are in
//! it.
//!
//! ```text
//! 0          header      magic, ranks, which ranks may be fenced by one that falls asleep, number of shm regions, bytes of a working set
//! RANKS      rank blocks: DoorbellSlot (doorbell, 128 bytes) | RankInfo (64 bytes) | PoolUse (128 bytes)
//!            | CopyJob (128 bytes) | bitmap of ranks that ever sent here | bitmap of ranks that found no slot here
//! pairs      n * n pair blocks, [receiver][sender]: Control (9 cache lines) | CELLS cells
//! pools      n pools of SLOTS slots, [receiver]: long payload on its way to that rank
//! claims     bitmap of the shm regions that are in use, in a page of its own
//! regions    up to SHM_REGIONS shm regions (`region` has the contents of one)
//! ```
//! Only the used part is ever touched: a pair that never exchanges data costs no page. Until then a
//! shm region costs nothing but addresses, so there are as many as fit into [`ADDRESSES`], fewer if
//! a rank may have only few addresses ([`Segment::open`]). A pair block is 265 cache lines long, so
//! that the rings of different pairs do not fall on the same cache sets.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use kw_base::pool::SLOT;
use kw_sys::doorbell::{DoorbellSlot, FenceGroup};
use kw_sys::memfd::{self, Mapping};
use kw_sys::region::Region;

use super::ring::Memory;
use super::shared_copy::CopyJob;

/// Cells of a ring.
pub const CELLS: usize = 256;
/// Bytes of a cell.
pub const CELL: usize = 64;
/// Slots of a pool.
pub const SLOTS: usize = 64 * USE_WORDS;
/// Slots of one pair that may be in flight at a time: as many as all senders use of a pool
/// together, since of ranks that share cores the receiver runs when the sender has let it. A piece
/// has one slot or more.
pub const UNDER_WAY: usize = 192;

/// Words that hold a bit for each of them.
pub const USE_WORDS: usize = 8;

/// Most shm regions of a segment.
pub const SHM_REGIONS: usize = 4096;
/// Fewest shm regions of a segment, whatever the limits are.
pub const LEAST_SHM_REGIONS: usize = 64;
/// Most bytes of addresses that a segment takes, unless it needs more for the fewest shm regions.
const ADDRESSES: usize = 256 << 30;
/// If a process's address space is limited, the segment takes at most this part of it: the rest is
/// the program's.
const PART_OF_ADDRESSES: u64 = 16;

const MAGIC: u64 = 0x0037_6b6f_6e77_6b05;
/// Offset in the header of the number of shm regions that may be claimed.
const CLAIMABLE: usize = 64;
/// Offset in the header of the bytes of a working set.
const WORKING_SET: usize = 128;
const RANKS: usize = 4096;
/// Bytes of the longest pages that systems have: shm regions begin at multiples of it.
pub const PAGE: usize = 64 << 10;
const CONTROL: usize = 576;
const PAIR: usize = CONTROL + CELLS * CELL;
/// Offset of the first bitmap in a rank's block.
const SENDERS: usize = COPY_JOB + size_of::<CopyJob>();
/// Offset of the copy job in a rank's block.
const COPY_JOB: usize = size_of::<DoorbellSlot>() + size_of::<RankInfo>() + size_of::<PoolUse>();

const _: () = assert!(size_of::<Control>() == CONTROL);

/// Information that a rank publishes about itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct RankInfo {
    /// Process number; zero before the rank has joined.
    pub pid: AtomicU32,
    /// Address of a word in the rank's own memory that holds `secret`: a rank that can fetch it may
    /// fetch anything.
    pub probe: AtomicU64,
    /// Random.
    pub secret: AtomicU64,
    /// The first CPU that the rank may use, counted from 1.
    pub cpu: AtomicU32,
    /// Not zero once the rank has said goodbye to all.
    pub left: AtomicU32,
    /// When the process started, and in which pid namespace it has its number; zeroes if that is
    /// not known ([`kw_sys::pidfd::Identity`]).
    pub started: AtomicU64,
    pub namespace: AtomicU64,
    /// On which CPU the rank ran, and when, as it noted last (`rebalance`).
    pub cpu_slot: AtomicU64,
}

/// The taken slots of a rank's pool.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PoolUse {
    /// A bit for each slot: set by the sender that takes it, cleared by the receiver when it has
    /// copied the piece out.
    pub taken: [AtomicU64; USE_WORDS],
    /// A sender has found no slot since the receiver last looked.
    pub starved: AtomicU32,
    _b: [u32; 15],
}

/// Shared counters of one ordered pair; each side writes cache lines of its own.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Control {
    /// Receiver: ring position up to which cells are free again.
    pub credit: AtomicU32,
    _a: [u32; 15],
    /// Sender: where in the receiver's pool piece `k` lies, at `k % UNDER_WAY` (`bulk::Piece`).
    pub pieces: [AtomicU16; UNDER_WAY],
    _b: [u64; 8],
    /// Receiver: slots ever emptied.
    pub drained: AtomicU64,
    _c: [u64; 7],
}

/// The mapped segment.
#[derive(Debug)]
pub struct Segment {
    map: Mapping,
    n: usize,
    /// Bytes of a rank's block.
    block: usize,
    /// Shm regions that this rank sees.
    shm_regions: usize,
}

fn block(n: usize) -> usize {
    SENDERS + 2 * bitmap(n)
}

/// Bytes of a bitmap of ranks, in lines of its own.
fn bitmap(n: usize) -> usize {
    n.div_ceil(512) * 64
}

fn pairs(n: usize) -> usize {
    (RANKS + n * block(n)).next_multiple_of(4096)
}

fn pools(n: usize) -> usize {
    (pairs(n) + n * n * PAIR).next_multiple_of(4096)
}

fn claims(n: usize) -> usize {
    pools(n) + n * SLOTS * SLOT
}

fn shm_regions(n: usize) -> usize {
    (claims(n) + SHM_REGIONS.div_ceil(8)).next_multiple_of(PAGE)
}

/// Bytes of a segment for `n` ranks with this many shm regions.
fn size(n: usize, count: usize) -> usize {
    shm_regions(n) + count * super::region::bytes(n)
}

/// Shm regions of a segment for `n` ranks with this many bytes: whole words of the bitmap.
fn count(n: usize, bytes: u64) -> usize {
    let room = (bytes.min(ADDRESSES as u64) as usize).saturating_sub(shm_regions(n));
    (room / super::region::bytes(n)).clamp(LEAST_SHM_REGIONS, SHM_REGIONS) / 64 * 64
}

impl Segment {
    /// Makes the segment; the file descriptor has to be handed out and closed.
    pub fn create(n: usize) -> std::io::Result<(Segment, OwnedFd)> {
        let fd = memfd::create(size(n, count(n, memfd::most_of_file())))?;
        let segment = Segment::map(std::os::fd::AsFd::as_fd(&fd), n)?;
        segment.header(0).store(MAGIC, Ordering::Relaxed);
        segment.header(8).store(n as u64, Ordering::Relaxed);
        let shm_regions = segment.shm_regions as u64;
        segment.claimable().store(shm_regions, Ordering::Relaxed);
        let working_set = super::bulk::working_set() as u64;
        segment
            .header(WORKING_SET)
            .store(working_set, Ordering::Relaxed);
        Ok((segment, fd))
    }

    /// Maps the segment another rank made. A rank that can map only some of the shm regions has no
    /// others claimed from then on. Those that were claimed before are not its own: no communicator
    /// has a member that has not joined.
    pub fn open(fd: BorrowedFd<'_>, n: usize) -> std::io::Result<Segment> {
        let segment = Segment::map(fd, n)?;
        let (magic, ranks) = (segment.header(0), segment.header(8));
        if magic.load(Ordering::Relaxed) != MAGIC || ranks.load(Ordering::Relaxed) != n as u64 {
            return Err(std::io::Error::other(
                "the shared segment was made by another version of the library or for another number of ranks",
            ));
        }
        let shm_regions = segment.shm_regions as u64;
        segment
            .claimable()
            .fetch_min(shm_regions, Ordering::Relaxed);
        Ok(segment)
    }

    fn map(fd: BorrowedFd<'_>, n: usize) -> std::io::Result<Segment> {
        let room = memfd::most_of_addresses() / PART_OF_ADDRESSES;
        let shm_regions = count(n, room.min(memfd::len(fd)? as u64));
        Segment::with(fd, n, shm_regions).or_else(|_| Segment::with(fd, n, LEAST_SHM_REGIONS))
    }

    fn with(fd: BorrowedFd<'_>, n: usize, shm_regions: usize) -> std::io::Result<Segment> {
        Ok(Segment {
            map: Mapping::of(fd, size(n, shm_regions), size(n, LEAST_SHM_REGIONS))?,
            n,
            block: block(n),
            shm_regions,
        })
    }

    /// Bytes of it that this rank sees.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    fn header(&self, at: usize) -> &AtomicU64 {
        // SAFETY: aligned, inside the mapping, and shared words are only ever touched as atomics.
        unsafe { &*(self.map.at(at) as *const AtomicU64) }
    }

    #[inline(always)]
    fn fence_group(&self) -> &FenceGroup {
        // SAFETY: aligned, inside the mapping, all atomics; zeroes are a valid FenceGroup.
        unsafe { &*(self.map.at(16) as *const FenceGroup) }
    }

    /// A rank leaves fences to sleepers; called once by each that does. They do so once all have.
    pub fn enter(&self) {
        self.fence_group().join();
    }

    /// Barrier between publishing something and [`Ringer::ring`](kw_sys::doorbell::Ringer::ring).
    #[inline(always)]
    pub fn fence(&self) {
        self.fence_group().fence(self.n as u32);
    }

    #[inline]
    fn rank(&self, i: usize) -> usize {
        assert!(i < self.n, "local rank {i} of {}", self.n);
        RANKS + i * self.block
    }

    /// Doorbell of a rank.
    #[inline]
    pub fn doorbell_slot(&self, i: usize) -> &DoorbellSlot {
        // SAFETY: aligned (blocks are multiples of 64), inside, all atomics; zeroes are a valid
        // DoorbellSlot.
        unsafe { &*(self.map.at(self.rank(i)) as *const DoorbellSlot) }
    }

    /// RankInfo of a rank.
    pub fn rank_info(&self, i: usize) -> &RankInfo {
        // SAFETY: aligned (blocks are multiples of 64), inside the mapping, all atomics; zeroes are
        // valid.
        unsafe { &*(self.map.at(self.rank(i) + size_of::<DoorbellSlot>()) as *const RankInfo) }
    }

    /// Word `w` of the bitmap of ranks that ever sent to rank `i`.
    pub fn senders(&self, i: usize, w: usize) -> &AtomicU64 {
        self.bits(self.rank(i) + SENDERS, w)
    }

    /// Word `w` of the bitmap of ranks that found no slot in the pool of rank `i`.
    pub fn starving(&self, i: usize, w: usize) -> &AtomicU64 {
        self.bits(self.rank(i) + SENDERS + bitmap(self.n), w)
    }

    fn bits(&self, at: usize, w: usize) -> &AtomicU64 {
        assert!(w < self.n.div_ceil(64), "word {w}");
        // SAFETY: aligned, inside the mapping, and shared words are only ever touched as atomics.
        unsafe { &*(self.map.at(at + w * 8) as *const AtomicU64) }
    }

    /// The taken slots of a rank's pool.
    #[inline]
    pub fn pool_use(&self, i: usize) -> &PoolUse {
        let at = self.rank(i) + size_of::<DoorbellSlot>() + size_of::<RankInfo>();
        // SAFETY: aligned (blocks are multiples of 64), inside the mapping, all atomics; zeroes are
        // valid.
        unsafe { &*(self.map.at(at) as *const PoolUse) }
    }

    /// The message that a rank copies together with its sender.
    pub fn copy_job(&self, i: usize) -> &CopyJob {
        // SAFETY: aligned (blocks are multiples of 64), inside the mapping, all atomics; zeroes are
        // valid.
        unsafe { &*(self.map.at(self.rank(i) + COPY_JOB) as *const CopyJob) }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.n
    }

    /// Bytes of a working set ([`super::bulk::working_set`]), the same for all ranks: if the system
    /// hides its caches from some of them, they could not find it out alike.
    pub fn working_set(&self) -> usize {
        self.header(WORKING_SET).load(Ordering::Relaxed) as usize
    }

    /// How many shm regions may be claimed: the same number for all ranks.
    fn claimable(&self) -> &AtomicU64 {
        self.header(CLAIMABLE)
    }

    /// The shm regions in use, a bit each, of those that may be claimed.
    pub fn claims(&self) -> &[AtomicU64] {
        let shm_regions = self.claimable().load(Ordering::Relaxed) as usize;
        let words = shm_regions.min(SHM_REGIONS) / 64;
        // SAFETY: aligned, inside the mapping, and shared words are only ever touched as atomics.
        unsafe { std::slice::from_raw_parts(self.header(claims(self.n)), words) }
    }

    /// The word of the bitmap that has a shm region's bit.
    pub fn claim_of(&self, number: usize) -> &AtomicU64 {
        assert!(
            number < self.shm_regions,
            "shm region {number} of {}",
            self.shm_regions
        );
        self.header(claims(self.n) + number / 64 * 8)
    }

    fn at_shm_region(&self, number: usize) -> usize {
        assert!(
            number < self.shm_regions,
            "shm region {number} of {}",
            self.shm_regions
        );
        shm_regions(self.n) + number * super::region::bytes(self.n)
    }

    /// First byte of a shm region, which may be touched from then on, as others may up to the next
    /// multiple of [`LEAST_SHM_REGIONS`].
    ///
    /// # Panics
    /// If the system does not let this process touch memory that it has mapped.
    pub fn shm_region(&self, number: usize) -> *mut u8 {
        let at = self.at_shm_region(number);
        let opened = (number + 1).next_multiple_of(LEAST_SHM_REGIONS);
        let end = size(self.n, opened.min(self.shm_regions));
        let done = self.map.open_up_to(end);
        done.unwrap_or_else(|e| {
            panic!("shared memory: shm region {number} cannot be opened ({e})")
        });
        self.map.at(at)
    }

    /// Returns the memory of a shm region to the system; it must not be in use meanwhile.
    pub fn give_back(&self, number: usize) {
        let bytes = super::region::bytes(self.n);
        self.map.give_back(self.at_shm_region(number), bytes);
    }

    fn pair(&self, from: usize, to: usize) -> usize {
        assert!(from < self.n && to < self.n, "pair {from} -> {to}");
        to * self.n + from
    }

    /// The ring and its counters from one rank to another.
    pub fn lane(self: &Arc<Segment>, from: usize, to: usize) -> Lane {
        let pair = self.pair(from, to);
        let control = self.map.at(pairs(self.n) + pair * PAIR);
        Lane {
            control: control as *const Control,
            cells: control.wrapping_add(CONTROL),
            pool: self.map.at(pools(self.n) + to * SLOTS * SLOT),
            pool_use: self.pool_use(to),
            starving: self.starving(to, from / 64),
            bit: 1 << (from % 64),
            slot: self.doorbell_slot(to),
            to,
            _keep: self.clone(),
        }
    }
}

/// One ordered pair's part of the segment.
#[derive(Clone, Debug)]
pub struct Lane {
    control: *const Control,
    cells: *mut u8,
    pool: *mut u8,
    pool_use: *const PoolUse,
    starving: *const AtomicU64,
    bit: u64,
    slot: *const DoorbellSlot,
    to: usize,
    _keep: Arc<Segment>,
}

// SAFETY: addresses in shared memory, valid while `_keep` lives; accesses are ordered by the ring's
// protocol.
unsafe impl Send for Lane {}

impl Lane {
    /// The counters.
    #[inline]
    pub fn control(&self) -> &Control {
        // SAFETY: aligned, inside the mapping, all atomics.
        unsafe { &*self.control }
    }

    /// The receiver's doorbell.
    #[inline(always)]
    pub fn doorbell_slot(&self) -> &DoorbellSlot {
        // SAFETY: taken from a reference into the mapping, which `_keep` keeps.
        unsafe { &*self.slot }
    }

    /// The receiver's process.
    pub fn receiver(&self) -> &RankInfo {
        self._keep.rank_info(self.to)
    }

    /// The message that the receiver copies together with its sender.
    pub fn copy_job(&self) -> &CopyJob {
        self._keep.copy_job(self.to)
    }

    /// First byte of a cell.
    #[inline]
    pub fn cell(&self, cell: usize) -> *mut u8 {
        debug_assert!(cell < CELLS, "cell {cell}");
        self.cells.wrapping_add(cell * CELL)
    }

    /// A number of consecutive slots of the receiver's pool.
    #[inline]
    pub fn slots(&self, first: usize, count: usize) -> Region<'_> {
        assert!(
            first + count <= SLOTS,
            "{count} slots from {first} on of {SLOTS}"
        );
        // SAFETY: inside the mapping, which `_keep` keeps.
        unsafe { Region::new(self.pool.wrapping_add(first * SLOT), (count * SLOT) as u64) }
    }

    /// The taken slots of the receiver's pool.
    #[inline]
    pub fn pool_use(&self) -> &PoolUse {
        // SAFETY: taken from a reference into the mapping, which `_keep` keeps.
        unsafe { &*self.pool_use }
    }

    /// Whether a sender has found no slot since the last call.
    #[inline]
    pub fn is_starved(&self) -> bool {
        // SYNC: slot-free.
        self.pool_use().starved.load(Ordering::SeqCst) != 0
    }

    /// The sender has found no slot: it is rung when one is free, and must look once more now.
    #[cold]
    pub fn starve(&self) {
        // SAFETY: taken from a reference into the mapping, which `_keep` keeps.
        let starving = unsafe { &*self.starving };
        // SYNC: slot-free. First its own bit, then the common flag, then the search.
        starving.fetch_or(self.bit, Ordering::SeqCst);
        self.pool_use().starved.store(1, Ordering::SeqCst);
    }

    #[inline]
    fn word_at(&self, cell: usize) -> &AtomicU64 {
        // SAFETY: a cell's first word is aligned, inside the mapping; where a word is read or
        // written as such, bytes are not written at the same time (the ring's invariant).
        unsafe { &*(self.cell(cell) as *const AtomicU64) }
    }
}

impl Memory for Lane {
    #[inline]
    fn word(&self, cell: usize) -> u64 {
        self.word_at(cell).load(Ordering::Acquire)
    }
    #[inline]
    fn publish(&self, cell: usize, word: u64) {
        self.word_at(cell).store(word, Ordering::Release)
    }
    #[inline]
    fn spoil(&self, cell: usize, word: u64) {
        self.word_at(cell).store(word, Ordering::Relaxed)
    }
    #[inline]
    fn credit(&self) -> u32 {
        self.control().credit.load(Ordering::Acquire)
    }
    #[inline]
    fn set_credit(&self, position: u32) {
        self.control().credit.store(position, Ordering::Release)
    }
}
