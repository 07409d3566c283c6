//! The sender: messages of this rank from the call that starts them until their buffer may be
//! reused. Its part of each protocol is in that protocol's file.

use super::flow_control::{Throttle, is_users};
use super::peers::Peers;
use crate::endpoint::{Failure, Memory, Outbox, Outcome, ReqId, Requests, State, header};
use crate::matching::Envelope;
use crate::wire::{Header, Kind};
use kw_base::Peer;
use kw_base::counters::Protocol;

/// How a send completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// When the buffer may be reused.
    Standard,
    /// When, additionally, the receive has been matched.
    Synchronous,
    /// Like `Standard`; the receiver is asked to fetch the message from the sender's memory, if it
    /// may. Receives of such messages are best started with [`super::Receiver::recv_fetched`].
    Fetched,
}

/// A send that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// Already complete; there is no request.
    Done,
    /// Active.
    Request(ReqId),
}

/// State of sending for all peers together; for each peer see `peers`.
#[derive(Debug)]
pub struct Sending {
    pub(super) throttle: Throttle,
    /// The message that was offered last, to any peer.
    pub(super) newest_offer: Option<ReqId>,
}

impl Sending {
    pub(super) fn new() -> Sending {
        Sending {
            throttle: Throttle::new(),
            newest_offer: None,
        }
    }

    /// Whether [`Sender::send_kept_back`] may have something to do.
    #[inline]
    pub fn is_stalled(&self) -> bool {
        self.throttle.is_stalled()
    }

    /// Whether this rank has sent enough without polling that a poll is due. Asking counts as
    /// polling.
    #[inline]
    pub fn owes_a_look(&mut self) -> bool {
        self.throttle.owes_a_look()
    }

    /// Whether messages are kept back, because their receiver wants no more of them yet.
    pub fn keeps_back(&self, peers: &Peers) -> bool {
        self.throttle.keeps_back(peers)
    }
}

/// The sending half of a [`super::P2p`], for one call or event. It knows nothing of receives except
/// the announcements of peers.
#[derive(Debug)]
pub struct Sender<'a, B> {
    pub(super) sending: &'a mut Sending,
    pub(super) requests: &'a mut Requests<B>,
    pub(super) peers: &'a mut Peers,
    pub(super) out: &'a mut Outbox<B>,
}

