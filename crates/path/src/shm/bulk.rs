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
//! middle of; the receiver copies out whatever is published, wanted or not. So slots come back, and
//! who finds none ([`PoolUse::starved`]) is rung when one does.

use std::sync::atomic::Ordering;

use kw_sys::buf::Buf;

use super::segment::{Lane, PIECES, PoolUse, SLOT, SLOTS};

/// The shortest lap, and the only one where ranks share cores.
pub const SHORT_LAP: usize = 16;

/// Slots of a pool that many senders use together, unless a lap is longer: 1.5 MB.
const CROWD: usize = 96;

/// Slots that a sender takes at once at most, for pieces that follow each other.
const AT_ONCE: u64 = 4;

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
    /// Slots that are gone round, and where the next one is looked for.
    lap: usize,
    next: usize,
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
        }
    }
}

impl Filler {
    /// Goes round so many slots from now on.
    pub fn set_lap(&mut self, slots: usize) {
        self.lap = slots.clamp(SHORT_LAP, SLOTS);
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
        // SAFETY: the slot is this side's alone from when it was taken until it is published.
        let out = unsafe { std::slice::from_raw_parts_mut(lane.slot(slot), n as usize) };
        buf.read(from, out);
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

    /// Takes slots of one word: the next of the lap, or the first free ones beyond it.
    fn take_some(&mut self, pool: &PoolUse, wanted: u64) -> Option<()> {
        let end = self.lap;
        let tries = [
            (self.next, end),
            (0, self.next.min(end)),
            (end, end.max(CROWD)),
        ];
        for (from, to) in tries {
            let mut at = from;
            while at < to {
                let upto = to.min((at / 64 + 1) * 64);
                if self.take_between(pool, at, upto, wanted) {
                    let last = self.word * 64 + 63 - self.held.leading_zeros() as usize;
                    self.next = if last + 1 < end { last + 1 } else { 0 };
                    return Some(());
                }
                at = upto;
            }
        }
        None
    }

    /// Takes up to `wanted` free slots from `at` to before `upto`, which lie in one word.
    fn take_between(&mut self, pool: &PoolUse, at: usize, upto: usize, wanted: u64) -> bool {
        let (word, shift) = (at / 64, at % 64);
        let room = u64::MAX >> (64 - (upto - at)) << shift;
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

impl Drainer {
    /// Copies one piece out into `buf` at packed byte `at`, of the `len` that the frame still has;
    /// how many went.
    pub fn drain(&mut self, lane: &Lane, buf: &Buf, at: u64, len: u64) -> u64 {
        let control = lane.control();
        if self.filled == self.drained {
            // SYNC: bulk-filled.
            self.filled = control.filled.load(Ordering::Acquire);
            if self.filled == self.drained {
                return 0;
            }
        }
        let slot = control.slots[(self.drained % PIECES as u64) as usize].load(Ordering::Relaxed);
        let n = len.min(SLOT as u64);
        // SAFETY: the slot lies inside the pool, and the sender has published it.
        let piece = unsafe { std::slice::from_raw_parts(lane.slot(slot), n as usize) };
        buf.write(at, piece);
        self.drained += 1;
        // SYNC: bulk-drained.
        control.drained.store(self.drained, Ordering::Release);
        let (word, bit) = (slot as usize / 64, slot % 64);
        // SYNC: slot-free. In one order with what a sender that finds none does.
        lane.pool_use().taken[word].fetch_and(!(1 << bit), Ordering::SeqCst);
        n
    }
}
