//! A thread's ring of records, in the memory that the launcher gave. What stands where says
//! `kw_start::trace`.
//!
//! Records of a call are written behind the head, which then moves past all of them at once: the
//! launcher sees a call with the messages that it sent and received, or not at all. What is at the
//! head while a call is under way it reads when the rank has ended.

use kw_base::sync::atomic::{AtomicU64, Ordering};
use kw_start::trace::*;

/// The memory of a rank's trace; the mapping stays for as long as the process does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    base: *mut u8,
}

// SAFETY: an address range of words that are read and written as atomics, or, as names, under a lock.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Of a mapping of [`SIZE`] bytes.
    ///
    /// # Safety
    /// The mapping is as long, and stays.
    pub unsafe fn new(base: *mut u8) -> Memory {
        Memory { base }
    }

    /// A word.
    #[inline(always)]
    pub fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= SIZE);
        // SAFETY: all places are those of the memory's own description, inside the mapping, and
        // multiples of 8; nobody uses the word but as an atomic.
        unsafe { &*self.base.add(at).cast::<AtomicU64>() }
    }

    /// Writes a text where nobody else writes.
    pub fn text(&self, at: usize, text: &[u8]) {
        debug_assert!(at + text.len() <= SIZE);
        // SAFETY: inside the mapping; who calls this holds the lock of what it describes.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), self.base.add(at), text.len()) }
    }
}

/// One thread's ring.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Memory,
    /// Where it begins.
    at: usize,
    /// Where the next record goes.
    next: u64,
    /// What the launcher had taken when we last looked.
    taken: u64,
    /// Whether the call under way stands there.
    shown: bool,
}

impl Ring {
    pub fn new(memory: Memory, number: usize) -> Ring {
        let at = RINGS_AT + number * RING;
        // SYNC: the thread that had it before has left it by the word of its sheet.
        let next = memory.word(at + HEAD).load(Ordering::Relaxed);
        // SAFETY: it has no conditions.
        let tid = unsafe { libc::gettid() };
        // SYNC: the launcher reads rings up to here.
        memory
            .word(RINGS_USED)
            .fetch_max(number as u64 + 1, Ordering::Release);
        memory.word(at + TID).store(tid as u64, Ordering::Relaxed);
        Ring {
            memory,
            at,
            next,
            taken: 0,
            shown: false,
        }
    }

    /// Whether there is room for one more.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        if self.next.wrapping_sub(self.taken) < RECORDS as u64 {
            return true;
        }
        // SYNC: what the launcher has taken it has read.
        self.taken = self.memory.word(self.at + TAIL).load(Ordering::Acquire);
        self.next.wrapping_sub(self.taken) < RECORDS as u64
    }

    #[inline(always)]
    fn write(&self, record: &Record) {
        let place = self.next as usize % RECORDS;
        let at = self.at + RECORDS_AT + place * RECORD;
        for (n, word) in record.words().into_iter().enumerate() {
            // SYNC: the head says when they are whole.
            self.memory.word(at + 8 * n).store(word, Ordering::Relaxed);
        }
    }

    /// Shows the call under way to who reads the head, if there is room.
    #[inline(always)]
    pub fn show(&mut self, record: &Record) {
        self.shown = self.has_room();
        if self.shown {
            self.write(record);
        }
    }

    /// The call that was shown has ended; nobody sees that before [`Ring::publish`]. `changed`: more
    /// of it than end and bytes is another.
    #[inline(always)]
    pub fn finish(&mut self, record: &Record, changed: bool) {
        if !self.shown || changed {
            return self.push(record);
        }
        let place = self.next as usize % RECORDS;
        let at = self.at + RECORDS_AT + place * RECORD;
        // SYNC: as in `write`.
        self.memory
            .word(at + 8)
            .store(record.end, Ordering::Relaxed);
        self.memory
            .word(at + 40)
            .store(record.bytes, Ordering::Relaxed);
        self.next += 1;
    }

    /// Adds a record that nobody sees before [`Ring::publish`].
    #[inline(always)]
    pub fn push(&mut self, record: &Record) {
        if self.has_room() {
            self.write(record);
            self.next += 1;
        } else {
            self.lose();
        }
    }

    #[cold]
    fn lose(&self) {
        let lost = self.memory.word(self.at + LOST);
        lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// All that was added is there.
    #[inline(always)]
    pub fn publish(&self) {
        let head = self.memory.word(self.at + HEAD);
        // SYNC: records before the head are whole.
        head.store(self.next, Ordering::Release);
    }
}
