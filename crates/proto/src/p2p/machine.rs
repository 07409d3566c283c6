//! The machine: requests, queues, peers; what the application asks for.

use super::flow_control::FlowControl;
use super::outbox::{Outbox, header};
use super::peers::Peers;
use super::rendezvous::Offer;
use super::requests::{Req, ReqKey, Requests, State};
use super::table::Choice;
use super::{Failure, Found, Memory, Outcome};
use crate::matching::{Envelope, Matching, Pattern};
use crate::wire::Kind;
use kw_base::counters::{Counter, Protocol, Way};
use kw_base::{Key, Peer, Slab};

/// How a send completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// When the buffer may be used again.
    Standard,
    /// When, besides, the receive has been matched.
    Synchronous,
    /// Like `Standard`; the receiver is asked to fetch the message from the sender's memory, if it may. Receives of such messages are
    /// best started with [`Machine::recv_fetched`].
    Fetched,
}

/// A send that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// Complete already.
    Done,
    /// Goes on.
    Request(ReqKey),
}

/// What a message that came early has brought so far.
#[derive(Debug)]
pub(super) enum Early<B> {
    /// The whole payload.
    Whole(B),
    /// Payload still landing in our buffer; the request that has claimed it meanwhile.
    Landing(B, Option<ReqKey>),
    /// Only the offer.
    Offer(Offer),
}

#[derive(Debug)]
pub(super) struct Message<B> {
    pub from: Peer,
    pub env: Envelope,
    pub len: u64,
    pub token: u64,
    /// The sender waits to hear that it was matched.
    pub sync: bool,
    pub early: Early<B>,
}

/// All point-to-point state of one rank.
#[derive(Debug)]
pub struct Machine<B> {
    /// Its requests.
    pub requests: Requests<B>,
    /// What it wants done, counts and tells.
    pub out: Outbox<B>,
    /// What it knows of the others.
    pub peers: Peers,
    /// What holds back messages that nobody has asked for.
    pub flow_control: FlowControl,
    pub(super) early: Slab<Message<B>>,
    pub(super) matching: Matching,
    /// The message that was offered last, to whomever.
    pub(super) newest_offer: Option<ReqKey>,
    /// Bytes of unexpected messages that are kept here.
    held: u64,
}

impl<B: Memory> Machine<B> {
    /// A machine that knows `peers` peers, all with the same choice for now.
    pub fn new(peers: usize, choice: Choice) -> Machine<B> {
        Machine {
            requests: Requests::default(),
            out: Outbox::default(),
            peers: Peers::new(peers, choice),
            flow_control: FlowControl::default(),
            early: Slab::new(),
            matching: Matching::new(),
            newest_offer: None,
            held: 0,
        }
    }

    /// The path of a peer is known now: sets what carries messages to it, and its crossing points.
    pub fn set_choice(&mut self, peer: Peer, way: Way, choice: Choice) {
        self.peers.set_choice(peer, way, choice);
    }

    /// Messages that wait for their receive.
    pub fn waiting(&self) -> u64 {
        self.matching.waiting()
    }

    /// Bytes kept of messages that came before their receive.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Receives that wait for their message.
    pub fn posted(&self) -> u64 {
        self.matching.posted()
    }

    /// Puts a message into the table of those whose receive has not come.
    pub(super) fn hold(&mut self, m: Message<B>) -> Key {
        self.count_in(&m);
        self.out
            .counters
            .raise(Counter::UnexpectedHeldPeak, self.held);
        self.early.insert(m)
    }

    /// Puts one back under the key it had.
    pub(super) fn put_back(&mut self, message: Key, m: Message<B>) {
        self.count_in(&m);
        self.early.put_back(message, m);
    }

    fn count_in(&mut self, m: &Message<B>) {
        self.held += m.kept();
        let (requests, out) = (&self.requests, &mut self.out);
        let flow_control = &mut self.flow_control;
        flow_control.kept_more(&mut self.peers, requests, out, m.from, &m.env, m.kept());
    }

    /// Takes one out.
    pub(super) fn let_go(&mut self, message: Key) -> Option<Message<B>> {
        let m = self.early.remove(message)?;
        self.held -= m.kept();
        let flow_control = &mut self.flow_control;
        flow_control.kept_less(&mut self.peers, &mut self.out, &m.env, m.kept());
        Some(m)
    }

    /// Whether a standard send of `len` bytes is a plain eager frame: the owner may then hand `Header` and payload to
    /// the path directly, and report it with [`Machine::sent_eager`].
    #[inline(always)]
    pub fn is_plain_eager(&self, to: Peer, env: Envelope, len: u64) -> bool {
        let p = &self.peers[to];
        p.is_plain() && len <= p.choice.eager_max && p.flow.is_unasked(env)
    }

