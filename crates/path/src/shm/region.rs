//! Shm regions: memory through which the ranks of a node perform collectives together, without
//! messages.
//!
//! A segment has thousands of shm regions (`segment` has their number); a communicator claims one
//! for as long as it lives, the first that is free, so that shm regions whose pages are there
//! already come first. The first [`KEPT`] keep their pages when they are given back, the others
//! give them back, too. In every shm region a rank owns [`LINES`] *lines* (a word, 48 bytes, and
//! the signature of its call, in one cache line), [`SLOTS`] short areas, and a ring for long data.
//! The word tells how far the rank has come: `number << STAGE_BITS | stage` for collective
//! `number`, whose line is `number % LINES` and whose short area is `number % SLOTS`; it only
//! grows.
//!
//! ```text
//! count      ranks that sleep, or are about to, because of this shm region; ranks that have left it; a tally (a cache line)
//! watching   one u32 a rank: the rank it sleeps for (place + 1; 0: none)
//! lines      [line][rank] of 64 bytes: all that a short collective touches lies together
//! smalls     [rank][slot] of SMALL bytes
//! shorts     [rank][slot] of SHORT bytes
//! rings      [rank] of [`ring`] bytes
//! ```
//! Strides are odd numbers of cache lines, so that the areas of different ranks do not fall on the
//! same cache sets. Only what is used is ever touched, so it costs no memory before. Touching a
//! page for the first time costs each process more than a short collective: small areas are close
//! together for that.
//!
//! # Order of accesses
//! [`ShmRegion::raise`] publishes everything its rank wrote before; a rank that reads the word with
//! [`ShmRegion::word`] sees it (`SYNC: shm-region-stage`). Access to the areas follows the rule of
//! `kw_coll::executor` (`flow.rs`). A rank that sleeps sets its watching word, arms its doorbell,
//! and polls again; a rank that signals reads the count afterwards, and rings the ranks that watch
//! it (`SYNC: shm-region-sleep`, the same protocol as the doorbell's).

use super::segment::{PAGE, Segment};
use kw_base::shm_region::{SHORT, ring};
use kw_sys::doorbell::Ringer;
use kw_sys::region::Region;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Shm regions that keep their pages when they are given back, and whose working sets are of full
/// length.
pub const KEPT: u32 = 64;
/// Collectives that a rank may be ahead of another one on a shm region, and one more, while they
/// need no more than their lines.
pub const LINES: u64 = 64;
/// The same for those that need their short areas.
pub const SLOTS: u64 = 16;
/// Bytes of data beside the word.
pub const LINE: usize = 48;
/// Offset of the signature of a rank's call in its line.
const SIGNATURE: usize = 8 + LINE;
/// Bytes of a small area, which replaces a short one if data is no longer.
pub const SMALL: usize = 1024;
/// The working sets of all ranks together are this many working sets of long messages. Lines that
/// are reused soon are in the caches of their readers, and writing such a line takes two to three
/// times as long as one that has left them (64 KB exchanged between two cores of an EPYC: 9 us when
/// 128 KB are used over and over, 3.6 us when 2 MB are). Beyond the first [`KEPT`] shm regions
/// working sets become shorter as the number of shm regions grows ([`ShmRegion::working_set`]).
const WORKING_SETS: usize = 2;
/// Bits of a word that hold the stage.
pub const STAGE_BITS: u32 = 20;

const HEAD: usize = 64;
/// Offset of the tally in the head.
const TALLY: usize = 8;

fn lines(n: usize) -> usize {
    HEAD + (n * 4).next_multiple_of(64)
}

/// Areas for short data, [`SLOTS`] of each rank: [rank][slot].
#[derive(Clone, Copy, Debug)]
pub struct Areas {
    /// Their offset in the shm region.
    at: usize,
    /// Bytes of one area.
    pub len: usize,
}

impl Areas {
    fn small(n: usize) -> Areas {
        let at = (lines(n) + LINES as usize * n * 64).next_multiple_of(4096);
        Areas { at, len: SMALL }
    }

    fn short(n: usize) -> Areas {
        let at = Areas::small(n).end(n);
        Areas { at, len: SHORT }
    }

    fn stride(self) -> usize {
        self.len + 64
    }

