//! Whoever waits for a rank that has begun to finalize.
//!
//! A rank that has waited long for another says so ([`Kind::Waits`]), once in the life of the job. A rank in MPI_Finalize answers
//! [`Kind::Left`], at once or when it comes there. Frames of one peer come in order, and a rank leaves when its own are out: once `Left`
//! has come, whatever the peer sent has been matched or lies among the messages that came early. A receive that still waits for the peer, or
//! a send that it must answer, would wait for ever.
//!
//! Nothing ends by itself when `Left` comes, because the program may yet cancel it: only what a thread waits for does ([`Machine::fail`]).

use super::machine::{Machine, ReqKey, State};
use super::{Failure, Memory, Outcome};
use crate::wire::Kind;
use kw_base::{ContextId, Peer};

/// What one side knows of the other's end.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct End {
    /// It was told that this rank waits for it.
    asked: bool,
    /// It waits for this rank.
    waits: bool,
    /// It is in MPI_Finalize, or has left.
    pub left: bool,
}

/// Whom a request that has not ended depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaits {
    /// Nobody's decision: it has ended, or its message is under way.
    Nobody,
    /// This peer must send a message, or receive one.
    Peer(Peer),
    /// Anybody who sends in this context may send the message.
    Anyone(ContextId),
    /// It is one of the owner's ([`Machine::open`]).
    Owner,
}

impl<B: Memory> Machine<B> {
    /// Whom a request depends on.
    pub fn awaits(&self, key: ReqKey) -> Awaits {
        let Some(req) = self.reqs.get(key) else {
            return Awaits::Nobody;
        };
        match req.state {
            State::Posted(want) if req.peer.0 == u32::MAX => {
                Awaits::Anyone(ContextId(want.context))
            }
            State::Posted(_)
            | State::Offered { cancelling: false }
            | State::SendingSync {
                sent: true,
                acked: false,
            } => Awaits::Peer(req.peer),
            State::Open => Awaits::Owner,
            _ => Awaits::Nobody,
        }
    }

    /// Tells a peer, unless it was told before, that this rank waits for it.
    pub fn ask(&mut self, peer: Peer) {
        let end = &mut self.peers[peer.idx()].end;
        if !end.left && !std::mem::replace(&mut end.asked, true) {
            self.control(peer, Kind::Waits, 0, 0, 0);
        }
    }

    /// Why the peer sends and receives nothing more, if it has said so or is gone.
    pub fn why_left(&self, peer: Peer) -> Option<String> {
        let p = &self.peers[peer.idx()];
        let left =
            || format!("rank {peer} has called MPI_Finalize: it sends and receives nothing more");
        p.gone.clone().or_else(|| p.end.left.then(left))
    }

    /// Whether the peer has said that it is in MPI_Finalize, or is gone.
    pub fn has_left(&self, peer: Peer) -> bool {
        self.peers[peer.idx()].end.left
    }

    /// Ends a request that waits for a rank which has left, or is gone.
    pub fn fail(&mut self, key: ReqKey, why: &str) {
        let Some(req) = self.reqs.get(key) else {
            return;
        };
        if let State::Posted(want) = req.state {
            self.matching.withdraw(want, key);
        }
        let failure = Some(Failure::PeerGone(why.to_string()));
        self.finish(
            key,
            Outcome {
                failure,
                ..Outcome::CLEAN
            },
        );
    }

    /// This rank is in MPI_Finalize and has sent all it had to: whoever waits for it hears so.
    pub fn leave(&mut self) {
        self.leaving = true;
        for p in 0..self.peers.len() {
            if self.peers[p].end.waits {
                self.control(Peer(p as u32), Kind::Left, 0, 0, 0);
            }
        }
    }

    /// Whether this rank is in MPI_Finalize.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    pub(super) fn on_waits(&mut self, from: Peer) -> Result<(), String> {
        self.peers[from.idx()].end.waits = true;
        if self.leaving {
            self.control(from, Kind::Left, 0, 0, 0);
        }
        Ok(())
    }

    pub(super) fn on_left_job(&mut self, from: Peer) -> Result<(), String> {
        self.on_left(from);
        Ok(())
    }
}
