//! A ring of 64-byte cells with one producer and one consumer, in shared memory.
//!
//! A frame takes one cell or several in a row. The first cell begins with the publication word; the
//! frame's bytes follow at once, so that header and small payload travel in the very cache line
//! that announces them. Further cells are bytes only.
//!
//! ```text
//! word   bits 0..32   position of the cell since the ring was made, plus one: "published" when it equals the consumer's
//!        bits 32..56  bytes of the frame
//!        bits 56..64  mark: the kind of the frame, or `PAD`: nothing, go on at cell 0
//! ```
//!
//! Bytes of a long frame may look like a word. The consumer reads a word only where the next frame
//! begins, so the producer keeps one invariant: *the cell behind the last published frame never
//! holds the word the consumer expects*. It knows which cells held plain bytes, and overwrites the
//! word of such a cell before it publishes the frame in front.
//!
//! The consumer publishes its progress a quarter of the ring at a time; one frame with its padding
//! never needs more than the three quarters that are certain to be free once everything was read.

/// Mark of padding at the end of the ring.
pub const PAD: u8 = 0xff;

/// Storage of words and credit: mapped memory, or loom's model of it.
pub trait Memory {
    /// Reads a word; what was written before its publication is visible afterwards.
    fn word(&self, cell: usize) -> u64;
    /// Publishes a word after everything written before.
    fn publish(&self, cell: usize, word: u64);
    /// Overwrites a word; ordered by the next publication.
    fn spoil(&self, cell: usize, word: u64);
    /// Reads the consumer's progress; cells before it may be overwritten afterwards.
    fn credit(&self) -> u32;
    /// Publishes progress after everything read before.
    fn set_credit(&self, position: u32);
}

/// A place in the ring for one frame, not yet published.
#[derive(Debug)]
pub struct Slot {
    /// First cell.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
    pad: bool,
}

/// A published frame.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// First cell.
    pub cell: usize,
    /// Bytes, as given to [`Producer::publish`].
    pub len: usize,
    /// Mark, as given to [`Producer::publish`].
    pub mark: u8,
}

/// Words of a bitmap of the cells of the longest ring there may be.
const WORDS: usize = 4;

/// The sending side; `N` cells, a power of two of up to 64 * [`WORDS`].
#[derive(Debug)]
pub struct Producer<M, const N: usize> {
    memory: M,
    position: u32,
    credit: u32,
    /// Cells that held plain bytes when they were last written.
    plain: [u64; WORDS],
}

/// The receiving side.
#[derive(Debug)]
pub struct Consumer<M, const N: usize> {
    memory: M,
    position: u32,
    published: u32,
}

/// The most cells a frame may take in a ring of `n`.
pub const fn longest(n: usize) -> usize {
    n * 3 / 8 - 1
}

#[inline]
fn word(position: u32, len: usize, mark: u8) -> u64 {
    position.wrapping_add(1) as u64 | (len as u64) << 32 | (mark as u64) << 56
}

impl<M: Memory, const N: usize> Producer<M, N> {
    /// A producer on fresh (zeroed) memory.
    pub fn new(memory: M) -> Self {
        const { assert!(N.is_power_of_two() && N <= 64 * WORDS) };
        Producer {
            memory,
            position: 0,
            credit: 0,
            plain: [0; WORDS],
        }
    }

    /// The memory.
    #[inline]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Finds space for a frame of `cells` cells (at most [`longest`]); `None`: not now.
    #[inline(always)]
    pub fn reserve(&mut self, cells: usize) -> Option<Slot> {
        let at = self.position as usize & (N - 1);
        let pad = if at + cells > N { N - at } else { 0 };
        let need = pad + cells + 1;
        if need > self.free() {
            // SYNC: ring-credit. The consumer has read everything before this position.
            self.credit = self.memory.credit();
            if need > self.free() {
                return None;
            }
        }
        let cell = if pad == 0 { at } else { 0 };
        Some(Slot {
            cell,
            cells,
            pad: pad != 0,
        })
    }

    #[inline]
    fn free(&self) -> usize {
        N - self.position.wrapping_sub(self.credit) as usize
    }

