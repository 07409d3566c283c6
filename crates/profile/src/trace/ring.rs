//! A thread's ring of records, in memory provided by the launcher. `kw_start::trace` defines its
//! layout.
//!
//! The record of a call is at the head from its beginning on, and is completed there. Further
//! records of the call follow, and the head then moves past all of them at once: the launcher sees
//! a call with the messages that it sent and received, or not at all. The launcher reads the record
//! of an unfinished call when the rank has ended.

use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_start::trace::*;

/// The memory of a rank's trace; the mapping exists as long as the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    base: *mut u8,
}

// SAFETY: an address range of words that are accessed as atomics or, as names, under a lock.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Wraps a mapping of [`SIZE`] bytes.
    ///
    /// # Safety
    /// The mapping has this length, and is never unmapped.
    pub unsafe fn new(base: *mut u8) -> Memory {
        Memory { base }
    }

    /// A word.
    #[inline(always)]
    pub fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= SIZE);
        // SAFETY: all offsets are those of the memory's own description, inside the mapping, and
        // multiples of 8; the word is only used as an atomic.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// The words of the record at an offset.
    #[inline(always)]
    fn record(&self, at: usize) -> *const Words {
        debug_assert!(at + RECORD <= SIZE);
        // SAFETY: as above.
        unsafe { self.base.add(at).cast() }
    }

    /// Writes a text that no other thread writes.
    pub fn text(&self, at: usize, text: &[u8]) {
        debug_assert!(at + text.len() <= SIZE);
        // SAFETY: inside the mapping; the caller holds the lock of the object that the text
        // describes.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(at), text.len()) }
    }
}

/// The words of a record.
type Words = [AtomicU64; RECORD / 8];

/// One thread's ring.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Memory,
    /// Its offset.
    at: usize,
    /// Position of the next record.
    next: u64,
    /// The launcher's position when it was last read.
    taken: u64,
    /// The record of the call in flight: at the head, or outside the ring if that is full.
    open: *const Words,
    aside: Box<Words>,
}

impl Ring {
    pub fn new(memory: Memory, number: usize) -> Ring {
        let at = RINGS_AT + number * RING;
        // SYNC: the previous thread has released the ring by the word of its sheet.
        let next = memory.word(at + HEAD).load(Ordering::Relaxed);
        // SAFETY: the call has no conditions.
        let tid = unsafe { libc::gettid() };
        // SYNC: the launcher reads rings up to here.
        memory
            .word(RINGS_USED)
            .fetch_max(number as u64 + 1, Ordering::Release);
        memory.word(at + TID).store(tid as u64, Ordering::Relaxed);
        let aside = Box::new([const { AtomicU64::new(0) }; RECORD / 8]);
        Ring {
            memory,
            at,
            next,
            taken: 0,
            open: &raw const *aside,
            aside,
        }
    }

    /// Whether there is room for another record.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        self.next.wrapping_sub(self.taken) < RECORDS as u64 || self.looks_again()
    }

    #[cold]
    #[inline(never)]
    fn looks_again(&mut self) -> bool {
        // SYNC: the launcher has read the records that it has taken.
        self.taken = self.memory.word(self.at + TAIL).load(Ordering::Acquire);
        self.next.wrapping_sub(self.taken) < RECORDS as u64
    }

    /// The record at the head.
    #[inline(always)]
    fn head(&self) -> *const Words {
        let place = self.next as usize % RECORDS;
        self.memory.record(self.at + RECORDS_AT + place * RECORD)
    }

    /// The record of the call in flight.
    #[inline(always)]
    fn words(&self) -> &Words {
        // SAFETY: words of the ring, or those outside it, which live as long as this does.
        unsafe { &*self.open }
    }

    /// Whether a call is in flight.
    pub fn is_open(&self) -> bool {
        std::ptr::eq(self.open, self.head()) && self.get(Record::END) == 0
    }

    /// A word of the call in flight.
    #[inline(always)]
    pub fn get(&self, word: usize) -> u64 {
        self.words()[word].load(Ordering::Relaxed)
    }

    /// Changes a word of the call in flight.
    #[inline(always)]
    pub fn set(&self, word: usize, value: u64) {
        // SYNC: the head tells when the words are complete.
        self.words()[word].store(value, Ordering::Relaxed);
    }

    /// Start time of the call in flight.
    pub fn begin(&self) -> u64 {
        self.get(Record::BEGIN)
    }

    /// Its destination, or its root.
    pub fn peer(&self) -> i32 {
        self.get(Record::RANKS) as i32
    }

    /// Sets flags of its record.
    pub fn flag(&self, flags: u8) {
        self.set(
            Record::WHAT,
            self.get(Record::WHAT) | u64::from(flags) << 24,
        );
    }

    /// Begins the record of a call: all but its times, which tell a reader of the head that it is
    /// there.
    #[inline(always)]
    pub fn open(&mut self, what: u64, ranks: u64, tag: u64, n: u64, more: u64) {
        self.open = match self.has_room() {
            true => self.head(),
            false => &raw const *self.aside,
        };
        let words = self.words();
        for (word, value) in [
            (Record::BEGIN, 0),
            (Record::END, 0),
            (Record::WHAT, what),
            (Record::RANKS, ranks),
            (Record::TAG, tag),
            (Record::BYTES, NONE),
            (Record::N, n),
            (Record::MORE, more),
        ] {
            // SYNC: the head tells when the words are complete.
            words[word].store(value, Ordering::Relaxed);
        }
    }

    /// Notes the end of the call; visible only after [`Ring::publish`].
    #[inline(always)]
    pub fn close(&mut self, end: u64, bytes: u64) {
        let words = self.words();
        // SYNC: as above.
        words[Record::END].store(end, Ordering::Relaxed);
        words[Record::BYTES].store(bytes, Ordering::Relaxed);
        match std::ptr::eq(self.open, &raw const *self.aside) {
            false => self.next += 1,
            true => self.lose(),
        }
    }

    /// Adds a record that is visible only after [`Ring::publish`]; not while a call is in progress.
    #[inline(always)]
    pub fn push(&mut self, record: &Record) {
        if !self.has_room() {
            return self.lose();
        }
        // SAFETY: words of the ring.
        let words = unsafe { &*self.head() };
        for (word, value) in words.iter().zip(record.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.next += 1;
    }

    #[cold]
    #[inline(never)]
    fn lose(&self) {
        let lost = self.memory.word(self.at + LOST);
        lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Makes all added records visible.
    #[inline(always)]
    pub fn publish(&self) {
        let head = self.memory.word(self.at + HEAD);
        // SYNC: records before the head are complete.
        head.store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
