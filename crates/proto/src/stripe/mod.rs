//! Long payloads that several connections of the same two ranks carry together, piece by piece.
//!
//! The frame that the payload belongs to goes over the first connection, in its place among the
//! others, and gives the payload a number (0, 1, 2 ... each way). Its bytes follow in pieces of a
//! fixed length; each carries its number and offset, so any connection may bring any piece, in any
//! order. Any connection that has room takes the next one ([`Outgoing::hand_out`]). When all have
//! arrived the receiver confirms it, and only then the sender has its memory back: the pieces that
//! a *further* connection carried when it broke go again over the others ([`Outgoing::lost`]). The
//! first connection needs no such care, because its link outlives it ([`crate::retransmit`]).
//!
//! ```text
//! sender     begin ---- hand_out, hand_out, ... [lost: again] ---- confirmed: the memory is the owner's again
//! receiver   begin ---- place, arrived, ...         ---- the last one: arrived, confirm
//! ```
//! So a piece may arrive twice. The receiver places it as long as the payload is open and the piece
//! has not arrived in full, and throws it away otherwise ([`PieceState::Had`]): after the last piece
//! nothing writes into the memory any more.
//!
//! Pure state machines: `P` is a message buffer and `L` a place for a payload, which only the
//! caller accesses.

use std::collections::VecDeque;

/// Payloads from this size on are carried by all connections, bytes: a built-in value.
pub const STRIPE_FROM: u64 = 1 << 20;

/// Names a connection that may break for good; zero is the first one, which may not.
pub type Carrier = u32;

/// A part of a payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Number of the payload.
    pub number: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A payload that is being sent.
#[derive(Debug)]
struct Leaving<P> {
    number: u64,
    buf: P,
    from: u64,
    len: u64,
    cookie: u64,
    /// The first byte that was never handed out.
    next: u64,
    /// Offsets of pieces to be sent again.
    again: Vec<u64>,
    /// Assignment of pieces to connections other than the first.
    carried: Vec<(Carrier, u64)>,
    /// End of its last piece in the stream of the first connection.
    end: u64,
}

/// Payloads of this rank for one peer.
#[derive(Debug)]
pub struct Outgoing<P> {
    piece: u64,
    numbers: u64,
    payloads: VecDeque<Leaving<P>>,
}

impl<P> Outgoing<P> {
    /// No payloads; pieces of `piece` bytes, at least one, and the same on both sides.
    pub fn new(piece: u64) -> Self {
        Outgoing {
            piece: piece.max(1),
            numbers: 0,
            payloads: VecDeque::new(),
        }
    }

    /// Whether no payload is in flight.
    pub fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// Payload `from..from+len` of `buf` has to be sent; returns its number. `cookie` names its
    /// owner.
    pub fn begin(&mut self, buf: P, from: u64, len: u64, cookie: u64) -> u64 {
        let number = self.numbers;
        self.numbers += 1;
        self.payloads.push_back(Leaving {
            number,
            buf,
            from,
            len,
            cookie,
            next: 0,
            again: Vec::new(),
            carried: Vec::new(),
            end: 0,
        });
        number
    }

    /// Bytes not assigned to a connection yet.
    pub fn waiting(&self) -> u64 {
        let of = |p: &Leaving<P>| p.len - p.next + p.again.len() as u64 * self.piece;
        self.payloads.iter().map(of).sum()
    }

    /// The next piece, which this connection carries from now on: the oldest payload first, and
    /// pieces that have to be sent again before new ones.
    pub fn hand_out(&mut self, carrier: Carrier) -> Option<Piece> {
        let size = self.piece;
        let all = &mut self.payloads;
        let p = all
            .iter_mut()
            .find(|p| !p.again.is_empty() || p.next < p.len)?;
        let offset = p.again.pop().unwrap_or(p.next);
        let len = size.min(p.len - offset);
        p.next = p.next.max(offset + len);
        if carrier != 0 {
            p.carried.push((carrier, offset));
        }
        Some(Piece {
            number: p.number,
            offset,
            len,
        })
    }

    /// Memory of a piece: a buffer, and the piece's first byte in it.
    pub fn source(&self, piece: &Piece) -> Option<(&P, u64)> {
        let p = self.payloads.iter().find(|p| p.number == piece.number)?;
        Some((&p.buf, p.from + piece.offset))
    }