    /// Distance of the first areas of consecutive ranks, bytes.
    fn of_rank(self) -> usize {
        SLOTS as usize * self.stride() + 64
    }

    /// Offset of the first page after those of `n` ranks.
    fn end(self, n: usize) -> usize {
        (self.at + n * self.of_rank()).next_multiple_of(4096)
    }
}

fn rings(n: usize) -> usize {
    Areas::short(n).end(n)
}

fn ring_stride(n: usize) -> usize {
    ring(n) + 192
}

/// Bytes of one shm region for `n` ranks.
pub fn bytes(n: usize) -> usize {
    (rings(n) + n * ring_stride(n)).next_multiple_of(PAGE)
}

/// The shm regions of a host, as one of its ranks sees them.
#[derive(Clone, Debug)]
pub struct ShmRegions {
    segment: Arc<Segment>,
    me: usize,
    ringer: Arc<Ringer>,
}

impl ShmRegions {
    pub(super) fn new(segment: Arc<Segment>, me: usize, ringer: Arc<Ringer>) -> ShmRegions {
        ShmRegions {
            segment,
            me,
            ringer,
        }
    }

    /// The shm regions of a rank that is alone on its host (a communicator of several hosts has a
    /// shm region on each, or none).
    pub fn alone() -> std::io::Result<ShmRegions> {
        let (segment, _) = Segment::create(1)?;
        Ok(ShmRegions::new(
            Arc::new(segment),
            0,
            Arc::new(Ringer::new()),
        ))
    }

    /// Takes the first free shm region for a new communicator; `None` when all are in use.
    pub fn claim(&self) -> Option<u32> {
        let claims = self.segment.claims();
        let first = (0..).zip(claims).find_map(|(word, taken)| {
            let bit = claim_in(taken)?;
            Some(word * 64 + bit)
        });
        if first.is_none() {
            let all = claims.len() * 64;
            tracing::debug!("shared memory: all {all} shm regions are in use, one more is wanted");
        }
        first
    }

    /// Takes the first free shm region while less than half are in use.
    pub fn claim_spare(&self) -> Option<u32> {
        let claims = self.segment.claims();
        let taken = claims
            .iter()
            .map(|w| w.load(Ordering::Relaxed).count_ones());
        match (taken.sum::<u32>() as usize) < claims.len() * 64 / 2 {
            true => self.claim(),
            false => None,
        }
    }

    /// Returns a shm region that no rank has opened.
    pub fn unclaim(&self, number: u32) {
        let bit = 1u64 << (number % 64);
        let taken = self.segment.claim_of(number as usize);
        // SYNC: shm-region-claim.
        taken.fetch_and(!bit, Ordering::Release);
    }

    /// A shm region that a rank of this host has claimed, by the number that it published.
    pub fn open(&self, number: u32) -> ShmRegion {
        let (base, n) = (
            self.segment.shm_region(number as usize),
            self.segment.ranks(),
        );
        ShmRegion {
            base,
            n,
            lines: base.wrapping_add(lines(n)),
            small: Areas::small(n),
            short: Areas::short(n),
            number,
            of: self.clone(),
        }
    }
}

/// Takes the first free shm region of one word; `None` when all are in use.
fn claim_in(claims: &AtomicU64) -> Option<u32> {
    let mut taken = claims.load(Ordering::Relaxed);
    while taken != u64::MAX {
        let free = taken.trailing_ones();
        // SYNC: shm-region-claim. The rank that gave it back has wiped it.
        match claims.compare_exchange_weak(
            taken,
            taken | 1 << free,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some(free),
            Err(now) => taken = now,
        }
    }
    None
}

/// One shm region, as one rank of a communicator sees it. Ranks are named by their places: their
/// numbers on the host.
#[derive(Debug)]
pub struct ShmRegion {
    base: *mut u8,
    n: usize,
    /// Offset of the lines.
    lines: *mut u8,
    small: Areas,
    short: Areas,
    number: u32,
    of: ShmRegions,
}

// SAFETY: an address in shared memory, valid while the segment lives, which `of` keeps; words are
// atomics, and those words order all accesses to the areas.
unsafe impl Send for ShmRegion {}

impl ShmRegion {
    /// This rank's place.
    pub fn me(&self) -> u32 {
        self.of.me as u32
    }

