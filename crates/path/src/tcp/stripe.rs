//! What two ranks have under way in pieces (see [`kw_proto::stripe`]), as the link between them knows it. It outlives connections.

use super::disconnect::End;
use crate::contract::Landing;
use kw_proto::stripe::{Incoming, Outgoing, Piece, Place};
use kw_proto::wire::{Header, Kind, WireError};
use kw_sys::buf::Buf;

/// Cookie of a frame that nobody waits for.
pub const NOBODY: u64 = u64::MAX;

/// Payloads in pieces, both ways.
#[derive(Debug)]
pub struct Stripes {
    pub out: Outgoing<Buf>,
    pub into: Incoming<Landing>,
    /// Payloads that have come, and the peer does not know.
    pub taken: Vec<u64>,
    /// Payloads that the peer has, and their owners do not know.
    pub confirmed: Vec<u64>,
    /// The payload of which the first connection sends a piece.
    pub main: Option<u64>,
}

impl Stripes {
    pub fn new(piece: u64) -> Stripes {
        Stripes {
            out: Outgoing::new(piece),
            into: Incoming::new(piece),
            taken: Vec::new(),
            confirmed: Vec::new(),
            main: None,
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        let under_way = !self.out.is_empty() || !self.into.is_empty();
        !under_way && self.taken.is_empty() && self.confirmed.is_empty()
    }

    /// Where a piece goes; nowhere when it is not wanted. `None`: its payload has not begun.
    pub fn place(&self, piece: &Piece) -> Result<Option<Landing>, End> {
        let misfit = |_| End::Nonsense(WireError::Misplaced(Kind::Piece));
        Ok(match self.into.place(piece).map_err(misfit)? {
            Place::Early => None,
            Place::Had => Some(nowhere()),
            Place::Wanted(whole) => Some(Landing {
                at: whole.at.saturating_add(piece.offset),
                ..whole.clone()
            }),
        })
    }

    /// A piece is in place. The cookie of the payload's landing when all of it is.
    pub fn arrived(&mut self, piece: &Piece) -> Option<u64> {
        let landing = self.into.arrived(piece)?;
        self.taken.push(piece.number);
        Some(landing.cookie)
    }
}

/// A place for bytes that are thrown away.
pub fn nowhere() -> Landing {
    Landing {
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
