//! Long messages that sender and receiver copy together.
//!
//! The receiver of a long message may read it from the sender's memory. One core alone copies at
//! about half the rate that both reach together. So the receiver describes the copy in its block of
//! the segment ([`CopyJob`]), puts a notice into the sender's ring, and begins to copy. A sender
//! that polls meanwhile writes pieces of the message into the receiver's buffer. Each takes the next
//! free piece. A sender that does not poll is not waited for: the receiver then copies all of it,
//! and the notice, when it is read at last, names a job that has ended.
//!
//! A receiver has one job at a time, because it copies as long as it lasts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kw_sys::process_vm;

/// The longest piece, bytes. The last pieces end at different times, so long messages have more
/// pieces than two.
const PIECE: u64 = 512 << 10;
/// Bits of [`CopyJob::next`] that count pieces; the others are the job's number.
const PIECES: u32 = 24;
/// Number of polls for the sender's last piece before the receiver lets other threads run.
const POLLS: u64 = 4096;
/// Number of polls after which it looks whether the sender's process still runs.
const POLLS_PER_LOOK: u64 = 1 << 16;

/// A message that its sender helps to copy. Written by the receiver, in whose block it is, except
/// for `next` and the last two.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct CopyJob {
    /// The job's number, and the first free piece.
    next: AtomicU64,
    /// The message in the sender's memory.
    from: AtomicU64,
    /// The buffer in the receiver's memory.
    into: AtomicU64,
    /// Bytes.
    len: AtomicU64,
    /// Bytes of a piece.
    piece: AtomicU64,
    _a: [u64; 3],
    /// Pieces that the sender is done with.
    done: AtomicU32,
    /// Not zero: the sender was not allowed to write one of them.
    failed: AtomicU32,
    _b: [u64; 7],
}

/// Addresses and length of a message that is copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// In the sender's memory.
    pub from: u64,
    /// In the receiver's memory.
    pub into: u64,
    /// Bytes.
    pub len: u64,
}

/// Result of the receiver's part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All bytes are in place.
    Complete,
    /// The sender could not write its pieces: those bytes are missing.
    Incomplete,
    /// The receiver could not read: an errno.
    Failed(i32),
    /// The sender's process ended while it copied.
    SenderEnded,
}

fn piece_of(len: u64) -> u64 {
    let most = (len >> (PIECES - 1)).max(PIECE);
    len.div_ceil(2).next_multiple_of(4096).min(most)
}