    #[inline]
    fn count(&self, at: usize) -> &AtomicU32 {
        // SAFETY: aligned, inside the shm region (callers give places below `n`), only ever touched
        // as an atomic.
        unsafe { &*(self.base.wrapping_add(at) as *const AtomicU32) }
    }

    /// A number that any rank may change at any time; 0 when the shm region is claimed.
    #[inline]
    pub fn tally(&self) -> &AtomicU64 {
        // SAFETY: aligned, inside the shm region's first line, only ever touched as an atomic.
        unsafe { &*(self.base.wrapping_add(TALLY) as *const AtomicU64) }
    }

    #[inline]
    fn sleepers(&self) -> &AtomicU32 {
        self.count(0)
    }

    #[inline]
    fn watching(&self, place: usize) -> &AtomicU32 {
        assert!(place < self.n, "place {place}");
        self.count(HEAD + place * 4)
    }

    #[inline(always)]
    fn line(&self, place: u32, number: u64) -> *mut u8 {
        assert!((place as usize) < self.n, "place {place}");
        let line = (number % LINES) as usize * self.n + place as usize;
        self.lines.wrapping_add(line * 64)
    }

    /// A rank's word, and its signature, in the line of collective `number`.
    #[inline(always)]
    fn words(&self, place: u32, number: u64) -> (&AtomicU64, &AtomicU64) {
        let line = self.line(place, number);
        // SAFETY: aligned, inside the line, only ever touched as atomics.
        unsafe {
            (
                &*(line as *const AtomicU64),
                &*(line.wrapping_add(SIGNATURE) as *const AtomicU64),
            )
        }
    }

    /// How far a rank has come, in the line of collective `number`.
    #[inline]
    pub fn word(&self, place: u32, number: u64) -> u64 {
        // SYNC: shm-region-stage.
        self.words(place, number).0.load(Ordering::Acquire)
    }

    /// How far a rank has come, and the signature of the call that has brought it there.
    #[inline(always)]
    pub fn flag(&self, place: u32, number: u64) -> (u64, u64) {
        let (word, signature) = self.words(place, number);
        // SYNC: shm-region-stage.
        let word = word.load(Ordering::Acquire);
        (word, signature.load(Ordering::Relaxed))
    }

    /// Publishes that this rank has come to a stage of collective `number`, and that
    /// `call_signature` is its call; wakes the ranks that sleep for that.
    #[inline(always)]
    pub fn raise(&self, number: u64, stage: u32, call_signature: u64) {
        let (word, signature) = self.words(self.of.me as u32, number);
        signature.store(call_signature, Ordering::Relaxed);
        // SYNC: shm-region-stage.
        word.store(number << STAGE_BITS | stage as u64, Ordering::Release);
        // SYNC: shm-region-sleep. A rank that misses the word in its last poll before it sleeps is
        // seen here.
        self.of.segment.fence();
        if self.sleepers().load(Ordering::Acquire) != 0 {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        for place in (0..self.n).filter(|&p| p != self.of.me) {
            if self.watching(place).load(Ordering::Relaxed) == self.of.me as u32 + 1 {
                self.of.ringer.ring(self.of.segment.doorbell_slot(place));
            }
        }
    }

    /// Announces that this rank is about to sleep until the rank at `place` raises its stage. Arm
    /// the doorbell afterwards, poll again, and take it back with [`ShmRegion::watch_nobody`].
    pub fn watch(&self, place: u32) {
        self.watching(self.of.me)
            .store(place + 1, Ordering::Relaxed);
        // SYNC: shm-region-sleep.
        self.sleepers().fetch_add(1, Ordering::Release);
    }

    /// This rank is awake; once for each [`ShmRegion::watch`].
    pub fn watch_nobody(&self) {
        self.sleepers().fetch_sub(1, Ordering::Relaxed);
        self.watching(self.of.me).store(0, Ordering::Relaxed);
    }

    /// The bytes beside a rank's word: [`LINE`] of them.
    #[inline]
    pub fn beside(&self, place: u32, number: u64) -> Region<'_> {
        let at = self.to_line(place) as u64;
        self.all_lines(number).part(at, LINE as u64)
    }

