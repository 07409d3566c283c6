//! Data sent over a connection that may have to be resent when the connection breaks and is
//! re-established.
//!
//! A *link* is an ordered stream of bytes each way between two ranks; connections carry it one
//! after the other. Each side counts what it has received of the stream, and says so when a
//! connection is made ([`crate::handshake::Claim`]); the other goes on from there. Linux keeps what
//! its kernel has acknowledged readable after a reset, so a byte that the peer's *kernel* has
//! acknowledged is never asked for again, and [`RetransmitBuffer::release`] forgets it. No frame
//! acknowledges anything.
//!
//! ```text
//!        base           sent            end
//! --------|--------------|---------------|---------> bytes of the stream
//! released| kept, on its way | kept, to be sent again |  not handed over yet (the queue of the connection)
//! ```
//!
//! Invariants: `base <= sent <= end`; bytes `base..end` can be read. Short pieces are copied. Long
//! payload is *lent*: its address is kept, and its owner (a cookie) is told when it is no longer
//! needed: released, or copied by [`RetransmitBuffer::own`].
//!
//! A pure state machine: `P` is a message buffer, which only closures of the caller read.

use std::collections::VecDeque;

/// Copies share a piece of memory up to this size.
const CHUNK: usize = 128 << 10;
/// The smallest piece of memory.
const LEAST: usize = 4 << 10;

/// Bytes `start..end` of `data` are kept.
#[derive(Debug, Default)]
struct Chunk {
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl Chunk {
    fn fits(&self, n: usize) -> bool {
        self.end + n <= CHUNK
    }

    fn room(&mut self, n: usize) -> &mut [u8] {
        if self.data.len() < self.end + n {
            self.make_room(n);
        }
        let at = self.end;
        self.end += n;
        &mut self.data[at..self.end]
    }

    /// The kept data moves to the front if at least half is free; then the memory grows, if
    /// necessary.
    #[cold]
    fn make_room(&mut self, n: usize) {
        if self.start >= self.end - self.start {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let end = self.end + n;
        if self.data.len() < end {
            self.data.resize(end.next_power_of_two().max(LEAST), 0);
        }
    }
}

#[derive(Debug)]
enum Piece<P> {
    Copied(Chunk),
    Lent { from: P, at: u64, len: u64 },
}

impl<P> Piece<P> {
    fn len(&self) -> u64 {
        match self {
            Piece::Copied(c) => (c.end - c.start) as u64,
            Piece::Lent { len, .. } => *len,
        }
    }

    /// Forgets the first `n` bytes.
    fn shorten(&mut self, n: u64) {
        match self {
            Piece::Copied(c) => c.start += n as usize,
            Piece::Lent { at, len, .. } => {
                *at += n;
                *len -= n;
            }
        }
    }
}

/// Bytes that have to be sent again.
#[derive(Debug, PartialEq, Eq)]
pub enum Run<'a, P> {
    /// Copied bytes.
    Bytes(&'a [u8]),
    /// `len` bytes of a payload from `at` on.
    Lent {
        /// The payload.
        from: &'a P,
        /// First byte.
        at: u64,
        /// Bytes.
        len: u64,
    },
}

/// The bytes of one direction of a link that the other side's kernel has not acknowledged, as far
/// as this side knows.
#[derive(Debug)]
pub struct RetransmitBuffer<P> {
    pieces: VecDeque<Piece<P>>,
    base: u64,
    sent: u64,
    end: u64,
    /// Bytes in lent pieces.
    lent: u64,
    /// Owner of a lent payload, and its end in the stream.
    lenders: VecDeque<(u64, u64)>,
    spare: Option<Chunk>,
}

impl<P> Default for RetransmitBuffer<P> {
    fn default() -> Self {
        RetransmitBuffer {
            pieces: VecDeque::new(),
            base: 0,
            sent: 0,
            end: 0,
            lent: 0,
            lenders: VecDeque::new(),
            spare: None,
        }
    }
}

impl<P> RetransmitBuffer<P> {
    /// Bytes that are kept.
    #[inline]
    pub fn len(&self) -> u64 {
        self.end - self.base
    }

    /// Whether no bytes are kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the stream that were handed to the connection, now or before it broke.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether bytes have to be sent again before anything new.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.sent < self.end
    }

    /// Whether an owner of lent payload waits to be told that it is no longer needed.
    #[inline]
    pub fn owes(&self) -> bool {
        !self.lenders.is_empty()
    }

    /// Copies bytes that were handed to the connection.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) {
        self.copy_with(bytes.len(), |to| to.copy_from_slice(bytes));
    }

    /// `n` bytes, which `fill` writes, were handed to the connection.
    #[inline]
    pub fn copy_with(&mut self, n: usize, fill: impl FnOnce(&mut [u8])) {
        debug_assert!(!self.is_behind(), "new bytes while old ones wait");
        let fits = matches!(self.pieces.back(), Some(Piece::Copied(c)) if c.fits(n));
        if !fits {
            let chunk = self.spare.take().unwrap_or_default();
            self.pieces.push_back(Piece::Copied(chunk));
        }
        if let Some(Piece::Copied(c)) = self.pieces.back_mut() {
            fill(c.room(n));
        }
        self.went(n as u64);
    }

