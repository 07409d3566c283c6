//! Waits that depend on a rank that has begun to finalize.
//!
//! A rank that has waited long for another says so ([`Kind::Waits`]), once in the life of the job.
//! A rank in MPI_Finalize answers [`Kind::Left`], at once or when it comes there. Frames of one
//! peer come in order, and a rank leaves when its own are out: once `Left` has come, every message
//! that the peer sent has been matched or is in the unexpected queue. A receive that still waits
//! for the peer, or a send that it must answer, would wait forever.
//!
//! Nothing ends by itself when `Left` comes, because the program may yet cancel it: only requests
//! that a thread waits for do ([`crate::machine::Machine::fail`]).

use super::{Endpoint, Peers};
use crate::wire::Kind;
use kw_base::{ContextId, Peer};

/// Knowledge of one side about the other's end.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct End {
    /// It was told that this rank waits for it.
    asked: bool,
    /// It waits for this rank.
    waits: bool,
    /// It is in MPI_Finalize, or has left.
    pub left: bool,
}

/// The peers on which an incomplete request depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaits {
    /// No peer: it has ended, or its message is in flight.
    NoPeer,
    /// This peer must send a message, or receive one.
    Peer(Peer),
    /// Any sender in this context may send the message.
    Anyone(ContextId),
    /// It is one of the owner's ([`super::Requests::open`]).
    Owner,
}

impl<P> Peers<P> {
    /// Why the peer sends and receives nothing more, if it has said so or is gone.
    pub fn why_left(&self, peer: Peer) -> Option<String> {
        let p = &self[peer];
        let left =
            || format!("rank {peer} has called MPI_Finalize: it sends and receives nothing more");
        p.gone.clone().or_else(|| p.end.left.then(left))
    }

    /// Why a peer is gone that has not left in order.
    pub fn why_gone(&self, peer: Peer) -> Option<&str> {
        self[peer].gone.as_deref()
    }

    /// Whether the peer has said that it is in MPI_Finalize, or is gone.
    pub fn has_left(&self, peer: Peer) -> bool {
        self[peer].end.left
    }

    /// Whether this rank is in MPI_Finalize.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// The peer has said that it is in MPI_Finalize, or has left in order.
    pub(crate) fn on_left(&mut self, peer: Peer) {
        self[peer].end.left = true;
    }
}

impl<B, P> Endpoint<B, P> {
    /// Tells a peer, unless it was told before, that this rank waits for it.
    pub fn ask(&mut self, peer: Peer) {
        let end = &mut self.peers[peer].end;
        if !end.left && !std::mem::replace(&mut end.asked, true) {
            self.out.control(peer, Kind::Waits, 0, 0, 0);
        }
    }

    /// This rank is in MPI_Finalize and has sent all it had to: tells every peer that waits for it.
    pub fn leave(&mut self) {
        self.peers.leaving = true;
        for (peer, _) in self.peers.iter().filter(|(_, p)| p.end.waits) {
            self.out.control(peer, Kind::Left, 0, 0, 0);
        }
    }

    /// The peer waits for this rank.
    pub(crate) fn on_waits(&mut self, from: Peer) {
        self.peers[from].end.waits = true;
        if self.peers.leaving {
            self.out.control(from, Kind::Left, 0, 0, 0);
        }
    }
}
