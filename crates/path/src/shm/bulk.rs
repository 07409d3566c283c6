//! Long payload on its way to a rank, in pieces that lie in slots of that rank's pool.
//!
//! The sender takes a slot, copies a piece in and publishes the slot's number; the receiver copies
//! the piece out meanwhile and gives the slot back. Pieces of one pair come in the order in which
//! they were published. A pool serves all senders of a rank, so memory grows with the number of
//! ranks and not with its square.
//!
//! Which free slot a sender takes decides in which caches its lines lie. Where each rank has a core
//! of its own a sender goes round a *lap* that is longer than a core's own cache: a slot that comes
//! again has left the other core's cache then, and is written without asking that core. Where ranks
//! share cores the lap is short. Slots beyond a lap are for many senders at once, up to 1.5 MB of a
//! pool ([`CROWD`]): what is never used costs no memory.
//!
//! A slot that is taken is always published next, or belongs to the frame that its sender is in the
//! middle of; the receiver copies out whatever is published, wanted or not. A few slots that it has
//! emptied it keeps until it waits ([`Emptied`]), because giving them back takes a cache line from
//! a sender while a message is handled. So slots come back, and who finds none
//! ([`PoolUse::starved`]) is rung when one does.
//!
//! A sender sees how long its copies take, and while they are slow streams past the caches
//! ([`NontemporalCopier`]): between cores that share none this is the quicker way by far.

use std::ops::Range;
use std::sync::atomic::Ordering;

use kw_base::pool::{APART, SLOT};
use kw_sys::buf::Buf;
use kw_sys::nontemporal::{self, NontemporalCopier};

use super::segment::{Lane, PIECES, PoolUse, SLOTS, USE_WORDS};

/// The shortest lap, and the only one where ranks share cores.
pub const SHORT_LAP: usize = 32;

/// Slots of a pool that many senders use together, unless a lap is longer: 1.5 MB.
const CROWD: usize = PIECES;

/// Slots that a sender takes at once at most, for pieces that follow each other.
const AT_ONCE: u64 = 8;

/// Bytes of a core's own cache where the system does not say.
const OWN_CACHE: usize = 1 << 20;
/// A long lap is so many times as long as that.
const LAP: usize = 2;
/// Bytes that the laps of all ranks of a host have together at most.
pub const POOLS: usize = 64 << 20;

/// Slots of a lap that is longer than two of a core's own caches, as far as all ranks have room.
pub fn long_lap(ranks: usize) -> usize {
    let cache = kw_sys::cpus::own_cache().unwrap_or(OWN_CACHE);
    let all = POOLS / ranks.max(1) / SLOT;
    (LAP * cache / SLOT).min(all).max(SHORT_LAP)
}

/// The sending side's view.
#[derive(Debug)]
pub struct Filler {
    /// Pieces published.
    filled: u64,
    /// Of these, those known to have been copied out.
    drained: u64,
    /// Slots taken and not used yet: bits of this word.
    held: u64,
    word: usize,
    /// Slots that are gone round, and where the next one is looked for: of those whose numbers have
    /// this rest by [`APART`].
    lap: usize,
    next: usize,
    rest: usize,
    copier: NontemporalCopier,
}

/// Slots of this rank's own pool that are empty and not given back yet.
#[derive(Debug, Default)]
pub struct Emptied {
    slots: [u64; USE_WORDS],
    count: u32,
}

impl Emptied {
    /// So many of them, and they are given back at once.
    const MOST: u32 = 8;

    /// Whether there are any.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// Keeps one more, or gives all back: when there are many, or some sender wants one. Says
    /// whether one does, and is to be rung.
    #[inline]
    fn keep(&mut self, slot: u16, lane: &Lane) -> bool {
        self.slots[slot as usize / 64] |= 1 << (slot % 64);
        self.count += 1;
        if self.count < Emptied::MOST && !lane.is_starved() {
            return false;
        }
        self.give_back(lane.pool_use())
    }

