//! The receiver: receives and probes of this rank, and the messages that arrive for them. Its part
//! of each protocol is in that protocol's file.

use super::destination::{Destination, Target};
use super::flow_control::HighWater;
use super::peers::Peers;
use super::unexpected::{Early, Message, Unexpected};
use crate::endpoint::{Failure, Found, Memory, Outbox, Outcome, Refused};
use crate::endpoint::{ReqId, Requests, State, envelope};
use crate::matching::{Envelope, Matching, Pattern};
use crate::wire::{Header, Kind};
use kw_base::counters::Counter;
use kw_base::events::Event;
use kw_base::{Key, Peer};

/// Posted receives and messages that came before theirs.
#[derive(Debug)]
pub struct Receiving<B> {
    pub(super) matching: Matching,
    pub(super) unexpected: Unexpected<B>,
    pub(super) high_water: HighWater,
}

/// A message that came before its receive.
#[derive(Clone, Copy, Debug)]
pub struct Unreceived<'a, B> {
    /// The sender.
    pub from: Peer,
    /// Its envelope.
    pub env: Envelope,
    /// Its bytes.
    pub len: u64,
    /// Its payload, if that is here.
    pub payload: Option<&'a B>,
}

impl<B> Default for Receiving<B> {
    fn default() -> Self {
        Receiving {
            matching: Matching::new(),
            unexpected: Unexpected::default(),
            high_water: HighWater::default(),
        }
    }
}

impl<B> Receiving<B> {
    /// Messages that wait for their receive.
    pub fn waiting(&self) -> u64 {
        self.matching.waiting()
    }

    /// Bytes kept of messages that came before their receive.
    pub fn kept(&self) -> u64 {
        self.unexpected.bytes()
    }

    /// Receives that wait for their message.
    pub fn posted(&self) -> u64 {
        self.matching.posted()
    }

    /// The messages that came before their receive.
    pub fn unexpected(&self) -> impl Iterator<Item = Unreceived<'_, B>> {
        self.unexpected.iter().map(|m| Unreceived {
            from: m.from,
            env: m.env,
            len: m.len,
            payload: match &m.early {
                Early::Whole(payload) => Some(payload),
                Early::Arriving(..) | Early::Offer(_) => None,
            },
        })
    }

    /// Whether the payload of one of them is still on its way.
    pub(crate) fn is_arriving(&self) -> bool {
        let mut all = self.unexpected.iter();
        all.any(|m| matches!(m.early, Early::Arriving(..)))
    }

    /// Whether a whole eager message in a context in which no receive is posted may be taken past
    /// the queues: no message waits before it.
    #[inline(always)]
    pub fn may_take_unasked(&self) -> bool {
        self.matching.waiting() == 0 && !self.is_pausing()
    }

    /// Whether any peer was told to pause.
    #[inline]
    pub fn is_pausing(&self) -> bool {
        self.high_water.is_pausing()
    }
}

/// The receiving half of a [`super::P2p`], for one call or event. It knows nothing of this rank's
/// sends.
#[derive(Debug)]
pub struct Receiver<'a, B> {
    pub(super) receiving: &'a mut Receiving<B>,
    pub(super) requests: &'a mut Requests<B>,
    pub(super) peers: &'a mut Peers,
    pub(super) out: &'a mut Outbox<B>,
}

/// A message that [`Receiver::take_data`] took.
#[derive(Debug)]
pub enum TakenMessage<B> {
    /// All of its data.
    Whole(B),
    /// For [`Receiver::recv_message`].
    Partial(Key),
}

