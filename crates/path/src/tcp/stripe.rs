//! Striped payloads between two ranks (see [`kw_proto::stripe`]), as known to the link between
//! them. They outlive connections.

use super::disconnect::End;
use crate::contract::Destination;
use kw_proto::stripe::{Carrier, Incoming, Outgoing, Piece, PieceState};
use kw_proto::wire::{Header, Kind, WireError};
use kw_sys::buf::Buf;

/// Cookie of a frame without a waiting sender.
pub const NOBODY: u64 = u64::MAX;

/// The first connection, as a carrier of pieces.
const FIRST: Carrier = 0;

/// Payloads in pieces, both ways.
#[derive(Debug)]
pub struct Stripes {
    out: Outgoing<Buf>,
    into: Incoming<Destination>,
    /// Payloads that have come, which the peer has not been told.
    taken: Vec<u64>,
    /// Payloads that the peer has, whose owners have not been told.
    confirmed: Vec<u64>,
    /// The payload of which the first connection sends a piece.
    main: Option<u64>,
}

/// The striped payloads, created when a piece is sent or received for the first time.
#[derive(Debug, Default)]
pub struct LinkStripes {
    under_way: Option<Box<Stripes>>,
    /// Bytes of a piece.
    piece: u64,
}

impl LinkStripes {
    /// Pieces have this many bytes.
    pub fn open(&mut self, piece: u64) {
        self.piece = piece;
    }

    /// Striped payloads, if there ever were any.
    pub fn get(&mut self) -> Option<&mut Stripes> {
        self.under_way.as_deref_mut()
    }

    /// Striped payloads; initially empty.
    pub fn make(&mut self) -> &mut Stripes {
        let piece = self.piece;
        self.under_way
            .get_or_insert_with(|| Box::new(Stripes::new(piece)))
    }

    /// Whether there are none.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.under_way.as_ref().is_none_or(|s| s.is_idle())
    }
}

impl Stripes {
    /// No payloads, with pieces of this many bytes.
    pub fn new(piece: u64) -> Stripes {
        Stripes {
            out: Outgoing::new(piece),
            into: Incoming::new(piece),
            taken: Vec::new(),
            confirmed: Vec::new(),
            main: None,
        }
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        let under_way = !self.out.is_empty() || !self.into.is_empty();
        !under_way && self.taken.is_empty() && self.confirmed.is_empty()
    }

    /// Whether a payload comes in pieces.
    pub fn is_coming(&self) -> bool {
        !self.into.is_empty()
    }

    /// Whether pieces of this payload are wanted.
    pub fn is_open(&self, number: u64) -> bool {
        self.into.is_open(number)
    }

    /// The next payload of this many bytes arrives in pieces.
    pub fn comes(&mut self, len: u64, destination: Destination) {
        self.into.begin(len, destination);
    }

    /// Where a piece goes; nowhere if it is not wanted. `None`: its payload has not begun.
    pub fn place(&self, piece: &Piece) -> Result<Option<Destination>, End> {
        let mismatch = |_| End::Nonsense(WireError::Misplaced(Kind::Piece));
        Ok(match self.into.place(piece).map_err(mismatch)? {
            PieceState::Early => None,
            PieceState::Had => Some(nowhere()),
            PieceState::Wanted(whole) => Some(Destination {
                at: whole.at.saturating_add(piece.offset),
                ..whole.clone()
            }),
        })
    }

    /// A piece is in place. Returns the cookie of the payload's destination if all of it is.
    pub fn arrived(&mut self, piece: &Piece) -> Option<u64> {
        let destination = self.into.arrived(piece)?;
        self.taken.push(piece.number);
        Some(destination.cookie)
    }

