//! Point-to-point protocols as one state machine: eager, rendezvous, get and write.
//!
//! [`P2p`] is their state beyond the [`Endpoint`] that they share with other protocols, in two
//! halves: that of sending ([`Sending`]) and that of receiving ([`Receiving`]). Calls and events go
//! to the [`Sender`] or to the [`Receiver`], each of which works on its half and on the endpoint
//! and cannot see the other half. The results are actions of the endpoint, to be carried out in
//! order. Nothing here touches a socket, a clock or the user's memory.
//!
//! ```text
//! eager       S --Eager(payload)--> R                                 (S done when its buffer was read)
//! synchronous S --EagerSync(payload)--> R --SyncAck--> S              (answered when matched)
//! rendezvous  S --Rts--> R --Cts--> S --Data(payload)--> R            (large, receive not posted or get refused)
//! get         S --Rts(region)--> R,  R reads S's memory, R --Fin--> S
//! write       R --Announce--> S --Write(payload)--> R                 (no handshake at send time; see `announce`)
//! ```
//!
//! One file for each, with both halves' part of it: [`eager`], [`rendezvous`] (with get),
//! [`announce`] (write; `deferred`: messages of collectives that wait for it); `direct` takes a
//! message past the queues; [`flow_control`] keeps messages back whose receiver has too many
//! already. Cost decides which one is taken: [`table`].

pub mod announce;
mod deferred;
mod destination;
mod direct;
pub mod eager;
mod flow_control;
mod peers;
pub mod prices;
mod receiver;
mod rendezvous;
mod sender;
pub mod table;
mod unexpected;

pub use destination::{Destination, Target};
pub(crate) use flow_control::is_p2p;
pub use peers::{PeerMessages, PeerState, Peers};
pub use receiver::{Receiver, Receiving, TakenMessage, Unreceived};
pub use sender::{Mode, Sender, Sending, Started};

use crate::endpoint::{self, Memory, Outcome, Refused, ReqId, Requests, State};
use crate::wire::{Header, Kind};
use kw_base::Peer;

/// State that the point-to-point protocols share with others.
pub type Endpoint<B> = endpoint::Endpoint<B, PeerMessages>;

/// State of the point-to-point protocols of one rank beyond its endpoint.
#[derive(Debug)]
pub struct P2p<B> {
    /// Messages that are kept back or offered.
    pub sending: Sending,
    /// Posted receives and unexpected messages.
    pub receiving: Receiving<B>,
}

impl<B> Default for P2p<B> {
    fn default() -> Self {
        P2p {
            sending: Sending::new(),
            receiving: Receiving::default(),
        }
    }
}

impl<B: Memory> P2p<B> {
    /// Sets how many bytes of unexpected messages are kept before their senders are told to pause;
    /// `None`: no limit.
    pub(crate) fn set_mark(&mut self, mark: Option<u64>) {
        self.receiving.high_water.set_mark(mark);
        self.sending.throttle.set_mark(mark);
    }

    /// The peer has left in order, or is gone: it need not be told anything.
    pub(crate) fn on_left(&mut self, peers: &mut Peers, peer: Peer) {
        self.receiving.high_water.on_left(peers, peer);
    }

    /// The sending half.
    #[inline(always)]
    pub fn sender<'a>(&'a mut self, endpoint: &'a mut Endpoint<B>) -> Sender<'a, B> {
        Sender {
            sending: &mut self.sending,
            requests: &mut endpoint.requests,
            peers: &mut endpoint.peers,
            out: &mut endpoint.out,
        }
    }

    /// The receiving half.
    #[inline(always)]
    pub fn receiver<'a>(&'a mut self, endpoint: &'a mut Endpoint<B>) -> Receiver<'a, B> {
        Receiver {
            receiving: &mut self.receiving,
            requests: &mut endpoint.requests,
            peers: &mut endpoint.peers,
            out: &mut endpoint.out,
        }
    }

    /// Handles a whole frame of class [`crate::wire::Class::Message`]. Returns what is wrong with
    /// it, if anything is.
    pub(crate) fn on_frame(
        &mut self,
        endpoint: &mut Endpoint<B>,
        from: Peer,
        head: &Header,
        body: &[u8],
    ) -> Result<(), Refused> {
        match head.kind {
            Kind::Rts | Kind::KeyedRts => self.receiver(endpoint).on_offer(from, head, body)?,
            Kind::Cts => self.sender(endpoint).on_clear(from, head),
            Kind::Fin => self.sender(endpoint).on_fetched(from, head),
            Kind::SyncAck => self.sender(endpoint).on_sync_ack(head),
            Kind::Announce => self.sender(endpoint).on_announce(from, head, body)?,
            Kind::Cancel => self.receiver(endpoint).on_cancel(from, head),
            Kind::CancelAck => self.sender(endpoint).on_cancel_ack(head),
            Kind::Pause => self.sender(endpoint).on_limit(from, true),
            Kind::Resume => self.sender(endpoint).on_limit(from, false),
            // All others of the class carry payload.
            _ => self.receiver(endpoint).on_payload(from, head, body)?,
        }
        Ok(())
    }

    /// Ends a request, whatever it waits for.
    pub(crate) fn end(&mut self, endpoint: &mut Endpoint<B>, key: ReqId, outcome: Outcome) {
        let state = endpoint.requests.get(key).map(|r| r.state);
        if let Some(State::Posted(want)) = state {
            self.receiving.matching.withdraw(want, key.0);
        }
        finish(&mut endpoint.requests, &mut endpoint.peers, key, outcome);
    }
}

/// Ends a request. If it is a message that waits in a path's queue, it waits no more.
fn finish<B: Memory>(requests: &mut Requests<B>, peers: &mut Peers, key: ReqId, outcome: Outcome) {
    if let Some((to, len)) = requests.finish(key, outcome) {
        peers[to].messages.backlog.unqueued(len);
    }
}
