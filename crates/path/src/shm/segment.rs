//! The node segment: one memfd for all ranks of a job on one host. Offsets, never pointers, lie in
//! it.
//!
//! ```text
//! 0          header      magic, ranks, who may be fenced by a rank that falls asleep
//! RANKS      rank blocks: DoorbellSlot (doorbell, 128 bytes) | RankInfo (64 bytes) | PoolUse (128 bytes)
//!            | bitmap of ranks that ever sent here | bitmap of ranks that found no slot here
//! pairs      n * n pair blocks, [receiver][sender]: Control (9 cache lines) | CELLS cells
//! pools      n pools of SLOTS slots, [receiver]: long payload on its way to that rank
//! claims     bitmap of the boards that are in use, in a page of its own
//! boards     BOARDS boards (`board` says what lies in one)
//! ```
//! Only what is used is ever touched: a pair that never talks costs no page. A pair block is 265
//! cache lines long, so that the rings of different pairs do not fall on the same cache sets.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use kw_base::pool::SLOT;
use kw_sys::doorbell::{DoorbellSlot, FenceGroup};
use kw_sys::memfd::{self, Mapping};
use kw_sys::region::Region;

use super::board::BOARDS;
use super::ring::Memory;

/// Cells of a ring.
pub const CELLS: usize = 256;
/// Bytes of a cell.
pub const CELL: usize = 64;
/// Slots of a pool.
pub const SLOTS: usize = 64 * USE_WORDS;
/// Slots of one pair that may be under way at a time: as many as all senders use of a pool
/// together, since of ranks that share cores the receiver runs when the sender has let it. A piece
/// has one slot or more.
pub const UNDER_WAY: usize = 192;

/// Words that hold a bit for each of them.
pub const USE_WORDS: usize = 8;

const MAGIC: u64 = 0x0037_6b6f_6e77_6b03;
const RANKS: usize = 4096;
const CONTROL: usize = 576;
const PAIR: usize = CONTROL + CELLS * CELL;
/// Where the first bitmap lies in a rank's block.
const SENDERS: usize = size_of::<DoorbellSlot>() + size_of::<RankInfo>() + size_of::<PoolUse>();

const _: () = assert!(size_of::<Control>() == CONTROL);

/// What a rank says about itself.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct RankInfo {
    /// Process number; zero before the rank has joined.
    pub pid: AtomicU32,
    /// Address of a word in the rank's own memory that holds `secret`: who can fetch it may fetch
    /// anything.
    pub probe: AtomicU64,
    /// Random.
    pub secret: AtomicU64,
    /// The first processor that the rank may use, counted from 1.
    pub cpu: AtomicU32,
    /// Not zero once the rank has said goodbye to all.
    pub left: AtomicU32,
    /// When the process started, and in which pid namespace it has its number; zeroes where that
    /// is not known ([`kw_sys::pidfd::Identity`]).
    pub started: AtomicU64,
    pub namespace: AtomicU64,
    /// On which processor the rank ran, and when, as it noted last (`rebalance`).
    pub cpu_slot: AtomicU64,
}

/// Which slots of a rank's pool are taken.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct PoolUse {
    /// A bit for each slot: set by the sender that takes it, cleared by the receiver when it has
    /// copied the piece out.
    pub taken: [AtomicU64; USE_WORDS],
    /// Some sender has found no slot since the receiver last looked.
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

fn boards(n: usize) -> usize {
    claims(n) + 4096
}

/// Bytes of a segment for `n` ranks.
pub fn size(n: usize) -> usize {
    boards(n) + BOARDS * super::board::bytes(n)
}

impl Segment {
    /// Makes the segment; the file descriptor is to be handed out and closed.
    pub fn create(n: usize) -> std::io::Result<(Segment, OwnedFd)> {
        let fd = memfd::create(size(n))?;
        let segment = Segment::map(std::os::fd::AsFd::as_fd(&fd), n)?;
        segment.header(0).store(MAGIC, Ordering::Relaxed);
        segment.header(8).store(n as u64, Ordering::Relaxed);
        Ok((segment, fd))
    }

    /// Maps the segment another rank made.
    pub fn open(fd: BorrowedFd<'_>, n: usize) -> std::io::Result<Segment> {
        let segment = Segment::map(fd, n)?;
        let (magic, ranks) = (segment.header(0), segment.header(8));
        if magic.load(Ordering::Relaxed) != MAGIC || ranks.load(Ordering::Relaxed) != n as u64 {
            return Err(std::io::Error::other(
                "the shared segment was made by another version of the library or for another number of ranks",
            ));
        }
        Ok(segment)
    }

    fn map(fd: BorrowedFd<'_>, n: usize) -> std::io::Result<Segment> {
        Ok(Segment {
            map: Mapping::of(fd, size(n))?,
            n,
            block: block(n),
        })
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

    /// A rank enters; once each.
    pub fn enter(&self) {
        self.fence_group().join();
    }

    /// Stands between publishing something and [`Ringer::ring`](kw_sys::doorbell::Ringer::ring).
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
        // SAFETY: as above.
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
        // SAFETY: as above.
        unsafe { &*(self.map.at(at + w * 8) as *const AtomicU64) }
    }

    /// Which slots of a rank's pool are taken.
    #[inline]
    pub fn pool_use(&self, i: usize) -> &PoolUse {
        let at = self.rank(i) + size_of::<DoorbellSlot>() + size_of::<RankInfo>();
        // SAFETY: as above.
        unsafe { &*(self.map.at(at) as *const PoolUse) }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.n
    }

    /// Which boards are in use, a bit each.
    pub fn claims(&self) -> &AtomicU64 {
        self.header(claims(self.n))
    }

    /// First byte of a board.
    pub fn board(&self, number: usize) -> *mut u8 {
        assert!(number < BOARDS, "board {number}");
        self.map
            .at(boards(self.n) + number * super::board::bytes(self.n))
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

    /// First byte of a cell.
    #[inline]
    pub fn cell(&self, cell: usize) -> *mut u8 {
        debug_assert!(cell < CELLS, "cell {cell}");
        self.cells.wrapping_add(cell * CELL)
    }

    /// So many slots of the receiver's pool in a row.
    #[inline]
    pub fn slots(&self, first: usize, count: usize) -> Region<'_> {
        assert!(
            first + count <= SLOTS,
            "{count} slots from {first} on of {SLOTS}"
        );
        // SAFETY: inside the mapping, which `_keep` keeps.
        unsafe { Region::new(self.pool.wrapping_add(first * SLOT), (count * SLOT) as u64) }
    }

    /// Which slots of the receiver's pool are taken.
    #[inline]
    pub fn pool_use(&self) -> &PoolUse {
        // SAFETY: taken from a reference into the mapping, which `_keep` keeps.
        unsafe { &*self.pool_use }
    }

    /// Whether some sender has found no slot since that was last asked for.
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
        // SYNC: slot-free. First who, then that somebody does, then the look.
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