    /// Payloads that have come, which the peer has to be told; each once.
    pub fn take_arrived(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.taken)
    }

    /// The next payload goes in pieces; returns its number.
    pub fn begin(&mut self, (buf, from, len): (&Buf, u64, u64), cookie: u64) -> u64 {
        self.out.begin(buf.clone(), from, len, cookie)
    }

    /// A piece for one of the further connections, if there is one to send.
    pub fn hand_out(&mut self, rail: Carrier) -> Option<Piece> {
        self.out.hand_out(rail)
    }

    /// A piece for the first connection, which has handed over its stream up to byte `end`, and the
    /// piece's memory.
    pub fn hand_out_first(&mut self, end: u64) -> Option<(Piece, Buf, u64)> {
        self.first_is_through(end);
        let piece = self.out.hand_out(FIRST)?;
        let (buf, from) = self.out.source(&piece)?;
        let buf = buf.clone();
        self.main = Some(piece.number);
        Some((piece, buf, from))
    }

    /// The first connection has handed over its stream up to byte `end`, and nothing waits.
    pub fn first_is_through(&mut self, end: u64) {
        if let Some(number) = self.main.take() {
            self.out.went(number, end);
        }
    }

    /// Memory of a piece; `None`: the peer has all of its payload.
    pub fn source(&self, piece: &Piece) -> Option<(&Buf, u64)> {
        self.out.source(piece)
    }

    /// A further connection is over: the pieces that it carried go again. Returns how many these
    /// are.
    pub fn lost(&mut self, rail: Carrier) -> usize {
        self.out.lost(rail)
    }

    /// The peer has all of a payload.
    pub fn on_confirmed(&mut self, number: u64) {
        self.confirmed.push(number);
    }

    /// The cookies of payloads that the peer has, with the byte of the stream at which the last
    /// piece of each on the first connection ended; once.
    pub fn take_confirmed(&mut self) -> Vec<(u64, u64)> {
        let mut given = Vec::new();
        // A piece that goes again over the first connection, although the peer has it, is still
        // read from the owner's memory.
        let busy = self.main;
        self.confirmed.retain(|&number| {
            let later = busy == Some(number);
            if !later {
                given.extend(self.out.confirmed(number));
            }
            later
        });
        given
    }
}

/// A place for bytes that are thrown away.
pub fn nowhere() -> Destination {
    Destination {
        cookie: NOBODY,
        buf: Buf::alloc(0),
        at: 0,
    }
}

/// The header of a piece.
pub fn head_of(piece: &Piece) -> Header {
    Header {
        len: piece.len,
        token: piece.number,
        ..Header::bare(Kind::Piece)
    }
    .with_aux(piece.offset)
}

/// The piece that a header announces.
pub fn piece_of(head: &Header) -> Piece {
    Piece {
        number: head.token,
        offset: head.aux(),
        len: head.len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: u64 = 8;

    /// A payload of three pieces, all handed out: one to the first connection, two to a rail.
    fn handed_out() -> (Stripes, u64) {
        let mut stripes = Stripes::new(PIECE);
        let buf = Buf::alloc(24);
        let number = stripes.begin((&buf, 0, 24), 7);
        assert!(stripes.hand_out_first(100).is_some());
        assert!(stripes.hand_out(1).is_some() && stripes.hand_out(1).is_some());
        assert!(stripes.hand_out(1).is_none(), "all are handed out");
        (stripes, number)
    }

    #[test]
    fn an_owner_is_notified_when_the_first_connection_has_handed_over_its_piece() {
        let (mut stripes, number) = handed_out();
        stripes.on_confirmed(number);
        let confirmed = stripes.take_confirmed();
        assert!(confirmed.is_empty(), "the first connection still reads it");
        assert!(!stripes.is_idle());
        stripes.first_is_through(140);
        assert_eq!(stripes.take_confirmed(), [(7, 140)]);
        assert!(stripes.is_idle());
    }

    #[test]
    fn pieces_of_a_rail_that_is_over_go_again() {
        let (mut stripes, _) = handed_out();
        assert_eq!(stripes.lost(1), 2);
        let again = stripes.hand_out(2).expect("one that was lost");
        assert!(stripes.source(&again).is_some());
        assert!(stripes.hand_out_first(140).is_some());
        assert!(stripes.hand_out(2).is_none());
    }

    #[test]
    fn pieces_land_in_any_order_and_once() {
        let mut stripes = Stripes::new(PIECE);
        let piece = |offset, len| Piece {
            number: 0,
            offset,
            len,
        };
        assert!(
            stripes.place(&piece(8, 8)).unwrap().is_none(),
            "it is early"
        );
        let destination = Destination {
            cookie: 5,
            buf: Buf::alloc(30),
            at: 10,
        };
        stripes.comes(20, destination);
        assert!(stripes.is_coming() && stripes.is_open(0));
        let at = |p: &Piece, s: &Stripes| s.place(p).unwrap().expect("it has begun").at;
        for (offset, len) in [(16, 4), (0, 8)] {
            assert_eq!(at(&piece(offset, len), &stripes), 10 + offset);
            assert_eq!(stripes.arrived(&piece(offset, len)), None);
        }
        let again = stripes.place(&piece(0, 8)).unwrap().expect("had");
        assert_eq!(again.buf.len(), 0, "it goes nowhere");
        assert_eq!(stripes.arrived(&piece(8, 8)), Some(5));
        assert_eq!(stripes.take_arrived(), [0]);
        assert!(stripes.is_idle() && !stripes.is_open(0));
        assert!(stripes.place(&piece(3, 8)).is_ok(), "of one that is over");
    }
}
