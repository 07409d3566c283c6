//! A payload on its way to its destination.

use crate::contract::Destination;
use kw_sys::buf::Buf;

/// One payload, or one piece of a payload.
#[derive(Debug)]
pub struct Inflow {
    destination: Destination,
    len: u64,
    done: u64,
    /// End of the segment that is being received; frames follow it.
    stop: u64,
}

impl Inflow {
    /// `len` bytes of which the first `stop` come before anything else.
    pub fn new(destination: Destination, len: u64, stop: u64) -> Inflow {
        Inflow {
            destination,
            len,
            done: 0,
            stop,
        }
    }

    /// All of the payload.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the payload is complete.
    pub fn is_complete(&self) -> bool {
        self.done == self.len
    }

    /// Whether the segment is.
    pub fn is_segment_complete(&self) -> bool {
        self.done >= self.stop
    }

    /// Whether no frame follows before the payload ends, and all of it has a place.
    pub fn is_whole(&self) -> bool {
        self.fits() == self.stop
    }

    /// Bytes of the segment that are still to come.
    pub fn rest_of_segment(&self) -> u64 {
        self.stop - self.done
    }

    /// Bytes of the payload that are still to come.
    pub fn rest(&self) -> u64 {
        self.len - self.done
    }

    /// Cookie that is given back when it has arrived.
    pub fn cookie(&self) -> u64 {
        self.destination.cookie
    }

    /// Bytes of the payload up to the segment's end that have a place.
    fn fits(&self) -> u64 {
        self.stop.min(
            self.destination
                .buf
                .len()
                .saturating_sub(self.destination.at),
        )
    }

    /// Place of the next bytes: buffer, first byte, and how many of them have a place there.
    #[inline]
    pub fn place(&self) -> (&Buf, u64, u64) {
        let want = self.fits().saturating_sub(self.done);
        (&self.destination.buf, self.destination.at + self.done, want)
    }

    /// `n` bytes have been put in their place.
    #[inline]
    pub fn placed(&mut self, n: u64) {
        self.done += n;
    }

    /// Takes the part of the payload that `bytes` has; returns how much that is.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        let n = (bytes.len() as u64).min(self.rest_of_segment()) as usize;
        let (buf, at, want) = self.place();
        let placed = want.min(n as u64) as usize;
        if placed > 0 {
            buf.write(at, &bytes[..placed]);
        }
        self.done += n as u64;
        n
    }

    /// The next segment follows.
    pub fn next_segment(&mut self, bytes: u64) {
        self.stop = self.len.min(self.stop.saturating_add(bytes));
    }

    /// The rest is discarded.
    pub fn throw_away(&mut self) {
        self.destination = super::stripe::nowhere();
    }
}
