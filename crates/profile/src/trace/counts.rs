//! Number of a message of its kind: the first, second, ... from one process to another with one tag
//! in one communicator. Both ends count alike, because messages of a kind are received in the order
//! in which they were sent (MPI 5.0, 3.5).

use kw_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kw_start::trace::NONE;

/// Kinds of messages that are counted, a power of two; messages of further kinds have no number.
const PLACES: usize = 1 << 16;
/// Slots that are searched for a kind.
const TRIES: usize = 64;
/// The count of a kind that has lost a message: it gives no more numbers.
const UNKNOWN: u64 = 1 << 63;

/// Whether threads may call MPI at the same time, as far as is known.
static THREADS: AtomicBool = AtomicBool::new(true);

/// Notes whether threads may call MPI at the same time.
pub(super) fn set_threads(threads: bool) {
    // SYNC: threads that may not call at the same time are synchronised by other means.
    THREADS.store(threads, Ordering::Relaxed);
}

/// Adds one to a sum; returns the old value.
#[inline(always)]
pub(super) fn add_one(sum: &AtomicU64) -> u64 {
    // SYNC: a sum; a thread that sends after another one is synchronised by other means.
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

    /// The number of the next message.
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

    /// Notes that a message of this kind, or its number, was lost.
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

    /// The lookup if the first slot is empty or holds another kind.
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