    /// Whether it is worth looking at what the peer has sent before this message: it is long, and the announcement of
    /// its receive may lie there.
    pub fn may_be_asked(&self, to: Peer, env: Envelope, len: u64) -> bool {
        let p = &self.peers[to];
        p.is_open() && len > p.choice.eager_max && p.choice.announces() && p.flow.is_unasked(env)
    }

    /// A plain eager frame went out (or into the path's queue, then `cookie_of_next` was its cookie and a request is
    /// made for it).
    #[inline(always)]
    pub fn sent_eager(&mut self, to: Peer, env: Envelope, len: u64, queued: Option<&B>) -> Started {
        let peer = &mut self.peers[to];
        peer.flow.sent_unasked(env, None);
        self.flow_control.sent(len);
        self.out.counters.sent(peer.way, Protocol::Eager, len);
        match queued {
            None => Started::Done,
            Some(buf) => {
                self.flow_control.queued(&mut self.peers, to, len);
                let requests = &mut self.requests;
                Started::Request(requests.insert(State::Sending, buf, Some(to), env))
            }
        }
    }

    /// Cookie that a frame must carry whose request [`Machine::sent_eager`] will make.
    #[inline]
    pub fn cookie_of_next(&self) -> u64 {
        self.requests.next_key().to_bits()
    }

    /// Starts a send.
    pub fn send(&mut self, to: Peer, env: Envelope, mode: Mode, buf: &B) -> Started {
        if let Some(why) = &self.peers[to].gone {
            let failure = Failure::PeerGone(why.clone());
            return Started::Request(self.requests.insert_failed(to, env, failure));
        }
        if self.flow_control.must_wait(&self.peers, to, &env) {
            return Started::Request(self.keep_back(to, env, mode, buf));
        }
        let key = self.requests.insert(State::Held, buf, Some(to), env);
        self.launch(key, to, env, mode, buf);
        Started::Request(key)
    }

    /// Sends a message whose turn it is, by the protocol that suits it.
    pub(super) fn launch(&mut self, key: ReqKey, to: Peer, env: Envelope, mode: Mode, buf: &B) {
        let peer = &mut self.peers[to];
        let short = buf.len() <= peer.choice.eager_max && (mode != Mode::Fetched || buf.len() == 0);
        let announced = peer.flow.take_announced(env);
        if announced.is_none() && peer.must_withhold(env, mode, buf.len(), short) {
            return self.withhold(key, to, env, mode);
        }
        let peer = &mut self.peers[to];
        match announced {
            Some(_) => peer.flow.sent_asked(),
            None => {
                let may_answer = mode == Mode::Standard && !short && peer.choice.answers_offers();
                peer.flow.sent_unasked(env, may_answer.then_some(key));
            }
        }
        self.flow_control.sent(buf.len());
        if short {
            return self.send_eager(key, to, env, mode, buf);
        }
        match announced {
            // A synchronous send must know that the receive exists: an announcement may have been cancelled meanwhile.
            Some(token) if mode == Mode::Standard => self.send_write(key, to, env, token, buf),
            _ => self.send_offer(key, to, env, mode, buf),
        }
    }

    /// Starts a receive.
    #[inline]
    pub fn recv(&mut self, want: Pattern, from: Option<Peer>, buf: &B) -> ReqKey {
        self.recv_telling(want, from, buf, buf.len())
    }

    /// Starts a receive of what `from` sends as [`Mode::Fetched`]: it is never announced.
    #[inline]
    pub fn recv_fetched(&mut self, want: Pattern, from: Peer, buf: &B) -> ReqKey {
        self.recv_telling(want, Some(from), buf, 0)
    }

    /// Starts a receive that says to its source that it has `told` bytes, if it says anything.
    #[inline]
    fn recv_telling(&mut self, want: Pattern, from: Option<Peer>, buf: &B, told: u64) -> ReqKey {
        if let Some(message) = self.matching.claim(want) {
            return self.recv_early(message, buf);
        }
        let env = Envelope {
            context: want.context,
            source: 0,
            tag: 0,
        };
        let key = self.requests.insert(State::Posted(want), buf, from, env);
        self.matching.post(want, key);
        self.need(want, from);
        if let Some(p) = from {
            self.after_post(p, want, key, told);
        }
        key
    }

    #[inline]
    fn after_post(&mut self, from: Peer, want: Pattern, key: ReqKey, len: u64) {
        let peer = &self.peers[from];
        if let Some(why) = &peer.gone {
            let failure = Failure::PeerGone(why.clone());
            self.matching.withdraw(want, key);
            self.finish(key, Outcome::failed(failure));
        } else if len >= peer.choice.announce_min {
            self.announce(from, want, key, len);
        }
    }

    /// Takes a message off the queue of unexpected ones (matched probe). `from`: its only possible sender, if known.
    pub fn take_message(&mut self, want: Pattern, from: Option<Peer>) -> Option<(Key, Found)> {
        let Some(key) = self.matching.claim(want) else {
            self.need(want, from);
            return None;
        };
        self.early.get(key).map(|m| (key, m.found()))
    }

