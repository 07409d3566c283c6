//! Long payload, pipelined through an area that both ranks map: the sender copies pieces in while the receiver copies
//! earlier ones out. Two counters that only grow say how much was filled and drained; each belongs to one side.

use std::sync::atomic::Ordering;

use kw_sys::buf::Buf;

use super::segment::{BULK, Lane};

/// Bytes copied between two publications (see `docs/measurements/shm.md`).
pub const PIECE: usize = 16 * 1024;

/// Frames begin at multiples of this, so that copies stay aligned.
const ALIGN: u64 = 64;

/// The sending side's view.
#[derive(Debug, Default)]
pub struct Filler {
    filled: u64,
    drained: u64,
}

/// The receiving side's view.
#[derive(Debug, Default)]
pub struct Drainer {
    filled: u64,
    drained: u64,
}

/// The part of a run of `len` bytes at `position` that is one piece: no longer than [`PIECE`], not around the end.
#[inline]
fn piece(position: u64, len: u64) -> (usize, usize) {
    let at = (position % BULK as u64) as usize;
    (at, (len.min((BULK - at) as u64) as usize).min(PIECE))
}

impl Filler {
    /// Copies one piece of `buf` from packed byte `from` on, at most `len` bytes; how many went.
    pub fn fill(&mut self, lane: &Lane, buf: &Buf, from: u64, len: u64) -> u64 {
        let (at, n) = piece(self.filled, len);
        // Partial pieces would only multiply publications: wait until there is room for all of it.
        if self.room() < n as u64 {
            // SYNC: bulk-drained.
            self.drained = lane.control().drained.load(Ordering::Acquire);
            if self.room() < n as u64 {
                return 0;
            }
        }
        // SAFETY: the piece lies inside the area, and the receiver is done with it (drained) or has never seen it.
        let out = unsafe { std::slice::from_raw_parts_mut(lane.bulk().add(at), n) };
        buf.read(from, out);
        self.filled += n as u64;
        // SYNC: bulk-filled.
        lane.control().filled.store(self.filled, Ordering::Release);
        n as u64
    }

    /// Ends a frame.
    pub fn finish(&mut self) {
        self.filled = self.filled.next_multiple_of(ALIGN);
    }

    /// `filled` is rounded up at the end of a frame, so it may lie a little more than the area ahead.
    fn room(&self) -> u64 {
        (BULK as u64).saturating_sub(self.filled - self.drained)
    }
}

impl Drainer {
    /// Copies one piece out into `buf` at packed byte `at`, of the `len` that the frame still has; how many went.
    pub fn drain(&mut self, lane: &Lane, buf: &Buf, at: u64, len: u64) -> u64 {
        let (from, n) = piece(self.drained, len);
        if self.filled < self.drained + n as u64 {
            // SYNC: bulk-filled.
            self.filled = lane.control().filled.load(Ordering::Acquire);
            if self.filled < self.drained + n as u64 {
                return 0;
            }
        }
        // SAFETY: the piece lies inside the area, and the sender has published it.
        let piece = unsafe { std::slice::from_raw_parts(lane.bulk().add(from), n) };
        buf.write(at, piece);
        self.drained += n as u64;
        // SYNC: bulk-drained.
        lane.control()
            .drained
            .store(self.drained, Ordering::Release);
        n as u64
    }

    /// Ends a frame.
    pub fn finish(&mut self) {
        self.drained = self.drained.next_multiple_of(ALIGN);
    }
}
