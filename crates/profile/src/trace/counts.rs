//! Which of its kind a message is: the first, second, ... that went from one process to another with
//! one tag in one communicator. Both ends count alike, because messages of a kind are received in
//! the order in which they were sent (MPI 5.0, 3.5).

use kw_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kw_start::trace::NONE;

/// Kinds of messages that are counted, a power of two; messages of further ones have no number.
const PLACES: usize = 1 << 16;
/// Places that are looked at for a kind.
const TRIES: usize = 64;
/// The count of a kind of which something got lost: nothing more is said of it.
const UNKNOWN: u64 = 1 << 63;

/// Whether threads may call MPI at the same time, as far as is known.
static THREADS: AtomicBool = AtomicBool::new(true);

/// Says whether threads may call MPI at the same time.
pub(super) fn set_threads(threads: bool) {
    // SYNC: threads that are not to call at the same time hear of each other's calls by other ways.
    THREADS.store(threads, Ordering::Relaxed);
}

/// Adds one to a sum; what it was.
#[inline(always)]
pub(super) fn add_one(sum: &AtomicU64) -> u64 {
    // SYNC: a sum; who sends after another one has heard of it by other ways.
    match THREADS.load(Ordering::Relaxed) {
        true => sum.fetch_add(1, Ordering::Relaxed),
        false => {
            let n = sum.load(Ordering::Relaxed);
            sum.store(n + 1, Ordering::Relaxed);
            n
        }
    }
}

/// A kind of messages, for one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quintuple(u64);

impl Quintuple {
    /// Messages to (`sent`) or from a process.
    #[inline(always)]
    pub fn new(sent: bool, comm: u32, peer: i32, tag: i32) -> Quintuple {
        let a = (u64::from(comm) << 1 | u64::from(sent)) << 32 | u64::from(peer as u32);
        let b = (a ^ (tag as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9);
        // 0 is a free place
        Quintuple((b ^ b >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) | 1)
    }

    /// The number of the next one.
    #[inline(always)]
    pub fn next(self) -> u64 {
        match self.count() {
            None => NONE,
            Some(count) => match add_one(count) {
                n if n >= UNKNOWN => NONE,
                n => n,
            },
        }
    }

    /// One of them got lost, or its number did.
    #[cold]
    pub fn give_up(self) {
        if let Some(count) = self.count() {
            count.fetch_or(UNKNOWN, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn count(self) -> Option<&'static AtomicU64> {
        let [key, count] = &TABLE[(self.0 >> 40) as usize % PLACES];
        match key.load(Ordering::Relaxed) == self.0 {
            true => Some(count),
            false => self.look(),
        }
    }

    /// The lookup if another kind, or none, is in the first slot.
    #[inline(never)]
    fn look(self) -> Option<&'static AtomicU64> {
        let first = (self.0 >> 40) as usize;
        for n in 0..TRIES {
            let [key, count] = &TABLE[(first + n) % PLACES];
            let found = key.load(Ordering::Relaxed);
            if found == self.0 {
                return Some(count);
            }
            if found == 0 {
                let took = key.compare_exchange(0, self.0, Ordering::Relaxed, Ordering::Relaxed);
                if took.map_or_else(|other| other == self.0, |_| true) {
                    return Some(count);
                }
            }
        }
        None
    }
}

/// A key and a count for each; pages that are not used cost no memory.
static TABLE: [[AtomicU64; 2]; PLACES] = [const { [const { AtomicU64::new(0) }; 2] }; PLACES];

#[cfg(test)]
mod tests;