/// Calls.
impl<B: Memory> Receiver<'_, B> {
    /// Starts a receive.
    #[inline]
    pub fn recv(&mut self, want: Pattern, from: Option<Peer>, buf: B) -> ReqId {
        let announced = buf.len();
        self.recv_announcing(want, from, buf, announced)
    }

    /// Starts a receive of a message that `from` sends as [`super::Mode::Fetched`]: it is never
    /// announced.
    #[inline]
    pub fn recv_fetched(&mut self, want: Pattern, from: Peer, buf: B) -> ReqId {
        self.recv_announcing(want, Some(from), buf, 0)
    }

    /// Starts a receive that is announced to its source with `announced` bytes, if it is announced.
    #[inline]
    fn recv_announcing(
        &mut self,
        want: Pattern,
        from: Option<Peer>,
        buf: B,
        announced: u64,
    ) -> ReqId {
        if let Some(message) = self.receiving.matching.claim(want) {
            return self.recv_early(message, &buf);
        }
        let eager = from.is_some_and(|p| self.peers[p].sends_eagerly(buf.len()));
        let key = self.requests.insert_posted(want, buf, from, eager);
        self.receiving.matching.post(want, key.0);
        self.need(want, from);
        if let Some(p) = from {
            self.after_post(p, want, key, announced);
        }
        key
    }

    #[inline]
    fn after_post(&mut self, from: Peer, want: Pattern, key: ReqId, len: u64) {
        let peer = &self.peers[from];
        if let Some(why) = &peer.gone {
            let failure = Failure::PeerGone(why.clone());
            self.receiving.matching.withdraw(want, key.0);
            self.finish(key, Outcome::failed(failure));
        } else if len >= peer.messages.choice.announce_min && !peer.keeps_quiet(want.context) {
            self.announce(from, want, key, len);
        }
    }

    /// Takes a message off the queue of unexpected ones (matched probe). `from`: its only possible
    /// sender, if known.
    pub fn take_message(&mut self, want: Pattern, from: Option<Peer>) -> Option<(Key, Found)> {
        let Some(key) = self.receiving.matching.claim(want) else {
            self.need(want, from);
            return None;
        };
        let message = self.receiving.unexpected.get(key);
        message.map(|m| (key, m.found()))
    }

    /// Takes a message like [`Receiver::take_message`], and its data if all of it is here: then no
    /// receive is needed. For queues whose messages are mostly short.
    pub fn take_data(&mut self, want: Pattern) -> Option<(TakenMessage<B>, Found)> {
        let (key, found) = self.take_message(want, None)?;
        let whole = |m: &Message<B>| {
            let plain = !m.sync && m.token == 0;
            plain && matches!(m.early, Early::Whole(_))
        };
        if !self.receiving.unexpected.get(key).is_some_and(whole) {
            return Some((TakenMessage::Partial(key), found));
        }
        match self.let_go(key)?.early {
            Early::Whole(data) => Some((TakenMessage::Whole(data), found)),
            _ => None,
        }
    }

    /// A message that [`Receiver::recv`] would match now.
    pub fn probe(&mut self, want: Pattern, from: Option<Peer>) -> Option<Found> {
        let Some(key) = self.receiving.matching.peek(want) else {
            self.need(want, from);
            return None;
        };
        self.receiving.unexpected.get(key).map(|m| m.found())
    }

    /// Receives a message that [`Receiver::take_message`] took; `None` when the key names none.
    pub fn recv_message(&mut self, message: Key, buf: &B) -> Option<ReqId> {
        self.receiving.unexpected.get(message)?;
        Some(self.recv_early(message, buf))
    }

    /// Matches a new receive with a message that waits.
    fn recv_early(&mut self, message: Key, buf: &B) -> ReqId {
        // The key comes from the queue of waiting messages, which names only live ones.
        let m = self
            .let_go(message)
            .expect("a waiting message is in the table");
        let key = self
            .requests
            .insert(State::Arriving, buf.clone(), Some(m.from), m.env);
        let signature = match &m.early {
            Early::Offer(offer) => offer.signature,
            _ if m.sync => 0,
            _ => m.token as u32,
        };
        if signature != 0 {
            self.requests.compare_types(key, m.env, signature, m.len);
        }
        self.requests.matched(key, m.env, m.len);
        if m.sync {
            self.out.control(m.from, Kind::SyncAck, m.token, 0, 0);
        }
        match m.early {
            Early::Whole(kept) => {
                kept.copy_to(buf, m.len.min(buf.len()));
                self.requests.finish_recv(key);
            }
            Early::Arriving(..) => self.claim_arriving(message, m, key),
            Early::Offer(offer) => self.accept_offer(m.from, m.token, offer, m.len, key),
        }
        key
    }

    /// Takes back a posted receive.
    pub(crate) fn cancel(&mut self, key: ReqId, want: Pattern) {
        if self.receiving.matching.withdraw(want, key.0) {
            self.retract(key);
            self.finish(key, Outcome::CANCELLED);
        }
    }

    pub(super) fn finish(&mut self, key: ReqId, outcome: Outcome) {
        super::finish(self.requests, self.peers, key, outcome);
    }

    /// The program waits and nothing comes: every peer may send a further portion.
    pub fn let_through(&mut self) {
        let high_water = &mut self.receiving.high_water;
        high_water.let_through(self.peers, self.out);
    }

    /// A receive was posted, or a probe found nothing: a paused sender that may have the message
    /// resumes.
    #[inline]
    fn need(&mut self, want: Pattern, from: Option<Peer>) {
        let high_water = &mut self.receiving.high_water;
        high_water.need(self.peers, self.out, want, from);
    }
}

