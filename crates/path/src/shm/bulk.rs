//! Long payload on its way to a rank, in pieces that are in slots of that rank's pool.
//!
//! The sender takes slots in a row, copies a piece in and publishes where it is; the receiver
//! copies the piece out meanwhile and gives the slots back. Pieces of one pair come in the order in
//! which they were published. A pool serves all senders of a rank, so memory grows with the number
//! of ranks and not with its square.
//!
//! The free slot that a sender takes decides in which caches its lines lie. If each rank has a core
//! of its own a sender goes round a *working set* that is longer than a core's own cache: a slot
//! that is reused has left the other core's cache by then, and is written without asking that core.
//! The first use of a slot costs more than that saves, so a working set is short at first and grows
//! with the data that is sent. If ranks share cores it stays short. Slots beyond a working set are
//! for many senders at once, up to 1.5 MB of a pool ([`CROWD`]): unused slots cost no memory.
//!
//! Publication is one word per piece, which shows by itself that it is new ([`Piece::published`]):
//! a receiver has to fetch a single line before it can copy. It looks at the word after that too:
//! if the sender is ahead, the next piece is known before this one has been copied.
//!
//! An allocated slot is always published next, or belongs to the frame that its sender is in the
//! middle of; the receiver copies out everything published, wanted or not. It keeps a few emptied
//! slots until it waits ([`Emptied`]), because returning them takes a cache line from a sender
//! while a message is handled. So slots come back, and a sender that finds none
//! ([`PoolUse::starved`]) is rung when one does.
//!
//! A sender sees how long its copies take, and while they are slow streams past the caches
//! ([`NontemporalCopier`]): between cores that share none this is the faster way by far.

use std::ops::Range;
use std::sync::atomic::Ordering;

use kw_base::pool::{SLOT, piece_of};
use kw_base::working_set::WorkingSet;
use kw_sys::buf::Pieces;
use kw_sys::nontemporal::{self, NontemporalCopier};

use super::segment::{Control, Lane, PoolUse, SLOTS, UNDER_WAY, USE_WORDS};

/// Slots of the first working set: the fewest of which some are free while a receiver keeps a few.
const FIRST_WORKING_SET: usize = 16;

/// Slots of the longest working set if ranks share cores.
pub const SHORT_WORKING_SET: usize = 32;

/// Slots of a pool that many senders use together, unless a working set is longer: 1.5 MB.
const CROWD: usize = UNDER_WAY;

/// Most slots that a sender takes at once, for pieces that follow each other: a built-in value.
const AT_ONCE: u64 = 8;

/// Slots of a working set that are left out after fewer than [`NO_GAP`]: a CPU that reads a slot
/// prefetches beyond its end, and the slots there must not be those that the sender writes at that
/// moment.
const GAP: usize = 1;
/// Slots taken at once after which none is left out: the part that is prefetched is small, and rows
/// of [`AT_ONCE`] fill the words of a pool, while with a gap the last row of each is shorter.
const NO_GAP: usize = 4;

/// Bytes of a core's own cache if the system does not tell: a built-in value.
const OWN_CACHE: usize = 1 << 20;
/// A long working set is this many times as long as that.
const WORKING_SET: usize = 2;
/// Most bytes that the working sets of all ranks of a host have together.
pub const POOLS: usize = 64 << 20;

/// Bytes after which lines have left a core's own cache.
pub fn working_set() -> usize {
    WORKING_SET * kw_sys::cpus::own_cache().unwrap_or(OWN_CACHE)
}

/// Slots of a working set of this many bytes, as far as there is room for all ranks.
pub fn long_working_set(ranks: usize, working_set: usize) -> usize {
    let all = POOLS / ranks.max(1) / SLOT;
    (working_set / SLOT).min(all).max(SHORT_WORKING_SET)
}

/// The bit of a piece's word that tells whether the word is new.
const MARK: u16 = 1 << 15;