    /// A connection broke: the pieces of unfinished payloads that it carried go again. Returns how
    /// many pieces that is.
    pub fn lost(&mut self, carrier: Carrier) -> usize {
        let mut pieces = 0;
        for p in &mut self.payloads {
            let Leaving { carried, again, .. } = p;
            let before = again.len();
            again.extend(carried.iter().filter(|c| c.0 == carrier).map(|c| c.1));
            carried.retain(|c| c.0 != carrier);
            pieces += again.len() - before;
        }
        pieces
    }

    /// The first connection has sent a piece of this payload, up to this byte of its stream.
    pub fn went(&mut self, number: u64, end: u64) {
        if let Some(p) = self.payloads.iter_mut().find(|p| p.number == number) {
            p.end = end;
        }
    }

    /// The peer has all of this payload: returns its owner's cookie, and the end of its last piece
    /// in the stream of the first connection. `None`: there is no such payload in flight.
    pub fn confirmed(&mut self, number: u64) -> Option<(u64, u64)> {
        let at = self.payloads.iter().position(|p| p.number == number)?;
        self.payloads.remove(at).map(|p| (p.cookie, p.end))
    }
}

/// Result of a piece that a connection brings.
#[derive(Debug, PartialEq, Eq)]
pub enum PieceState<'a, L> {
    /// Its payload has not begun: it waits.
    Early,
    /// It goes into this place, from its offset on.
    Wanted(&'a L),
    /// It has arrived before: it is thrown away.
    Had,
}

/// A piece that no peer of the same version sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a piece that does not belong to its payload")]
pub struct Mismatch;

/// A payload that is being received.
#[derive(Debug)]
struct Arriving<L> {
    number: u64,
    len: u64,
    place: L,
    /// All pieces before this one have arrived.
    low: u64,
    /// Pieces from there on that have arrived.
    beyond: Vec<u64>,
}

impl<L> Arriving<L> {
    fn has(&self, index: u64) -> bool {
        index < self.low || self.beyond.contains(&index)
    }

    fn note(&mut self, index: u64) {
        self.beyond.push(index);
        while let Some(at) = self.beyond.iter().position(|&b| b == self.low) {
            self.beyond.swap_remove(at);
            self.low += 1;
        }
    }
}

/// Payloads of one peer for this rank.
#[derive(Debug)]
pub struct Incoming<L> {
    piece: u64,
    /// Payloads that have begun.
    begun: u64,
    open: Vec<Arriving<L>>,
}

impl<L> Incoming<L> {
    /// No payloads; pieces of `piece` bytes, at least one.
    pub fn new(piece: u64) -> Self {
        Incoming {
            piece: piece.max(1),
            begun: 0,
            open: Vec::new(),
        }
    }

    /// Whether no payload is in flight.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The next payload begins; its pieces go to `place`.
    pub fn begin(&mut self, len: u64, place: L) {
        self.open.push(Arriving {
            number: self.begun,
            len,
            place,
            low: 0,
            beyond: Vec::new(),
        });
        self.begun += 1;
    }

    /// Whether this payload has begun, and not all of it has arrived.
    pub fn is_open(&self, number: u64) -> bool {
        self.open.iter().any(|a| a.number == number)
    }

    /// Destination of a piece.
    pub fn place(&self, piece: &Piece) -> Result<PieceState<'_, L>, Mismatch> {
        if piece.number >= self.begun {
            return Ok(PieceState::Early);
        }
        let Some(a) = self.open.iter().find(|a| a.number == piece.number) else {
            return Ok(PieceState::Had);
        };
        let index = self.index(piece, a.len)?;
        match a.has(index) {
            true => Ok(PieceState::Had),
            false => Ok(PieceState::Wanted(&a.place)),
        }
    }

    fn index(&self, piece: &Piece, total: u64) -> Result<u64, Mismatch> {
        let begins = piece.offset % self.piece == 0 && piece.offset < total;
        match begins && piece.len == self.piece.min(total - piece.offset) {
            true => Ok(piece.offset / self.piece),
            false => Err(Mismatch),
        }
    }

    /// A piece is in place. Returns the payload's place if this was the last missing piece.
    pub fn arrived(&mut self, piece: &Piece) -> Option<L> {
        let at = self.open.iter().position(|a| a.number == piece.number)?;
        let index = self.index(piece, self.open[at].len).ok()?;
        let a = &mut self.open[at];
        if !a.has(index) {
            a.note(index);
        }
        let all = a.low == a.len.div_ceil(self.piece);
        all.then(|| self.open.swap_remove(at).place)
    }
}

#[cfg(test)]
mod tests;