impl<B: Memory> Sender<'_, B> {
    /// A plain eager frame went out (or into the path's queue, then
    /// [`Requests::cookie_of_next`] was its cookie and a request is made for it).
    #[inline(always)]
    pub fn sent_eager(&mut self, to: Peer, env: Envelope, len: u64, queued: Option<&B>) -> Started {
        let peer = &mut self.peers[to];
        peer.messages.theirs.sent_unasked(env, None);
        self.sending.throttle.sent(len);
        self.out.counters.sent(peer.way, Protocol::Eager, len);
        match queued {
            None => Started::Done,
            Some(buf) => {
                self.sending.throttle.queued(self.peers, to, len);
                Started::Request(
                    self.requests
                        .insert(State::Sending, buf.clone(), Some(to), env),
                )
            }
        }
    }

    /// Starts a send.
    pub fn send(&mut self, to: Peer, env: Envelope, mode: Mode, buf: &B) -> Started {
        if let Some(why) = &self.peers[to].gone {
            let failure = Failure::PeerGone(why.clone());
            return Started::Request(self.requests.insert_failed(to, env, failure));
        }
        if self.sending.throttle.must_wait(self.peers, to, &env) {
            return Started::Request(self.keep_back(to, env, mode, buf));
        }
        let key = self
            .requests
            .insert(State::KeptBack, buf.clone(), Some(to), env);
        self.launch(key, to, env, mode, buf);
        Started::Request(key)
    }

    /// Sends a message whose turn it is, by the protocol that suits it.
    pub(super) fn launch(&mut self, key: ReqId, to: Peer, env: Envelope, mode: Mode, buf: &B) {
        let peer = &mut self.peers[to];
        // Only a frame of an offer has room for the signature of a synchronous message.
        let says = peer.messages.checks && mode == Mode::Synchronous;
        let short = buf.len() <= peer.messages.choice.eager_max
            && (mode != Mode::Fetched || buf.len() == 0)
            && !says;
        let announced = peer.messages.theirs.take(env);
        if announced.is_none() && peer.must_withhold(env, mode, buf.len(), short) {
            return self.withhold(key, to, env, mode);
        }
        match announced {
            Some(_) => peer.messages.theirs.sent_asked(),
            None => {
                let may_answer =
                    mode == Mode::Standard && !short && peer.messages.choice.answers_offers();
                peer.messages
                    .theirs
                    .sent_unasked(env, may_answer.then_some(key));
            }
        }
        self.sending.throttle.sent(buf.len());
        if short {
            return self.send_eager(key, to, env, mode, buf);
        }
        match announced {
            // A synchronous send must know that the receive exists: an announced one may have been
            // cancelled meanwhile.
            Some(token) if mode == Mode::Standard => self.send_write(key, to, env, token, buf),
            _ => self.send_offer(key, to, env, mode, buf),
        }
    }

    /// Description of a message's elements.
    pub(super) fn signature(&self, to: Peer, env: Envelope, buf: &B) -> u32 {
        match self.peers[to].messages.checks && is_users(&env) {
            true => buf.signature(),
            false => 0,
        }
    }

    /// Sends the payload of a message whose receive is known, all or the first bytes of it.
    pub(super) fn stream(&mut self, key: ReqId, to: Peer, head: Header, by: Protocol) {
        let Some(req) = self.requests.get_mut(key) else {
            return;
        };
        req.state = State::Streaming;
        let buf = req.buf.clone();
        let way = self.peers[to].way;
        self.out.counters.sent(way, by, head.len);
        self.out.payload(to, head, buf, key);
    }

    /// The path has read the payload of a frame.
    pub fn on_sent(&mut self, key: ReqId) {
        let Some(req) = self.requests.get_mut(key) else {
            return;
        };
        match req.state {
            State::Sending | State::Streaming => self.finish(key, Outcome::CLEAN),
            State::SendingSync { acked: true, .. } => self.finish(key, Outcome::CLEAN),
            State::SendingSync { ref mut sent, .. } => {
                *sent = true;
                if let Some(to) = req.peer {
                    self.peers[to].messages.backlog.unqueued(req.buf.len());
                }
            }
            _ => {}
        }
    }

    /// Asks to take a message back: asks its receiver, if that can still answer.
    pub(crate) fn cancel(&mut self, key: ReqId) {
        let Some(req) = self.requests.get_mut(key) else {
            return;
        };
        let (peer, env) = (req.peer, req.env);
        match req.state {
            State::Offered { ref mut cancelling } if !*cancelling => {
                *cancelling = true;
                self.send_cancel(peer, env, key);
            }
            State::SendingSync { acked: false, .. } => self.send_cancel(peer, env, key),
            State::KeptBack => self.finish(key, Outcome::CANCELLED),
            _ => {}
        }
    }

    fn send_cancel(&mut self, to: Option<Peer>, env: Envelope, key: ReqId) {
        let head = header(Kind::Cancel, env, 0, key.to_bits());
        if let Some(to) = to {
            self.out.bare(to, head);
        }
    }

    /// The receiver has answered whether it could take a message back.
    pub(super) fn on_cancel_ack(&mut self, head: &Header) {
        let key = ReqId::from_bits(head.token);
        if let (1, Some(_)) = (head.len, self.requests.get(key)) {
            self.finish(key, Outcome::CANCELLED);
        }
    }

    /// The peer is gone: nothing waits to go there any more.
    pub(crate) fn forget(&mut self, peer: Peer) {
        self.peers[peer].messages.backlog.forget();
        self.forget_deferred(peer);
    }

    pub(super) fn finish(&mut self, key: ReqId, outcome: Outcome) {
        super::finish(self.requests, self.peers, key, outcome);
    }
}