/// Location of a piece, as published by its sender: a number of consecutive slots, of one word of
/// the pool's use.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: usize,
    count: usize,
}

impl Piece {
    /// The word of piece `number`; it differs from that of piece `number` - [`UNDER_WAY`], which it
    /// replaces.
    fn published(self, number: u64) -> u16 {
        Piece::mark(number) | (self.count as u16 - 1) << 12 | self.first as u16
    }

    /// Piece `number`, if it has been published.
    fn found(word: u16, number: u64) -> Option<Piece> {
        (word & MARK == Piece::mark(number)).then_some(Piece {
            first: (word & 0xfff) as usize,
            count: (word >> 12 & 7) as usize + 1,
        })
    }

    /// The mark: another one each time that the words of a pair are reused; they are zero at first.
    fn mark(number: u64) -> u16 {
        match number / UNDER_WAY as u64 % 2 {
            0 => MARK,
            _ => 0,
        }
    }

    /// Its slots, in a word of the pool.
    fn bits(self) -> u64 {
        row(self.count) << (self.first % 64)
    }
}

/// A mask of this many bits, at least one.
fn row(count: usize) -> u64 {
    u64::MAX >> (64 - count)
}

const _: () = assert!(SLOTS <= 1 << 12 && AT_ONCE <= 8);

/// The sending side's view.
#[derive(Debug)]
pub struct Filler {
    /// Pieces published.
    pieces: u64,
    /// Slots of these.
    filled: u64,
    /// Number of these that are known to have been copied out.
    drained: u64,
    /// Slots taken and not used yet.
    held: Piece,
    /// Slots of the working set.
    working_set: WorkingSet,
    /// Start of the search for the next one.
    next: usize,
    copier: NontemporalCopier,
}

/// Slots of this rank's own pool that are empty and not given back yet.
#[derive(Debug, Default)]
pub struct Emptied {
    slots: [u64; USE_WORDS],
    count: u32,
}

impl Emptied {
    /// Slots after which they are given back at once.
    const MOST: u32 = 8;

    /// Whether there are any.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// Keeps one more, or gives all back: when there are many, or a sender wants one. Returns
    /// whether one does, and has to be rung.
    #[inline]
    fn keep(&mut self, piece: Piece, lane: &Lane) -> bool {
        self.slots[piece.first / 64] |= piece.bits();
        self.count += piece.count as u32;
        if self.count < Emptied::MOST && !lane.is_starved() {
            return false;
        }
        self.give_back(lane.pool_use())
    }

    /// Gives all back. Returns whether a sender found none meanwhile, and has to be rung.
    pub fn give_back(&mut self, pool: &PoolUse) -> bool {
        for (word, slots) in pool.taken.iter().zip(&mut self.slots) {
            let slots = std::mem::take(slots);
            if slots != 0 {
                // SYNC: slot-free. Ordered with the steps of a sender that finds none.
                word.fetch_and(!slots, Ordering::SeqCst);
            }
        }
        self.count = 0;
        // SYNC: slot-free.
        pool.starved.load(Ordering::SeqCst) != 0
    }
}

/// The receiving side's view.
#[derive(Debug, Default)]
pub struct Drainer {
    pieces: u64,
    drained: u64,
    /// The piece after those, if it was seen.
    ahead: Option<Piece>,
}

impl Default for Filler {
    fn default() -> Filler {
        Filler {
            pieces: 0,
            filled: 0,
            drained: 0,
            held: Piece { first: 0, count: 0 },
            working_set: WorkingSet::new(FIRST_WORKING_SET as u64, SHORT_WORKING_SET as u64),
            next: 0,
            copier: NontemporalCopier::default(),
        }
    }
}

impl Filler {
    /// The working set may have this many slots from now on; `oversubscribed`: ranks share cores.
    pub fn spread_out(&mut self, slots: usize, oversubscribed: bool) {
        self.working_set
            .bound(slots.clamp(SHORT_WORKING_SET, SLOTS) as u64);
        self.copier = NontemporalCopier::new(oversubscribed);
    }

