//! The machine: all point-to-point state of one rank, and who of its parts handles what.

use super::landing::Landing;
use super::outbox::Outbox;
use super::peers::Peers;
use super::receiver::{Receiver, Receiving};
use super::requests::{ReqKey, Requests, State};
use super::sender::{Sender, Sending};
use super::table::Choice;
use super::{Failure, Memory, Outcome, Refused};
use crate::wire::{Header, Kind};
use kw_base::Peer;

/// All point-to-point state of one rank. Its two halves, [`Sender`] and [`Receiver`], share the
/// tables of requests and of peers, and where what they want done is put; each has besides what the
/// other one cannot see. What concerns both is done here.
#[derive(Debug)]
pub struct Machine<B> {
    /// Its requests.
    pub requests: Requests<B>,
    /// What it wants done, counts and tells.
    pub out: Outbox<B>,
    /// What it knows of the others.
    pub peers: Peers,
    /// Messages that are kept back or offered.
    pub sending: Sending,
    /// Posted receives and unexpected messages.
    pub receiving: Receiving<B>,
}

impl<B: Memory> Machine<B> {
    /// A machine that knows `peers` peers, all with the same choice for now.
    pub fn new(peers: usize, choice: Choice) -> Machine<B> {
        Machine {
            requests: Requests::default(),
            out: Outbox::default(),
            peers: Peers::new(peers, choice),
            sending: Sending::new(),
            receiving: Receiving::default(),
        }
    }

    /// Sets how much is kept of unexpected messages before their senders are told to hold, bytes;
    /// zero: whatever comes.
    pub fn set_mark(&mut self, bytes: u64) {
        let mark = (bytes != 0).then_some(bytes);
        self.receiving.high_water.set_mark(mark);
        self.sending.throttle.set_mark(mark);
    }

    /// The sending half.
    #[inline(always)]
    pub fn sender(&mut self) -> Sender<'_, B> {
        Sender {
            sending: &mut self.sending,
            requests: &mut self.requests,
            peers: &mut self.peers,
            out: &mut self.out,
        }
    }

    /// The receiving half.
    #[inline(always)]
    pub fn receiver(&mut self) -> Receiver<'_, B> {
        Receiver {
            receiving: &mut self.receiving,
            requests: &mut self.requests,
            peers: &mut self.peers,
            out: &mut self.out,
        }
    }

    /// A whole frame. Says what is wrong with it, if anything is.
    #[inline]
    pub fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]) -> Result<(), Refused> {
        if head.kind == Kind::Eager {
            return self.receiver().on_eager(from, head, body);
        }
        match head.kind {
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Write => {
                let Landing { place, buf } = self.receiver().on_head(from, head)?;
                buf.write(0, body);
                self.receiver().on_landed(place);
            }
            Kind::Rts => self.receiver().on_offer(from, head, body)?,
            Kind::Cts => self.sender().on_clear(from, head),
            Kind::Fin => self.sender().on_fetched(from, head),
            Kind::SyncAck => self.sender().on_sync_ack(head),
            Kind::Announce => self.sender().on_announce(from, head, body)?,
            Kind::Cancel => self.receiver().on_cancel(from, head),
            Kind::CancelAck => self.sender().on_cancel_ack(head),
            Kind::Hold => self.sender().on_told(from, true),
            Kind::Go => self.sender().on_told(from, false),
            Kind::Waits => self.peers.on_waits(from, &mut self.out),
            Kind::Left => self.receiver().on_left(from),
            Kind::Bye | Kind::More => {}
            // A path's own: it hands none on.
            Kind::Striped | Kind::Piece | Kind::Taken => {}
        }
        Ok(())
    }

    /// Asks to cancel. Posted receives end at once; sends ask the receiver when it can still
    /// answer.
    pub fn cancel(&mut self, key: ReqKey) {
        match self.requests.get(key).map(|r| r.state) {
            Some(State::Posted(want)) => self.receiver().cancel(key, want),
            Some(_) => self.sender().cancel(key),
            None => {}
        }
    }

    /// Ends a request that waits for a rank which has left, or is gone.
    pub fn fail(&mut self, key: ReqKey, why: &str) {
        let Some(req) = self.requests.get(key) else {
            return;
        };
        if let State::Posted(want) = req.state {
            self.receiving.matching.withdraw(want, key);
        }
        let outcome = Outcome::failed(Failure::PeerGone(why.to_string()));
        self.requests.finish(key, outcome, &mut self.peers);
    }

    /// The peer cannot be reached any more: everything that needs it ends with an error.
    pub fn on_gone(&mut self, peer: Peer, why: &str) {
        self.peers.set_gone(peer, why);
        self.receiver().on_left(peer);
        self.sender().forget(peer);
        for key in self.requests.of(peer) {
            self.fail(key, why);
        }
    }
}
