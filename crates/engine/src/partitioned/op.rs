//! A partitioned operation: its kind, its state, its result.

use super::rows::{Cargo, Pace, Row};
use super::setup::Setup;
use crate::messages::{ReqId, Want};
use kw_base::{ContextId, Peer};
use kw_proto::endpoint::{Failure, Memory, Outcome};
use kw_sys::buf::Buf;

/// Kind of a partitioned operation.
#[derive(Debug)]
pub(super) enum Side {
    Send {
        to: Peer,
        context: ContextId,
        source: u32,
        /// Partitions of each piece that are not ready.
        waits: Vec<u32>,
        rows: Vec<Row>,
        pace: Pace,
    },
    Recv {
        want: Want,
        partitions: u32,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Op {
    pub side: Side,
    pub buf: Buf,
    /// `None`: not known yet (a receive whose setup has not come).
    pub setup: Option<Setup>,
    /// The request of the active start.
    pub active: Option<ReqId>,
    /// Active transfers.
    pub flights: Vec<(ReqId, Cargo)>,
    /// The pieces that have ended.
    pub ended: Vec<bool>,
    /// Pieces that have not ended.
    pub left: u32,
    /// Bytes that came.
    pub came: u64,
    pub failure: Option<Failure>,
    /// For a receive: how its types differ from those of the send (KW_CHECK).
    pub mismatch: Option<String>,
    /// The handle is freed: the operation is dropped when it has ended.
    pub freed: bool,
}

impl Op {
    /// An operation that is not active.
    pub fn new(side: Side, buf: &Buf, setup: Option<Setup>) -> Op {
        Op {
            side,
            buf: buf.clone(),
            setup,
            active: None,
            flights: Vec::new(),
            ended: Vec::new(),
            left: 0,
            came: 0,
            failure: None,
            mismatch: None,
            freed: false,
        }
    }

    /// Notes how the types of a receive differ from those of its send, if they are known.
    pub fn compare_types(&mut self, setup: &Setup) {
        let Side::Recv { want, .. } = &self.side else {
            return;
        };
        let source = want.source.map_or(0, |s| s.0);
        let len = setup.len().min(self.buf.len());
        let text = match setup.types {
            0 => None,
            types => self.buf.mismatch(types, len),
        };
        self.mismatch = text.map(|text| {
            let tag = setup.tag;
            format!("the partitioned send of rank {source} with tag {tag} holds {text}")
        });
    }

    /// The part of the buffer that a cargo fills; shorter than the cargo if the sender has more
    /// than fits.
    pub fn slice(&self, setup: &Setup, cargo: Cargo) -> Buf {
        let (from, len) = cargo.bytes(setup);
        let from = from.min(self.buf.len());
        self.buf.slice(from, len.min(self.buf.len() - from))
    }

    /// Pieces that are in flight.
    pub fn in_flight(&self, setup: &Setup) -> usize {
        let cargoes = self.flights.iter().map(|(_, cargo)| cargo.pieces(setup));
        cargoes.map(|pieces| pieces.len()).sum()
    }

    /// All pieces of a cargo have ended.
    pub fn end_cargo(&mut self, setup: &Setup, cargo: Cargo) {
        for piece in cargo.pieces(setup) {
            self.ended[piece as usize] = true;
            self.left -= 1;
        }
    }

    /// How the operation ended.
    pub fn outcome(&mut self) -> Outcome {
        // A receive whose sender is gone stays without a setup: each start fails.
        let failure = match self.setup {
            Some(_) => self.failure.take(),
            None => self.failure.clone(),
        };
        // Every transfer has these types.
        let failure = failure.or_else(|| self.mismatch.clone().map(Failure::Types));
        let mut outcome = failure.map_or(Outcome::CLEAN, Outcome::failed);
        outcome.len = self.came;
        if let (Side::Recv { want, .. }, Some(setup)) = (&self.side, &self.setup) {
            outcome.source = want.source.map_or(0, |s| s.0);
            outcome.tag = setup.tag;
            if let Some(Failure::Truncated { came, fits }) = outcome.failure.as_deref_mut() {
                (*came, *fits) = (setup.len(), self.buf.len());
            }
        }
        outcome
    }
}