/// Messages that come before their receive.
impl<B: Memory> Receiver<'_, B> {
    pub(super) fn store(&mut self, from: Peer, head: &Header, sync: bool, early: Early<B>) -> Key {
        let env = envelope(head);
        let message = Message {
            from,
            env,
            len: head.len,
            token: head.token,
            sync,
            early,
        };
        self.note_kept(&message);
        let key = self.receiving.unexpected.insert(message);
        let held = self.receiving.unexpected.bytes();
        self.out.counters.raise(Counter::UnexpectedHeldPeak, held);
        self.receiving.matching.store(env, key);
        self.note_unexpected(from, &env, head.len);
        key
    }

    /// Puts a message back under the key it had.
    pub(super) fn put_back(&mut self, key: Key, m: Message<B>) {
        self.note_kept(&m);
        self.receiving.unexpected.put_back(key, m);
    }

    fn note_kept(&mut self, m: &Message<B>) {
        let (peers, requests, out) = (&mut *self.peers, &*self.requests, &mut *self.out);
        let high_water = &mut self.receiving.high_water;
        high_water.kept_more(peers, requests, out, m.from, &m.env, m.kept());
    }

    /// Takes a message out.
    pub(super) fn let_go(&mut self, message: Key) -> Option<Message<B>> {
        let m = self.receiving.unexpected.remove(message)?;
        let high_water = &mut self.receiving.high_water;
        high_water.kept_less(self.peers, self.out, &m.env, m.kept());
        Some(m)
    }

    fn note_unexpected(&mut self, from: Peer, env: &Envelope, len: u64) {
        let counters = &mut self.out.counters;
        counters.hit(Counter::Unexpected);
        counters.add(Counter::UnexpectedBytes, len);
        let waiting = self.receiving.matching.waiting();
        counters.raise(Counter::UnexpectedWaitingPeak, waiting);
        let (context, tag) = (env.context as i64, env.tag as i64);
        let data = [from.0 as i64, context, tag, len as i64];
        self.out.record(Event::UnexpectedMessage, data);
    }

    /// A receive claims a message that is still arriving: the receive keeps its place in the table
    /// until the message has arrived.
    fn claim_arriving(&mut self, old: Key, mut m: Message<B>, req: ReqId) {
        if let Early::Arriving(_, claimed) = &mut m.early {
            *claimed = Some(req);
        }
        if let Some(r) = self.requests.get_mut(req) {
            r.state = State::Claimed;
        }
        self.put_back(old, m);
    }

    /// Its sender wants to take a message back: answers whether no receive has claimed it yet.
    pub(super) fn on_cancel(&mut self, from: Peer, head: &Header) {
        let env = envelope(head);
        let hit = self.receiving.unexpected.cancelled(from, env, head.token);
        let gone = hit.filter(|&key| self.receiving.matching.forget(env, key));
        if let Some(key) = gone {
            self.let_go(key);
        }
        let gone = gone.is_some() as u64;
        self.out.control(from, Kind::CancelAck, head.token, 0, gone);
    }
}

/// Payload.
impl<B: Memory> Receiver<'_, B> {
    /// A header whose payload follows.
    pub fn on_head(&mut self, from: Peer, head: &Header) -> Result<Destination<B>, Refused> {
        match head.kind {
            Kind::Data => self.data_destination(from, head),
            Kind::Write => self.write_destination(from, head),
            _ => self.message_destination(from, head),
        }
    }

    /// A whole frame with payload.
    pub(super) fn on_payload(
        &mut self,
        from: Peer,
        head: &Header,
        body: &[u8],
    ) -> Result<(), Refused> {
        let Destination { target, buf } = self.on_head(from, head)?;
        buf.write(0, body);
        self.on_body(target);
        Ok(())
    }

    /// Payload goes straight into a receive's buffer.
    pub(super) fn land_in(
        &mut self,
        key: ReqId,
        from: Peer,
        env: Envelope,
        len: u64,
    ) -> Destination<B> {
        self.requests.matched(key, env, len);
        match self.requests.get_mut(key) {
            Some(req) => {
                req.state = State::Arriving;
                req.peer = Some(from);
                Destination {
                    target: Target::Request(key),
                    buf: req.buf.clone(),
                }
            }
            None => Destination::nowhere(),
        }
    }

    /// The payload of a destination is in place.
    pub fn on_body(&mut self, target: Target) {
        match target {
            Target::Request(key) => self.requests.finish_recv(key),
            Target::Early(key) => self.early_arrived(key),
            Target::Nowhere => {}
        }
    }

    fn early_arrived(&mut self, key: Key) {
        let Some((req, kept)) = self.receiving.unexpected.on_body(key) else {
            return;
        };
        let len = self.let_go(key).map_or(0, |m| m.len);
        if let Some(r) = self.requests.get(req) {
            kept.copy_to(&r.buf, len.min(r.buf.len()));
        }
        self.requests.finish_recv(req);
    }
}