    /// A message that [`Machine::recv`] would match now.
    pub fn probe(&mut self, want: Pattern, from: Option<Peer>) -> Option<Found> {
        let Some(key) = self.matching.peek(want) else {
            self.need(want, from);
            return None;
        };
        self.early.get(key).map(|m| m.found())
    }

    /// Receives a message that [`Machine::take_message`] took; `None` when the key names none.
    pub fn recv_message(&mut self, message: Key, buf: &B) -> Option<ReqKey> {
        self.early.get(message)?;
        Some(self.recv_early(message, buf))
    }

    /// Matches a new receive with a message that waits.
    fn recv_early(&mut self, message: Key, buf: &B) -> ReqKey {
        // The key comes from the queue of waiting messages, which names only live ones.
        let m = self
            .let_go(message)
            .expect("a waiting message is in the table");
        let key = self
            .requests
            .insert(State::Landing, buf, Some(m.from), m.env);
        self.requests.matched(key, m.env, m.len);
        if m.sync {
            self.out.control(m.from, Kind::SyncAck, m.token, 0, 0);
        }
        match m.early {
            Early::Whole(kept) => {
                kept.copy_to(buf, m.len.min(buf.len()));
                self.requests.finish_recv(key);
            }
            Early::Landing(..) => self.claim_landing(message, m, key),
            Early::Offer(offer) => self.accept_offer(m.from, m.token, offer, m.len, key),
        }
        key
    }

    /// Ends a request.
    pub(super) fn finish(&mut self, key: ReqKey, outcome: Outcome) {
        if let Some((peer, len)) = self.requests.finish(key, outcome) {
            self.peers[peer].peer_flow.unqueued(len);
        }
    }

    /// A request for something of the owner's own; [`Machine::close`] ends it.
    pub fn open(&mut self) -> ReqKey {
        self.requests.open()
    }

    /// Ends what [`Machine::open`] began.
    pub fn close(&mut self, key: ReqKey, outcome: Outcome) {
        self.finish(key, outcome);
    }

    /// Asks to cancel. Posted receives end at once; sends ask the receiver when it can still answer.
    pub fn cancel(&mut self, key: ReqKey) {
        let Some(req) = self.requests.get_mut(key) else {
            return;
        };
        let (peer, env) = (req.peer, req.env);
        match req.state {
            State::Posted(want) => {
                if self.matching.withdraw(want, key) {
                    self.retract(key);
                    self.finish(key, Outcome::CANCELLED);
                }
            }
            State::Offered { ref mut cancelling } if !*cancelling => {
                *cancelling = true;
                self.send_cancel(peer, env, key);
            }
            State::SendingSync { acked: false, .. } => self.send_cancel(peer, env, key),
            State::Held => self.finish(key, Outcome::CANCELLED),
            _ => {}
        }
    }

    fn send_cancel(&mut self, to: Option<Peer>, env: Envelope, key: ReqKey) {
        let head = header(Kind::Cancel, env, 0, key.to_bits());
        if let Some(to) = to {
            self.out.bare(to, head);
        }
    }

    /// The path has read the payload of a frame.
    pub fn on_sent(&mut self, key: ReqKey) {
        let Some(req) = self.requests.get_mut(key) else {
            return;
        };
        match req.state {
            State::Sending | State::Streaming => self.finish(key, Outcome::CLEAN),
            State::SendingSync { acked: true, .. } => self.finish(key, Outcome::CLEAN),
            State::SendingSync { ref mut sent, .. } => {
                *sent = true;
                if let Some(to) = req.peer {
                    self.peers[to].peer_flow.unqueued(req.buf.len());
                }
            }
            _ => {}
        }
    }

    /// The peer cannot be reached any more: everything that needs it ends with an error.
    pub fn on_gone(&mut self, peer: Peer, why: &str) {
        self.peers[peer].gone = Some(why.to_string());
        self.peers[peer].set_open(false);
        self.flow_control.forget(&mut self.peers, peer);
        self.forget_withheld(peer);
        let needs_it = |r: &Req<B>| r.peer == Some(peer) && r.state != State::Done;
        let reqs = self.requests.iter().filter(|(_, r)| needs_it(r));
        let hit: Vec<ReqKey> = reqs.map(|(key, _)| key).collect();
        for key in hit {
            self.fail(key, why);
        }
    }
}

impl<B> Message<B> {
    /// Bytes of its payload that are kept here.
    fn kept(&self) -> u64 {
        match self.early {
            Early::Offer(_) => 0,
            Early::Whole(_) | Early::Landing(..) => self.len,
        }
    }

    /// Whether it is the offer that its sender knows by this token, and nothing of its payload has come.
    pub(super) fn is_offer(&self, token: u64) -> bool {
        self.token == token && matches!(self.early, Early::Offer(_))
    }

    fn found(&self) -> Found {
        Found {
            source: self.env.source,
            tag: self.env.tag,
            len: self.len,
        }
    }
}