    /// Prefetches the line that tells which slots are taken: a long payload is about to be filled
    /// in.
    #[inline]
    pub fn prefetch_pool_use(&self, lane: &Lane) {
        if self.held.count == 0 {
            nontemporal::prefetch_for_write(&lane.pool_use().taken);
        }
    }

    /// Copies one piece of `buf` from packed byte `from` on, of the `len` bytes that are left after
    /// `done`; returns how many bytes. None while no slot is free, or too many are in flight.
    pub fn fill(
        &mut self,
        lane: &Lane,
        buf: &mut Pieces<'_>,
        from: u64,
        (done, len): (u64, u64),
    ) -> u64 {
        let control = lane.control();
        if self.filled - self.drained >= UNDER_WAY as u64 {
            // SYNC: bulk-drained.
            self.drained = control.drained.load(Ordering::Acquire);
            if self.filled - self.drained >= UNDER_WAY as u64 {
                return 0;
            }
        }
        let Some(piece) = self.take(lane, done, len) else {
            return 0;
        };
        // Only this side uses it from when it was taken until it is published.
        let slots = lane.slots(piece.first, piece.count);
        let n = len.min(slots.len());
        let bytes = slots.part(0, n);
        let buf = buf.next(n);
        match buf.row(from, n) {
            Some(row) if n >= self.copier.long() => self.copier.copy(row, bytes),
            _ => buf.pack(from, bytes),
        }
        // SYNC: bulk-filled.
        control.pieces[(self.pieces % UNDER_WAY as u64) as usize]
            .store(piece.published(self.pieces), Ordering::Release);
        self.pieces += 1;
        self.filled += piece.count as u64;
        n
    }

    /// Consecutive free slots for the next piece, of the `len` bytes that are left after `done`.
    fn take(&mut self, lane: &Lane, done: u64, len: u64) -> Option<Piece> {
        let wanted = len.div_ceil(SLOT as u64);
        if self.held.count == 0 {
            let pool = lane.pool_use();
            if self.take_some(pool, wanted).is_none() {
                lane.starve();
                self.take_some(pool, wanted)?;
            }
        }
        let count = wanted.min(piece_of(done + len) / SLOT as u64) as usize;
        let piece = Piece {
            count: count.min(self.held.count),
            ..self.held
        };
        self.held.first += piece.count;
        self.held.count -= piece.count;
        Some(piece)
    }

    /// Takes up to this many consecutive slots: the next of the working set, or the first free
    /// ones.
    fn take_some(&mut self, pool: &PoolUse, wanted: u64) -> Option<()> {
        let end = self.working_set.length() as usize;
        for among in [self.next..end, 0..end, 0..end.max(CROWD)] {
            let mut at = among.start;
            while at < among.end {
                let upto = among.end.min((at / 64 + 1) * 64);
                if let Some(held) = take_between(pool, at..upto, wanted) {
                    self.held = held;
                    let gap = if held.count < NO_GAP { GAP } else { 0 };
                    self.next = held.first + held.count + gap;
                    if self.next >= end {
                        self.next = 0;
                        self.working_set.end_round();
                    }
                    return Some(());
                }
                at = upto;
            }
        }
        None
    }
}