    /// The lines of all ranks for collective `number`.
    #[inline(always)]
    pub fn all_lines(&self, number: u64) -> Region<'_> {
        self.region(self.line(0, number), self.n * 64)
    }

    /// The bytes between an offset and those beside a rank's word.
    #[inline]
    pub fn to_line(&self, place: u32) -> i64 {
        assert!((place as usize) < self.n, "place {place}");
        place as i64 * 64 + 8
    }

    /// The areas for this many bytes per rank, at most [`SHORT`].
    pub fn areas(&self, bytes: u64) -> Areas {
        match bytes <= SMALL as u64 {
            true => self.small,
            false => self.short,
        }
    }

    /// A rank's area for collective `number`, aligned to a cache line.
    #[inline]
    pub fn area(&self, areas: Areas, place: u32, number: u64) -> Region<'_> {
        let at = self.to(areas, place) as u64;
        self.all(areas, number).part(at, areas.len as u64)
    }

    /// From rank 0's area for collective `number` to the end of the last rank's.
    #[inline]
    pub fn all(&self, areas: Areas, number: u64) -> Region<'_> {
        let slot = (number % SLOTS) as usize;
        let from = self.base.wrapping_add(areas.at + slot * areas.stride());
        self.region(from, (self.n - 1) * areas.of_rank() + areas.len)
    }

    /// The bytes between an offset and a rank's area.
    #[inline]
    pub fn to(&self, areas: Areas, place: u32) -> i64 {
        assert!((place as usize) < self.n, "place {place}");
        (place as usize * areas.of_rank()) as i64
    }

    /// Bytes of a rank's ring, if the rings of all ranks should stay in a cache that they share. A
    /// shm region of a higher number is one of many that are in use, and all of them together
    /// should take little memory: shm region `k` has [`KEPT`]` / k` of the first ones' working set.
    pub fn working_set(&self) -> u64 {
        let (kept, number) = (KEPT as usize, self.number as usize);
        let working_sets = WORKING_SETS * self.of.segment.working_set();
        (working_sets * kept / number.max(kept) / self.n) as u64
    }

    /// Bytes of a rank's ring.
    #[inline]
    pub fn reach(&self) -> u64 {
        ring(self.n) as u64
    }

    /// Byte `at` of a rank's ring, the first of `len`.
    #[inline]
    pub fn long(&self, place: u32, at: u64, len: u64) -> Region<'_> {
        let from = self.to_long(place) as u64;
        self.rings().part(from, ring(self.n) as u64).part(at, len)
    }

    /// From byte `at` of rank 0's ring to `len` bytes behind byte `at` of the last rank's.
    #[inline]
    pub fn all_long(&self, at: u64, len: u64) -> Region<'_> {
        let last = (self.n - 1) * ring_stride(self.n);
        self.rings().part(at, last as u64 + len)
    }

    /// The bytes between an offset and a rank's ring.
    #[inline]
    pub fn to_long(&self, place: u32) -> i64 {
        assert!((place as usize) < self.n, "place {place}");
        (place as usize * ring_stride(self.n)) as i64
    }

    /// The rings of all ranks.
    #[inline]
    fn rings(&self) -> Region<'_> {
        let len = (self.n - 1) * ring_stride(self.n) + ring(self.n);
        self.region(self.base.wrapping_add(rings(self.n)), len)
    }

    /// Some bytes of the shm region.
    #[inline]
    fn region(&self, at: *mut u8, len: usize) -> Region<'_> {
        // SAFETY: inside the shm region, which stays mapped while `self` lives.
        unsafe { Region::new(at, len as u64) }
    }

    /// This rank will not touch the shm region again. The last rank to say so wipes it and gives it
    /// back, and beyond the first [`KEPT`] shm regions its memory, too; `places` are those of all
    /// ranks, `last` is the number of the last collective.
    pub fn leave(self, places: &[u32], last: u64) {
        let left = self.count(4);
        // SYNC: shm-region-leave. The last one sees that all others have ended.
        if left.fetch_add(1, Ordering::AcqRel) + 1 < places.len() as u32 {
            return;
        }
        for number in last.saturating_sub(LINES - 1)..=last {
            for &place in places {
                self.words(place, number).0.store(0, Ordering::Relaxed);
            }
        }
        left.store(0, Ordering::Relaxed);
        self.tally().store(0, Ordering::Relaxed);
        if self.number >= KEPT {
            self.of.segment.give_back(self.number as usize);
        }
        self.of.unclaim(self.number);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