    /// Publishes the frame whose bytes have been written to the slot.
    #[inline(always)]
    pub fn publish(&mut self, slot: Slot, len: usize, mark: u8) {
        let padded = slot.pad.then_some(self.position);
        if slot.pad {
            self.position = self
                .position
                .wrapping_add((N - (self.position as usize & (N - 1))) as u32);
        }
        let begin = self.position;
        self.position = begin.wrapping_add(slot.cells as u32);
        self.guard_next();
        self.remember(slot.cell, slot.cells);
        // SYNC: ring-publish.
        self.memory.publish(slot.cell, word(begin, len, mark));
        if let Some(at) = padded {
            let cell = at as usize & (N - 1);
            self.clear(cell);
            // SYNC: ring-publish.
            self.memory.publish(cell, word(at, 0, PAD));
        }
    }

    /// Makes sure that the cell behind the frame does not look published.
    #[inline(always)]
    fn guard_next(&mut self) {
        let next = self.position as usize & (N - 1);
        if self.plain[next / 64 % WORDS] >> (next % 64) & 1 != 0 {
            self.spoil(next);
        }
    }

    #[cold]
    fn spoil(&mut self, next: usize) {
        self.clear(next);
        self.memory
            .spoil(next, word(self.position.wrapping_sub(2), 0, 0));
    }

    /// A cell holds a word.
    #[inline(always)]
    fn clear(&mut self, cell: usize) {
        self.plain[cell / 64 % WORDS] &= !(1 << (cell % 64));
    }

    #[inline(always)]
    fn remember(&mut self, cell: usize, cells: usize) {
        self.clear(cell);
        for c in cell + 1..cell + cells {
            self.plain[c / 64 % WORDS] |= 1 << (c % 64);
        }
    }
}

impl<M: Memory, const N: usize> Consumer<M, N> {
    /// A consumer on fresh (zeroed) memory.
    pub fn new(memory: M) -> Self {
        Consumer {
            memory,
            position: 0,
            published: 0,
        }
    }