/// Takes up to `wanted` consecutive free slots of this range, which is in one word.
fn take_between(pool: &PoolUse, range: Range<usize>, wanted: u64) -> Option<Piece> {
    let word = range.start / 64;
    let room = row(range.len()) << (range.start % 64);
    let taken = &pool.taken[word];
    let mut seen = taken.load(Ordering::Relaxed);
    loop {
        let free = room & !seen;
        if free == 0 {
            return None;
        }
        let bit = free.trailing_zeros() as usize;
        let run = (!(free >> bit)).trailing_zeros() as u64;
        let piece = Piece {
            first: word * 64 + bit,
            count: run.min(wanted).min(AT_ONCE) as usize,
        };
        // SYNC: slot-free.
        match taken.compare_exchange_weak(
            seen,
            seen | piece.bits(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some(piece),
            Err(now) => seen = now,
        }
    }
}

/// Piece `number`, if it has been published.
#[inline]
fn look(control: &Control, number: u64) -> Option<Piece> {
    // SYNC: bulk-filled.
    let word = control.pieces[(number % UNDER_WAY as u64) as usize].load(Ordering::Acquire);
    Piece::found(word, number)
}

impl Drainer {
    /// Copies one piece out into `buf` at packed byte `at`, of the `len` bytes that the frame still
    /// has; returns how many bytes, and whether a sender wants a slot and has to be rung.
    pub fn drain(
        &mut self,
        (lane, emptied): (&Lane, &mut Emptied),
        buf: &mut Pieces<'_>,
        at: u64,
        len: u64,
    ) -> (u64, bool) {
        let control = lane.control();
        let Some(piece) = self.ahead.or_else(|| look(control, self.pieces)) else {
            return (0, false);
        };
        self.ahead = look(control, self.pieces + 1);
        let slots = lane.slots(piece.first, piece.count);
        let n = len.min(slots.len());
        let bytes = slots.part(0, n);
        let buf = buf.next(n);
        match buf.row(at, n) {
            Some(row) => nontemporal::fetch(bytes, row),
            None => buf.unpack(at, bytes),
        }
        self.pieces += 1;
        self.drained += piece.count as u64;
        // SYNC: bulk-drained.
        control.drained.store(self.drained, Ordering::Release);
        (n, emptied.keep(piece, lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_tells_where_its_piece_lies_and_that_it_is_new() {
        assert!(Piece::found(0, 0).is_none());
        for number in [
            0,
            1,
            UNDER_WAY as u64 - 1,
            UNDER_WAY as u64,
            5 * UNDER_WAY as u64 + 7,
        ] {
            for (first, count) in [(0, 1), (SLOTS - 1, 1), (SLOTS - 8, 8), (61, 3)] {
                let word = Piece { first, count }.published(number);
                let found = Piece::found(word, number).unwrap();
                assert_eq!((found.first, found.count), (first, count));
                assert!(Piece::found(word, number + UNDER_WAY as u64).is_none());
            }
        }
    }

    #[test]
    fn every_slot_is_taken_once_and_those_of_the_working_set_first() {
        let (segment, _fd) = super::super::segment::Segment::create(2).unwrap();
        let segment = std::sync::Arc::new(segment);
        let lane = segment.lane(0, 1);
        let mut filler = Filler::default();
        filler.spread_out(100, false);
        let mut next = || filler.take(&lane, 0, 1).map(|piece| piece.first);
        let mut taken: Vec<usize> = (0..CROWD).map(|_| next().unwrap()).collect();
        assert!(taken[..8].iter().copied().eq((0..16).step_by(GAP + 1)));
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..CROWD));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_working_set_grows_with_what_is_sent_as_far_as_it_may() {
        let (segment, _fd) = super::super::segment::Segment::create(2).unwrap();
        let segment = std::sync::Arc::new(segment);
        let lane = segment.lane(0, 1);
        for (longest, oversubscribed) in [(100, false), (SHORT_WORKING_SET, true)] {
            let mut filler = Filler::default();
            filler.spread_out(longest, oversubscribed);
            let mut working_sets = vec![];
            for _ in 0..2000 {
                let piece = filler.take(&lane, 0, 1).unwrap();
                assert!(piece.first < longest);
                // The receiver is quick.
                let word = &lane.pool_use().taken[piece.first / 64];
                word.fetch_and(!piece.bits(), Ordering::Relaxed);
                working_sets.push(filler.working_set.length() as usize);
            }
            working_sets.dedup();
            let all: &[usize] = if oversubscribed {
                &[16, 32]
            } else {
                &[16, 32, 64, 100]
            };
            assert_eq!(working_sets, all);
        }
    }
}