    /// `n` more bytes were handed to the connection, and the peer's kernel has all before byte `to`
    /// of the stream: forgets what it has. Returns how many of the `n` need not be kept, because
    /// they are among these; the following ones have to be.
    pub fn skip(&mut self, n: u64, to: u64, done: impl FnMut(u64)) -> u64 {
        debug_assert!(!self.is_behind(), "new bytes while old ones wait");
        let known = to.saturating_sub(self.end).min(n);
        self.release(to.min(self.end), done);
        if known > 0 {
            self.went(known);
            self.base = self.end;
        }
        known
    }

    /// Bytes of a payload were handed to the connection; they stay where they are.
    pub fn lend(&mut self, from: P, at: u64, len: u64) {
        debug_assert!(!self.is_behind(), "new bytes while old ones wait");
        self.pieces.push_back(Piece::Lent { from, at, len });
        self.lent += len;
        self.went(len);
    }

    #[inline]
    fn went(&mut self, n: u64) {
        self.end += n;
        self.sent = self.end;
    }

    /// All of a payload was handed over. Returns whether its owner is done with it at once;
    /// otherwise [`RetransmitBuffer::release`] or [`RetransmitBuffer::own`] tell the cookie.
    #[inline]
    pub fn finish(&mut self, cookie: u64) -> bool {
        if self.lent > 0 {
            self.lenders.push_back((self.end, cookie));
        }
        self.lent == 0
    }

    /// The check for a payload whose last byte is the one before `end` of the stream.
    pub fn finish_at(&mut self, end: u64, cookie: u64) -> bool {
        if end <= self.base {
            return true;
        }
        let at = self.lenders.partition_point(|l| l.0 <= end);
        self.lenders.insert(at, (end, cookie));
        false
    }

    /// The peer has everything before byte `to` of the stream; `done` is called for each owner that
    /// gets a payload back.
    pub fn release(&mut self, to: u64, mut done: impl FnMut(u64)) {
        while self.base < to {
            let Some(piece) = self.pieces.front_mut() else {
                break;
            };
            let n = piece.len().min(to - self.base);
            if matches!(piece, Piece::Lent { .. }) {
                self.lent -= n;
            }
            piece.shorten(n);
            self.base += n;
            if piece.len() == 0 {
                self.drop_first();
            }
        }
        while self.lenders.front().is_some_and(|l| l.0 <= self.base) {
            self.lenders.pop_front().into_iter().for_each(|l| done(l.1));
        }
    }

    /// Takes out the first piece; its memory is used again.
    fn drop_first(&mut self) {
        if let Some(Piece::Copied(chunk)) = self.pieces.pop_front() {
            self.spare = Some(Chunk {
                start: 0,
                end: 0,
                ..chunk
            });
        }
    }

    /// Bytes that [`RetransmitBuffer::own`] would have to copy.
    pub fn owed(&self) -> u64 {
        let last = self.lenders.back().map_or(0, |l| l.0);
        let mut at = self.base;
        let mut sum = 0;
        for piece in &self.pieces {
            if at >= last {
                break;
            }
            if let Piece::Lent { len, .. } = piece {
                sum += len;
            }
            at += piece.len();
        }
        sum
    }

    /// Copies every payload that is all handed over (`read` fills a slice from byte `at` of a
    /// payload on), so that all waiting owners can be told.
    pub fn own(&mut self, read: impl Fn(&P, u64, &mut [u8]), mut done: impl FnMut(u64)) {
        let last = self.lenders.back().map_or(0, |l| l.0);
        let mut at = self.base;
        for piece in &mut self.pieces {
            if at >= last {
                break;
            }
            let n = piece.len();
            at += n;
            if let Piece::Lent { from, at, len } = piece {
                let mut chunk = self.spare.take().unwrap_or_default();
                read(from, *at, chunk.room(*len as usize));
                self.lent -= *len;
                *piece = Piece::Copied(chunk);
            }
        }
        self.lenders.drain(..).for_each(|l| done(l.1));
    }

    /// A new connection, and the peer has received `received` bytes of the stream: the following
    /// ones have to be sent again. `false`: these bytes are not kept (any more), or were never
    /// sent.
    pub fn resume(&mut self, received: u64, done: impl FnMut(u64)) -> bool {
        if !self.covers(received) {
            return false;
        }
        self.release(received, done);
        self.sent = received;
        true
    }

    /// Whether the stream can go on from this byte.
    pub fn covers(&self, received: u64) -> bool {
        (self.base..=self.end).contains(&received)
    }

    /// The next data to send, while [`RetransmitBuffer::is_behind`].
    pub fn next(&self) -> Option<Run<'_, P>> {
        let mut at = self.base;
        for piece in &self.pieces {
            let len = piece.len();
            if self.sent < at + len {
                let skip = self.sent - at;
                return Some(match piece {
                    Piece::Copied(c) => Run::Bytes(&c.data[c.start + skip as usize..c.end]),
                    Piece::Lent { from, at, len } => Run::Lent {
                        from,
                        at: at + skip,
                        len: len - skip,
                    },
                });
            }
            at += len;
        }
        None
    }

    /// This many bytes of [`RetransmitBuffer::next`] were handed over.
    pub fn advance(&mut self, n: u64) {
        self.sent = (self.sent + n).min(self.end);
    }
}

#[cfg(test)]
mod tests;
