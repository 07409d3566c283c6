//! The protocol machine of one rank: the endpoint, and the protocol families that use it.
//!
//! Calls go to the half of a protocol family that they concern ([`Machine::sender`],
//! [`Machine::receiver`]). A frame goes to the part given by its class ([`Class`]). Events that
//! concern several parts (a lost peer, a cancelled request) are handled here.

mod view;

pub use view::Stand;

use crate::endpoint::{Endpoint, Failure, Memory, Outcome, Peers, Refused, ReqId, State};
use crate::p2p::table::Choice;
use crate::p2p::{P2p, PeerMessages, Receiver, Sender};
use crate::wire::{Class, Header, Kind};
use kw_base::Peer;
use std::ops::Range;

/// All protocol state of one rank.
#[derive(Debug)]
pub struct Machine<B> {
    /// Requests, peers, and pending actions: the state that all protocols share.
    pub endpoint: Endpoint<B, PeerMessages>,
    /// Messages.
    pub p2p: P2p<B>,
    /// See [`Machine::check_types`].
    checks: bool,
}

impl<B: Memory> Machine<B> {
    /// A machine that knows `peers` peers, all with the same choice for now.
    pub fn new(peers: usize, choice: Choice) -> Machine<B> {
        Machine {
            endpoint: Endpoint::new(Peers::new(peers, || PeerMessages::new(choice, false))),
            p2p: P2p::default(),
            checks: false,
        }
    }

    /// There are `peers` peers from now on, the new ones with this choice for now. Existing peers
    /// keep their numbers and all that is in flight.
    pub fn grow(&mut self, peers: usize, choice: Choice) {
        let checks = self.checks;
        let new = || PeerMessages::new(choice, checks);
        self.endpoint.peers.grow(peers, new);
    }

    /// Whether any state of these peers is left here, or something is under way.
    pub fn has_any_of(&self, which: &Range<u32>) -> bool {
        let mut unexpected = self.unexpected();
        self.is_under_way() || unexpected.any(|m| which.contains(&m.from.0))
    }

    /// Forgets peers that are gone and have no state left here, so that others may get their
    /// numbers, with this choice for now.
    pub fn forget(&mut self, which: Range<u32>, choice: Choice) {
        let checks = self.checks;
        let new = || PeerMessages::new(choice, checks);
        self.endpoint.peers.forget(which, new);
    }

    /// Sets how many bytes of unexpected messages are kept before their senders are told to pause;
    /// zero: no limit.
    pub fn set_mark(&mut self, bytes: u64) {
        self.p2p.set_mark((bytes != 0).then_some(bytes));
    }

    /// From now on the program's messages carry their type signature, and receives compare it
    /// (KW_CHECK). Set to the same value on all ranks, before the first message.
    pub fn check_types(&mut self) {
        self.checks = true;
        for (_, peer) in self.endpoint.peers.iter_mut() {
            peer.messages.checks = true;
        }
    }

    /// Whether the program's messages carry their type signature ([`Machine::check_types`]).
    pub fn is_checking(&self) -> bool {
        self.checks
    }

    /// The sending half.
    #[inline(always)]
    pub fn sender(&mut self) -> Sender<'_, B> {
        self.p2p.sender(&mut self.endpoint)
    }

    /// The receiving half.
    #[inline(always)]
    pub fn receiver(&mut self) -> Receiver<'_, B> {
        self.p2p.receiver(&mut self.endpoint)
    }

    /// Handles a whole frame. Returns what is wrong with it, if anything is.
    #[inline]
    pub fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]) -> Result<(), Refused> {
        if head.kind == Kind::Eager {
            return self.receiver().on_eager(from, head, body);
        }
        match head.kind.class() {
            Class::Message => self.p2p.on_frame(&mut self.endpoint, from, head, body),
            Class::Control => {
                self.on_control(from, head.kind);
                Ok(())
            }
            // A path never passes one on.
            Class::Path => Ok(()),
        }
    }

    fn on_control(&mut self, from: Peer, kind: Kind) {
        match kind {
            Kind::Left => self.on_left(from),
            _ => self.endpoint.on_waits(from),
        }
    }

    /// Asks to cancel. Posted receives end at once; sends ask the receiver when it can still
    /// answer.
    pub fn cancel(&mut self, key: ReqId) {
        match self.endpoint.requests.get(key).map(|r| r.state) {
            Some(State::Posted(want)) => self.receiver().cancel(key, want),
            Some(_) => self.sender().cancel(key),
            None => {}
        }
    }

    /// Ends a request that waits for a rank which has left, or is gone.
    pub fn fail(&mut self, key: ReqId, why: &str) {
        let outcome = Outcome::failed(Failure::PeerGone(why.to_string()));
        self.p2p.end(&mut self.endpoint, key, outcome);
    }

    /// The peer has left in order: it need not be told anything.
    pub fn on_left(&mut self, peer: Peer) {
        self.endpoint.peers.on_left(peer);
        self.p2p.on_left(&mut self.endpoint.peers, peer);
    }

    /// The peer cannot be reached any more: everything that needs it ends with an error.
    pub fn on_gone(&mut self, peer: Peer, why: &str) {
        self.endpoint.peers.on_gone(peer, why);
        self.p2p.on_left(&mut self.endpoint.peers, peer);
        self.sender().forget(peer);
        for key in self.endpoint.requests.of(peer) {
            self.fail(key, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> impl Iterator<Item = Kind> {
        (0..=u8::MAX).filter_map(Kind::from_byte)
    }

    fn machine() -> Machine<()> {
        let choice = Choice {
            eager_max: u64::MAX,
            get_min: u64::MAX,
            announce_min: u64::MAX,
        };
        Machine::new(2, choice)
    }

    #[test]
    fn a_frame_that_a_path_should_have_kept_changes_nothing() {
        let mut machine = machine();
        let before = format!("{machine:?}");
        for kind in kinds().filter(|k| k.class() == Class::Path) {
            let frame = Header::bare(kind);
            assert_eq!(machine.on_frame(Peer(1), &frame, &[]), Ok(()));
            assert_eq!(format!("{machine:?}"), before, "{kind:?}");
        }
    }

    #[test]
    fn frames_about_the_ranks_themselves_touch_no_message() {
        for kind in kinds().filter(|k| k.class() == Class::Control) {
            let mut machine = machine();
            let before = format!("{:?}", machine.p2p);
            let peers = format!("{:?}", machine.endpoint.peers);
            assert_eq!(machine.on_frame(Peer(1), &Header::bare(kind), &[]), Ok(()));
            assert_eq!(format!("{:?}", machine.p2p), before, "{kind:?}");
            assert_ne!(format!("{:?}", machine.endpoint.peers), peers, "{kind:?}");
        }
    }
}