impl CopyJob {
    /// Describes a copy; from now on a sender that knows the number may take pieces.
    pub fn open(&self, number: u64, copied: Copied) {
        self.from.store(copied.from, Ordering::Relaxed);
        self.into.store(copied.into, Ordering::Relaxed);
        self.len.store(copied.len, Ordering::Relaxed);
        self.piece.store(piece_of(copied.len), Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
        // SYNC: copy-job. A process that reads this number reads the description too.
        self.next.store(number << PIECES, Ordering::Release);
    }

    /// Takes a piece of the job with this number: its offset and bytes.
    fn take(&self, number: u64) -> Option<(Copied, u64, u64)> {
        // SYNC: copy-job.
        let mut now = self.next.load(Ordering::Acquire);
        loop {
            if now >> PIECES != number {
                return None;
            }
            let copied = Copied {
                from: self.from.load(Ordering::Relaxed),
                into: self.into.load(Ordering::Relaxed),
                len: self.len.load(Ordering::Relaxed),
            };
            let piece = self.piece.load(Ordering::Relaxed);
            let at = (now & ((1 << PIECES) - 1)).saturating_mul(piece);
            if at >= copied.len {
                return None;
            }
            // SYNC: copy-job. If it succeeds, the job is still the one that was read: a receiver
            // takes all pieces, and so changes this word, before it opens another.
            match self
                .next
                .compare_exchange_weak(now, now + 1, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some((copied, at, piece.min(copied.len - at))),
                Err(seen) => now = seen,
            }
        }
    }

    /// The receiver's part: copies pieces with `read` until none are left, then waits for those
    /// that the sender has taken. `alive` tells from time to time whether the sender still runs.
    pub fn receive(
        &self,
        number: u64,
        mut read: impl FnMut(u64, u64) -> Result<(), i32>,
        mut alive: impl FnMut() -> bool,
    ) -> Outcome {
        let len = self.len.load(Ordering::Relaxed);
        let mut left = len.div_ceil(self.piece.load(Ordering::Relaxed).max(1));
        let mut result = Outcome::Complete;
        while let Some((_, at, len)) = self.take(number) {
            left -= 1;
            // After an error the rest is only taken, so that the sender takes nothing more.
            if let (Outcome::Complete, Err(errno)) = (result, read(at, len)) {
                result = Outcome::Failed(errno);
            }
        }
        let mut polls = 0;
        // SYNC: copy-done.
        while u64::from(self.done.load(Ordering::Acquire)) < left {
            polls += 1;
            if polls < POLLS {
                std::hint::spin_loop();
            } else if polls.is_multiple_of(POLLS_PER_LOOK) && !alive() {
                return Outcome::SenderEnded;
            } else {
                std::thread::yield_now();
            }
        }
        match result {
            Outcome::Complete if self.failed.load(Ordering::Relaxed) != 0 => Outcome::Incomplete,
            result => result,
        }
    }

    /// The sender's part: writes pieces into the memory of the receiver, process `pid`, until none
    /// are left.
    pub fn send(&self, number: u64, pid: i32) {
        while let Some((copied, at, len)) = self.take(number) {
            let (from, into) = (copied.from + at, copied.into + at);
            // SAFETY: the receiver, whose buffer this is, is another process. It is a rank of this
            // job and names memory of this rank only: it could read it as well.
            if unsafe { process_vm::store(pid, from, into, len) }.is_err() {
                self.failed.store(1, Ordering::Relaxed);
            }
            // SYNC: copy-done. The bytes are in place before the receiver sees this.
            self.done.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::segment::Segment;
    use super::*;
    use kw_sys::buf::Buf;
    use proptest::prelude::*;

    fn address(buf: &Buf) -> u64 {
        buf.contiguous().map_or(0, |at| at as u64)
    }

    /// A message of this process to itself: what each thread copied, and the result.
    fn copied(len: u64, sender_comes: bool, pid: i32) -> (Outcome, bool) {
        let (segment, _fd) = Segment::create(1).unwrap();
        let (from, into) = (Buf::alloc(len as usize), Buf::alloc(len as usize));
        let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
        from.write(0, &bytes);
        let job = segment.copy_job(0);
        let described = Copied {
            from: address(&from),
            into: address(&into),
            len,
        };
        job.open(1, described);
        let read = |at, n| process_vm::fetch(process_vm::pid(), described.from + at, &into, at, n);
        let outcome = std::thread::scope(|scope| {
            if sender_comes {
                scope.spawn(|| job.send(1, pid));
            }
            job.receive(1, read, || true)
        });
        let mut there = vec![0; len as usize];
        into.read(0, &mut there);
        (outcome, there == bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_byte_is_copied_whether_the_sender_comes_or_not(len in 1u64..3 << 20, comes: bool) {
            prop_assert_eq!(copied(len, comes, process_vm::pid()), (Outcome::Complete, true));
        }
    }

    #[test]
    fn pieces_that_the_sender_may_not_write_are_reported() {
        // No process has this number: the sender may write nothing.
        let (segment, _fd) = Segment::create(1).unwrap();
        let job = segment.copy_job(0);
        let nothing = Copied {
            from: 0,
            into: 0,
            len: 1 << 20,
        };
        job.open(5, nothing);
        let (_, at, len) = job.take(5).unwrap();
        assert_eq!((at, len), (0, PIECE));
        job.done.fetch_add(1, Ordering::Release);
        job.send(5, i32::MAX);
        assert_eq!(job.receive(5, |_, _| Ok(()), || true), Outcome::Incomplete);
    }

    #[test]
    fn a_notice_that_is_read_too_late_names_a_job_that_has_ended() {
        let (segment, _fd) = Segment::create(1).unwrap();
        let job = segment.copy_job(0);
        let message = |len| Copied {
            from: 0,
            into: 0,
            len,
        };
        job.open(1, message(100));
        assert_eq!(job.receive(1, |_, _| Ok(()), || true), Outcome::Complete);
        assert!(job.take(1).is_none());
        job.open(2, message(100));
        assert!(job.take(1).is_none() && job.take(2).is_some());
    }

    #[test]
    fn a_sender_that_ends_while_it_copies_ends_the_wait() {
        let (segment, _fd) = Segment::create(1).unwrap();
        let job = segment.copy_job(0);
        let message = Copied {
            from: 0,
            into: 0,
            len: 1 << 20,
        };
        job.open(1, message);
        assert!(job.take(1).is_some());
        let outcome = job.receive(1, |_, _| Ok(()), || false);
        assert_eq!(outcome, Outcome::SenderEnded);
    }

    #[test]
    fn an_error_of_the_receiver_leaves_no_piece_to_the_sender() {
        let (segment, _fd) = Segment::create(1).unwrap();
        let job = segment.copy_job(0);
        let message = Copied {
            from: 0,
            into: 0,
            len: 3 << 20,
        };
        job.open(1, message);
        assert_eq!(job.receive(1, |_, _| Err(14), || true), Outcome::Failed(14));
        assert!(job.take(1).is_none());
    }

    #[test]
    fn pieces_cover_a_message_of_any_length() {
        for len in [1, 4096, 128 << 10, (1 << 20) + 1, 64 << 20, 1 << 50] {
            let piece = piece_of(len);
            assert!(len.div_ceil(piece) < 1 << PIECES, "{len}: {piece}");
        }
    }
}