    /// The memory.
    #[inline]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The next frame, if it is published.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<Found> {
        loop {
            let cell = self.position as usize & (N - 1);
            // SYNC: ring-publish.
            let w = self.memory.word(cell);
            if w as u32 != self.position.wrapping_add(1) {
                return None;
            }
            let mark = (w >> 56) as u8;
            if mark != PAD {
                return Some(Found {
                    cell,
                    len: (w >> 32) as usize & 0x00ff_ffff,
                    mark,
                });
            }
            self.position = self.position.wrapping_add((N - cell) as u32);
        }
    }

    /// Gives back the cells of the frame last found. Returns whether progress was published, so
    /// that a producer that sleeps for lack of space can be rung.
    #[inline(always)]
    pub fn release(&mut self, cells: usize) -> bool {
        self.position = self.position.wrapping_add(cells as u32);
        if (self.position.wrapping_sub(self.published) as usize) < N / 4 {
            return false;
        }
        self.published = self.position;
        // SYNC: ring-credit.
        self.memory.set_credit(self.position);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    const N: usize = 64;

    #[derive(Clone)]
    struct Plain(Rc<RefCell<(Vec<u64>, u32)>>);

    impl Memory for Plain {
        fn word(&self, cell: usize) -> u64 {
            self.0.borrow().0[cell]
        }
        fn publish(&self, cell: usize, word: u64) {
            self.0.borrow_mut().0[cell] = word;
        }
        fn spoil(&self, cell: usize, word: u64) {
            self.0.borrow_mut().0[cell] = word;
        }
        fn credit(&self) -> u32 {
            self.0.borrow().1
        }
        fn set_credit(&self, position: u32) {
            self.0.borrow_mut().1 = position;
        }
    }

    proptest! {
        /// Bytes of long frames are the worst possible: they look like the word that the consumer
        /// waits for.
        #[test]
        fn bytes_that_look_like_a_word_are_never_taken_for_one(ops in prop::collection::vec((any::<bool>(), 1usize..=longest(N)), 1..400)) {
            let m = Plain(Rc::new(RefCell::new((vec![0; N], 0))));
            let mut producer: Producer<_, N> = Producer::new(m.clone());
            let mut consumer: Consumer<_, N> = Consumer::new(m.clone());
            let (mut sent, mut came) = (std::collections::VecDeque::new(), 0);
            for (send, cells) in ops {
                if send {
                    if let Some(slot) = producer.reserve(cells) {
                        let c = slot.cell;
                        for k in 1..cells {
                            // Value that a consumer might expect here now or a round later.
                            let round = (producer.position as usize / N + (k & 1) + 1) * N;
                            m.0.borrow_mut().0[c + k] = word((round + c + k) as u32, 1, 1);
                        }
                        producer.publish(slot, cells, 7);
                        sent.push_back(cells);
                    }
                } else {
                    match consumer.peek() {
                        None => prop_assert!(sent.is_empty()),
                        Some(f) => {
                            prop_assert_eq!(f.mark, 7);
                            prop_assert_eq!(Some(f.len), sent.pop_front());
                            consumer.release(f.len);
                            came += 1;
                        }
                    }
                }
                if sent.is_empty() {
                    prop_assert!(consumer.peek().is_none());
                    prop_assert!(producer.reserve(longest(N)).is_some(), "space after {} frames", came);
                }
            }
        }
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use kw_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use kw_base::sync::{Arc, thread};
    use loom::cell::UnsafeCell;

    const N: usize = 8;

    /// One payload word beside each publication word; loom complains when both sides touch one at
    /// once.
    struct Model {
        words: Vec<AtomicU64>,
        bodies: Vec<UnsafeCell<u64>>,
        credit: AtomicU32,
    }

    // SAFETY: loom checks the accesses to the bodies, which is what the models are for.
    unsafe impl Sync for Model {}
    // SAFETY: plain values.
    unsafe impl Send for Model {}

    impl Memory for Arc<Model> {
        fn word(&self, cell: usize) -> u64 {
            self.words[cell].load(Ordering::Acquire)
        }
        fn publish(&self, cell: usize, word: u64) {
            self.words[cell].store(word, Ordering::Release);
        }
        fn spoil(&self, cell: usize, word: u64) {
            self.words[cell].store(word, Ordering::Relaxed);
        }
        fn credit(&self) -> u32 {
            self.credit.load(Ordering::Acquire)
        }
        fn set_credit(&self, position: u32) {
            self.credit.store(position, Ordering::Release);
        }
    }

    fn put(producer: &mut Producer<Arc<Model>, N>, value: u64, cells: usize) -> bool {
        let Some(slot) = producer.reserve(cells) else {
            return false;
        };
        for c in slot.cell..slot.cell + cells {
            // SAFETY: the slot is ours until published.
            producer.memory().bodies[c].with_mut(|p| unsafe { *p = value });
            if c > slot.cell {
                // Plain bytes that look like what the consumer will expect here a round later.
                let round = producer.position as usize / N * N + N;
                producer.memory().words[c].store(word((round + c) as u32, 9, 9), Ordering::Relaxed);
            }
        }
        producer.publish(slot, cells, value as u8);
        true
    }

    fn take(consumer: &mut Consumer<Arc<Model>, N>) -> Option<u64> {
        let found = consumer.peek()?;
        assert!(found.len <= 2, "a word that was never published");
        for c in found.cell..found.cell + found.len {
            // SAFETY: published and not yet released.
            let value = consumer.memory().bodies[c].with(|p| unsafe { *p });
            assert_eq!(value as u8, found.mark);
        }
        consumer.release(found.len);
        Some(found.mark as u64)
    }

    /// Frames of one and two cells around the end of the ring, against a consumer that reads at any
    /// moment.
    #[test]
    fn frames_are_whole_and_in_order() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let model = Arc::new(Model {
                words: (0..N).map(|_| AtomicU64::new(0)).collect(),
                bodies: (0..N).map(|_| UnsafeCell::new(0)).collect(),
                credit: AtomicU32::new(0),
            });
            let mut producer = Producer::<_, N>::new(model.clone());
            let mut consumer = Consumer::<_, N>::new(model);
            // A round is over before the race begins, so that cells hold what a ring holds in the
            // middle of its life.
            for k in 1..=4 {
                assert!(put(&mut producer, k, 1 + (k as usize & 1)));
                assert_eq!(take(&mut consumer), Some(k));
            }
            let sender = thread::spawn(move || {
                let mut value = 5;
                while value < 9 {
                    if put(&mut producer, value, 1 + (value as usize & 1)) {
                        value += 1;
                    } else {
                        thread::yield_now();
                    }
                }
            });
            let mut want = 5;
            while want < 9 {
                match take(&mut consumer) {
                    Some(value) => {
                        assert_eq!(value, want);
                        want += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            sender.join().unwrap();
        });
    }
}