    /// Gives all back. Says whether some sender found none meanwhile, and is to be rung.
    pub fn give_back(&mut self, pool: &PoolUse) -> bool {
        for (word, slots) in pool.taken.iter().zip(&mut self.slots) {
            let slots = std::mem::take(slots);
            if slots != 0 {
                // SYNC: slot-free. In one order with what a sender that finds none does.
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
    filled: u64,
    drained: u64,
}

impl Default for Filler {
    fn default() -> Filler {
        Filler {
            filled: 0,
            drained: 0,
            held: 0,
            word: 0,
            lap: SHORT_LAP,
            next: 0,
            rest: 0,
            copier: NontemporalCopier::default(),
        }
    }
}

impl Filler {
    /// Goes round so many slots from now on; `crowded`: ranks share cores.
    pub fn spread_out(&mut self, slots: usize, crowded: bool) {
        self.lap = slots.clamp(SHORT_LAP, SLOTS);
        self.copier = NontemporalCopier::new(crowded);
    }

    /// Has the line brought here that says which slots are taken: a long payload is about to be
    /// filled in.
    #[inline]
    pub fn prefetch_pool_use(&self, lane: &Lane) {
        if self.held == 0 {
            nontemporal::prefetch_for_write(&lane.pool_use().taken);
        }
    }

    /// Copies one piece of `buf` from packed byte `from` on, at most `len` bytes; how many went.
    /// None go while no slot is free, or too many pieces are under way.
    pub fn fill(&mut self, lane: &Lane, buf: &Buf, from: u64, len: u64) -> u64 {
        if self.filled - self.drained >= PIECES as u64 {
            // SYNC: bulk-drained.
            self.drained = lane.control().drained.load(Ordering::Acquire);
            if self.filled - self.drained >= PIECES as u64 {
                return 0;
            }
        }
        let Some(slot) = self.take(lane, len.div_ceil(SLOT as u64)) else {
            return 0;
        };
        let n = len.min(SLOT as u64);
        // This side's alone from when it was taken until it is published.
        let piece = lane.slot(slot).part(0, n);
        match buf.row(from, n) {
            Some(row) if n >= self.copier.long() => self.copier.copy(row, piece),
            _ => buf.pack(from, piece),
        }
        let control = lane.control();
        // SYNC: bulk-filled.
        control.slots[(self.filled % PIECES as u64) as usize].store(slot, Ordering::Relaxed);
        self.filled += 1;
        control.filled.store(self.filled, Ordering::Release);
        n
    }

    /// A free slot; `wanted` of them are about to be used.
    fn take(&mut self, lane: &Lane, wanted: u64) -> Option<u16> {
        let pool = lane.pool_use();
        if self.held == 0 && self.take_some(pool, wanted).is_none() {
            lane.starve();
            self.take_some(pool, wanted)?;
        }
        let bit = self.held.trailing_zeros() as usize;
        self.held &= self.held - 1;
        Some((self.word * 64 + bit) as u16)
    }

    /// Takes slots of one word: the next of the lap, or the first free ones.
    fn take_some(&mut self, pool: &PoolUse, wanted: u64) -> Option<()> {
        let end = self.lap;
        let next_rest = (self.rest + 1) % APART;
        let tries = [
            (self.next..end, Some(self.rest)),
            (0..end, Some(next_rest)),
            (0..end.max(CROWD), None),
        ];
        for (among, rest) in tries {
            let rest = rest.filter(|_| !self.copier.streams());
            let mut at = among.start;
            while at < among.end {
                let upto = among.end.min((at / 64 + 1) * 64);
                if self.take_between(pool, at..upto, rest, wanted) {
                    let last = self.word * 64 + 63 - self.held.leading_zeros() as usize;
                    self.next = if last + 1 < end { last + 1 } else { 0 };
                    self.rest = match self.next {
                        0 => (rest.unwrap_or(self.rest) + 1) % APART,
                        _ => rest.unwrap_or(self.rest),
                    };
                    return Some(());
                }
                at = upto;
            }
        }
        None
    }

    /// Takes up to `wanted` free slots of this range, which lies in one word, all or those whose
    /// numbers have that rest by [`APART`].
    fn take_between(
        &mut self,
        pool: &PoolUse,
        range: Range<usize>,
        rest: Option<usize>,
        wanted: u64,
    ) -> bool {
        let (word, shift) = (range.start / 64, range.start % 64);
        let among = rest.map_or(u64::MAX, |rest| with_rest(word, rest));
        let room = among & u64::MAX >> (64 - range.len()) << shift;
        let taken = &pool.taken[word];
        let mut seen = taken.load(Ordering::Relaxed);
        loop {
            let mut free = room & !seen;
            if free == 0 {
                return false;
            }
            let mut bits = 0;
            for _ in 0..wanted.min(AT_ONCE) {
                bits |= free & free.wrapping_neg();
                free &= free.wrapping_sub(1);
            }
            // SYNC: slot-free.
            match taken.compare_exchange_weak(
                seen,
                seen | bits,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    (self.held, self.word) = (bits, word);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }
}

/// A bit for each slot of a word of the pool whose number has this rest by [`APART`].
fn with_rest(word: usize, rest: usize) -> u64 {
    /// Every third bit from the first on.
    const THIRDS: u64 = 0x9249_2492_4924_9249;
    let first = (rest + APART * 64 - word * 64 % APART) % APART;
    THIRDS << first
}

impl Drainer {
    /// Copies one piece out into `buf` at packed byte `at`, of the `len` that the frame still has;
    /// how many went, and whether some sender wants a slot and is to be rung.
    pub fn drain(
        &mut self,
        (lane, emptied): (&Lane, &mut Emptied),
        buf: &Buf,
        at: u64,
        len: u64,
    ) -> (u64, bool) {
        let control = lane.control();
        if self.filled == self.drained {
            // SYNC: bulk-filled.
            self.filled = control.filled.load(Ordering::Acquire);
            if self.filled == self.drained {
                return (0, false);
            }
        }
        let slot = control.slots[(self.drained % PIECES as u64) as usize].load(Ordering::Relaxed);
        let n = len.min(SLOT as u64);
        let piece = lane.slot(slot).part(0, n);
        match buf.row(at, n) {
            Some(row) => nontemporal::fetch(piece, row),
            None => buf.unpack(at, piece),
        }
        self.drained += 1;
        // SYNC: bulk-drained.
        control.drained.store(self.drained, Ordering::Release);
        (n, emptied.keep(slot, lane))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_with_a_rest_are_every_third_one() {
        for slot in 0..SLOTS {
            for rest in 0..APART {
                let bit = with_rest(slot / 64, rest) >> (slot % 64) & 1;
                assert_eq!(bit == 1, slot % APART == rest, "slot {slot}, rest {rest}");
            }
        }
    }

    #[test]
    fn a_lap_comes_to_every_slot_and_goes_on_beyond_it_when_none_is_free() {
        let (segment, _fd) = super::super::segment::Segment::create(2).unwrap();
        let segment = std::sync::Arc::new(segment);
        let lane = segment.lane(0, 1);
        let mut filler = Filler::default();
        filler.spread_out(100, false);
        let mut taken: Vec<u16> = (0..100).map(|_| filler.take(&lane, 1).unwrap()).collect();
        let apart = taken.windows(2).filter(|w| w[1] == w[0] + APART as u16);
        assert!(apart.count() >= 90);
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..100));
        assert!((100..CROWD as u16).all(|slot| filler.take(&lane, 1) == Some(slot)));
        assert_eq!(filler.take(&lane, 1), None);
    }
}
