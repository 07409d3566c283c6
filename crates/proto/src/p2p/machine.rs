//! The machine: requests, queues, peers; what the application asks for.

use super::announce::Flow;
use super::departed::End;
use super::flow_control::{FlowControl, PeerFlow};
use super::rendezvous::Offer;
use super::table::Choice;
use super::{Action, Failure, Found, FrameBody, Memory, NO_COOKIE, Outcome};
use crate::matching::{Envelope, Matching, Pattern};
use crate::wire::{Header, Kind};
use kw_base::counters::{Counter, Counters, Protocol, Way};
use kw_base::events::{Event, MOST_ELEMENTS, Notice, Wanted};
use kw_base::{Key, Peer, Slab};

/// Names a request.
pub type ReqKey = Key;

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

/// Where a request stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Send: kept back, see [`super::flow_control`].
    Held,
    /// Send: the path is still reading the buffer.
    Sending,
    /// Send: as `Sending`, payload whose receive is known.
    Streaming,
    /// Send, synchronous: `sent` and `acked` may come in either order.
    SendingSync { sent: bool, acked: bool },
    /// Send: RTS is out; waits for CTS or FIN.
    Offered { cancelling: bool },
    /// Receive: posted.
    Posted(Pattern),
    /// Receive: matched, payload on its way.
    Landing,
    /// Receive: matched with an offer, which this token of its sender names, and asked for, or being fetched.
    Asked { offer: u64 },
    /// Receive: matched with a message that is itself still landing in its unexpected buffer.
    Claimed,
    /// Something of the owner's own that is no transfer (a collective schedule).
    Open,
    /// Ended; the outcome may be taken.
    Done,
}

impl State {
    /// Whether the message waits in the path's queue.
    fn is_queued(self) -> bool {
        matches!(
            self,
            State::Sending | State::SendingSync { sent: false, .. }
        )
    }
}

#[derive(Debug)]
pub(super) struct Req<B> {
    pub state: State,
    pub buf: B,
    pub peer: Peer,
    /// Envelope of a send (to cancel it).
    pub env: Envelope,
    pub outcome: Outcome,
    /// Nobody will take the outcome.
    pub released: bool,
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

#[derive(Debug)]
pub(super) struct PeerState {
    pub choice: Choice,
    /// What carries messages to it.
    pub way: Way,
    pub flow: Flow,
    pub peer_flow: PeerFlow,
    /// The path refused to fetch or put once: never again for this peer.
    pub get_refused: bool,
    pub gone: Option<String>,
    /// Whether it has called MPI_Finalize.
    pub end: End,
    /// A path was chosen, and it is still there.
    open: bool,
    /// So it is, and no message must wait before it may go there.
    plain: bool,
}

impl PeerState {
    /// Whether it is this rank.
    pub fn is_self(&self) -> bool {
        self.way == Way::Own
    }

    /// Whether a path was chosen and nothing is in the way of messages.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Decides anew whether messages may go straight to the path.
    pub fn set_plain(&mut self) {
        self.plain = self.open && (!self.peer_flow.stalled() || self.is_self());
    }
}

/// All point-to-point state of one rank.
#[derive(Debug)]
pub struct Machine<B> {
    pub(super) reqs: Slab<Req<B>>,
    pub(super) early: Slab<Message<B>>,
    pub(super) matching: Matching,
    pub(super) peers: Vec<PeerState>,
    /// The message that was offered last, to whomever.
    pub(super) newest_offer: Option<ReqKey>,
    /// What must be done next, in order. The owner drains it after every call.
    pub actions: Vec<Action<B>>,
    /// Counts by protocol.
    pub counters: Counters,
    /// Events that are noticed.
    pub wanted: Wanted,
    /// Bytes of unexpected messages that are kept here.
    held: u64,
    pub(super) flow_control: FlowControl,
    /// This rank is in MPI_Finalize.
    pub(super) leaving: bool,
    /// Requests that have not ended, released ones included.
    pub(super) active: usize,
    /// Requests that have ended since the start; tells the owner that somebody may have to be woken.
    pub ended: u64,
}

impl<B: Memory> Machine<B> {
    /// A machine that knows `peers` peers, all with the same choice for now.
    pub fn new(peers: usize, choice: Choice) -> Machine<B> {
        let fresh = || PeerState {
            choice,
            way: Way::default(),
            flow: Flow::new(choice.answers_offers()),
            peer_flow: PeerFlow::default(),
            get_refused: false,
            gone: None,
            end: End::default(),
            open: false,
            plain: false,
        };
        Machine {
            reqs: Slab::new(),
            early: Slab::new(),
            matching: Matching::new(),
            peers: (0..peers).map(|_| fresh()).collect(),
            newest_offer: None,
            actions: Vec::new(),
            counters: Counters::default(),
            wanted: Wanted::default(),
            held: 0,
            flow_control: FlowControl::default(),
            leaving: false,
            active: 0,
            ended: 0,
        }
    }

    /// The path of a peer is known now: sets what carries messages to it, and its crossing points.
    pub fn set_choice(&mut self, peer: Peer, way: Way, choice: Choice) {
        self.peers[peer.idx()].way = way;
        self.peers[peer.idx()].open = true;
        self.peers[peer.idx()].set_plain();
        self.move_choice(peer, choice);
    }

    /// Moves the crossing points of a peer whose path is known; what is under way stays as it is.
    pub fn move_choice(&mut self, peer: Peer, choice: Choice) {
        let peer = &mut self.peers[peer.idx()];
        peer.choice = choice;
        peer.flow.remember(choice.answers_offers());
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

    /// Tells the owner of an event, if its kind is wanted.
    pub fn notice(&mut self, event: Event, data: [i64; MOST_ELEMENTS]) {
        if self.wanted.has(event) {
            let notice = Notice { event, data };
            self.actions.push(Action::Notice(notice));
        }
    }

    /// Puts a message into the table of those whose receive has not come.
    pub(super) fn hold(&mut self, m: Message<B>) -> Key {
        self.held += m.kept();
        self.counters.raise(Counter::UnexpectedHeldPeak, self.held);
        self.kept_more(m.from, &m.env, m.kept());
        self.early.insert(m)
    }

    /// Puts one back under the key it had.
    pub(super) fn put_back(&mut self, message: Key, m: Message<B>) {
        self.held += m.kept();
        self.kept_more(m.from, &m.env, m.kept());
        self.early.put_back(message, m);
    }

    /// Takes one out.
    pub(super) fn let_go(&mut self, message: Key) -> Option<Message<B>> {
        let m = self.early.remove(message)?;
        self.held -= m.kept();
        self.kept_less(&m.env, m.kept());
        Some(m)
    }

    /// The crossing points for one peer.
    pub fn choice(&self, peer: Peer) -> Choice {
        self.peers[peer.idx()].choice
    }

    /// Requests that have not ended.
    #[inline]
    pub fn active(&self) -> usize {
        self.active
    }

    /// Whether a standard send of `len` bytes is a plain eager frame: the owner may then hand `Header` and payload to
    /// the path directly, and report it with [`Machine::sent_eager`].
    #[inline(always)]
    pub fn is_plain_eager(&self, to: Peer, env: Envelope, len: u64) -> bool {
        let p = &self.peers[to.idx()];
        p.plain && len <= p.choice.eager_max && p.flow.is_unasked(env)
    }

    /// Whether it is worth looking at what the peer has sent before this message: it is long, and the announcement of
    /// its receive may lie there.
    pub fn may_be_asked(&self, to: Peer, env: Envelope, len: u64) -> bool {
        let p = &self.peers[to.idx()];
        p.plain && len > p.choice.eager_max && p.choice.announces() && p.flow.is_unasked(env)
    }

    /// A plain eager frame went out (or into the path's queue, then `cookie_of_next` was its cookie and a request is
    /// made for it).
    #[inline(always)]
    pub fn sent_eager(&mut self, to: Peer, env: Envelope, len: u64, queued: Option<&B>) -> Started {
        let peer = &mut self.peers[to.idx()];
        peer.flow.sent_unasked(env, None);
        self.flow_control.sent(len);
        self.counters.sent(peer.way, Protocol::Eager, len);
        match queued {
            None => Started::Done,
            Some(buf) => {
                self.queued(to, len);
                Started::Request(self.insert(State::Sending, buf, to, env))
            }
        }
    }

    /// Cookie that a frame must carry whose request [`Machine::sent_eager`] will make.
    #[inline]
    pub fn cookie_of_next(&self) -> u64 {
        self.reqs.next_key().to_bits()
    }

    #[inline]
    pub(super) fn insert(&mut self, state: State, buf: &B, peer: Peer, env: Envelope) -> ReqKey {
        self.active += (state != State::Done) as usize;
        self.reqs.insert(Req {
            state,
            buf: buf.clone(),
            peer,
            env,
            outcome: Outcome::CLEAN,
            released: false,
        })
    }

    /// Starts a send.
    pub fn send(&mut self, to: Peer, env: Envelope, mode: Mode, buf: &B) -> Started {
        if let Some(why) = &self.peers[to.idx()].gone {
            let failure = Failure::PeerGone(why.clone());
            let key = self.insert(State::Done, buf, to, env);
            self.fail_done(key, failure);
            return Started::Request(key);
        }
        if self.must_wait(to, &env) {
            return Started::Request(self.keep_back(to, env, mode, buf));
        }
        let key = self.insert(State::Held, buf, to, env);
        self.launch(key, to, env, mode, buf);
        Started::Request(key)
    }

    /// Sends a message whose turn it is, by the protocol that suits it.
    pub(super) fn launch(&mut self, key: ReqKey, to: Peer, env: Envelope, mode: Mode, buf: &B) {
        let peer = &mut self.peers[to.idx()];
        let short = buf.len() <= peer.choice.eager_max && (mode != Mode::Fetched || buf.len() == 0);
        let announced = peer.flow.take_announced(env);
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

    pub(super) fn set_state(&mut self, key: ReqKey, state: State) {
        if let Some(r) = self.reqs.get_mut(key) {
            r.state = state;
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
        let key = self.insert(
            State::Posted(want),
            buf,
            from.unwrap_or(Peer(u32::MAX)),
            env,
        );
        self.matching.post(want, key);
        self.need(want, from);
        if let Some(p) = from {
            self.after_post(p, want, key, told);
        }
        key
    }

    #[inline]
    fn after_post(&mut self, from: Peer, want: Pattern, key: ReqKey, len: u64) {
        let peer = &self.peers[from.idx()];
        if let Some(why) = &peer.gone {
            let failure = Failure::PeerGone(why.clone());
            self.matching.withdraw(want, key);
            self.finish(
                key,
                Outcome {
                    failure: Some(failure),
                    ..Outcome::CLEAN
                },
            );
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
        let key = self.insert(State::Landing, buf, m.from, m.env);
        self.matched(key, m.env, m.len);
        if m.sync {
            self.control(m.from, Kind::SyncAck, m.token, 0, 0);
        }
        match m.early {
            Early::Whole(kept) => {
                kept.copy_to(buf, m.len.min(buf.len()));
                self.finish_recv(key);
            }
            Early::Landing(..) => self.claim_landing(message, m, key),
            Early::Offer(offer) => self.accept_offer(m.from, m.token, offer, m.len, key),
        }
        key
    }

    /// Writes envelope and length of the matched message into the receive's outcome.
    #[inline]
    pub(super) fn matched(&mut self, key: ReqKey, env: Envelope, len: u64) {
        let Some(req) = self.reqs.get_mut(key) else {
            return;
        };
        let fits = req.buf.len();
        req.outcome.source = env.source;
        req.outcome.tag = env.tag;
        req.outcome.len = len.min(fits);
        if len > fits {
            req.outcome.failure = Some(Failure::Truncated { came: len, fits });
        }
    }

    /// A frame without payload.
    pub(super) fn control(&mut self, to: Peer, kind: Kind, token: u64, aux: u64, len: u64) {
        let head = Header {
            kind,
            context: 0,
            source: 0,
            tag: 0,
            len,
            token,
        }
        .with_aux(aux);
        self.actions.push(Action::Frame {
            to,
            head,
            body: FrameBody::None,
            cookie: NO_COOKIE,
        });
    }

    /// Ends a receive whose outcome [`Machine::matched`] has written.
    #[inline]
    pub(super) fn finish_recv(&mut self, key: ReqKey) {
        let Some(req) = self.reqs.get_mut(key) else {
            return;
        };
        req.state = State::Done;
        self.ended(key);
    }

    /// Ends a request.
    pub(super) fn finish(&mut self, key: ReqKey, outcome: Outcome) {
        let Some(req) = self.reqs.get_mut(key) else {
            return;
        };
        req.outcome = outcome;
        let before = std::mem::replace(&mut req.state, State::Done);
        if before.is_queued() {
            let (peer, len) = (req.peer, req.buf.len());
            self.unqueued(peer, len);
        }
        self.ended(key);
    }

    /// A request for something of the owner's own; [`Machine::close`] ends it.
    pub fn open(&mut self) -> ReqKey {
        let env = Envelope {
            context: 0,
            source: 0,
            tag: 0,
        };
        self.insert(State::Open, &B::nothing(), Peer(u32::MAX), env)
    }

    /// Ends what [`Machine::open`] began.
    pub fn close(&mut self, key: ReqKey, outcome: Outcome) {
        self.finish(key, outcome);
    }

    #[inline]
    pub(super) fn ended(&mut self, key: ReqKey) {
        self.active -= 1;
        self.ended += 1;
        match self.reqs.get_mut(key) {
            Some(req) if req.released => {
                self.reqs.remove(key);
            }
            Some(req) => {
                req.buf = B::nothing();
            }
            None => {}
        }
    }

    fn fail_done(&mut self, key: ReqKey, failure: Failure) {
        if let Some(req) = self.reqs.get_mut(key) {
            req.outcome.failure = Some(failure);
        }
    }

    /// Whether a request has ended (a dead key has).
    #[inline]
    pub fn is_done(&self, key: ReqKey) -> bool {
        self.reqs.get(key).is_none_or(|r| r.state == State::Done)
    }

    /// The outcome of a request that has ended.
    pub fn peek(&self, key: ReqKey) -> Option<&Outcome> {
        self.reqs
            .get(key)
            .filter(|r| r.state == State::Done)
            .map(|r| &r.outcome)
    }

    /// Takes the outcome of a request that has ended.
    #[inline]
    pub fn take(&mut self, key: ReqKey) -> Option<Outcome> {
        if self.reqs.get(key)?.state != State::Done {
            return None;
        }
        self.reqs.remove(key).map(|r| r.outcome)
    }

    /// Forgets a request; it goes on.
    pub fn release(&mut self, key: ReqKey) {
        match self.reqs.get_mut(key) {
            Some(r) if r.state == State::Done => {
                self.reqs.remove(key);
            }
            Some(r) => r.released = true,
            None => {}
        }
    }

    /// Asks to cancel. Posted receives end at once; sends ask the receiver when it can still answer.
    pub fn cancel(&mut self, key: ReqKey) {
        let Some(req) = self.reqs.get_mut(key) else {
            return;
        };
        let (peer, env) = (req.peer, req.env);
        match req.state {
            State::Posted(want) => {
                if self.matching.withdraw(want, key) {
                    self.retract(peer, key);
                    self.finish(
                        key,
                        Outcome {
                            cancelled: true,
                            ..Outcome::CLEAN
                        },
                    );
                }
            }
            State::Offered { ref mut cancelling } if !*cancelling => {
                *cancelling = true;
                self.send_cancel(peer, env, key);
            }
            State::SendingSync { acked: false, .. } => self.send_cancel(peer, env, key),
            State::Held => self.finish(
                key,
                Outcome {
                    cancelled: true,
                    ..Outcome::CLEAN
                },
            ),
            _ => {}
        }
    }

    fn send_cancel(&mut self, to: Peer, env: Envelope, key: ReqKey) {
        let head = Header {
            kind: Kind::Cancel,
            context: env.context,
            source: env.source,
            tag: env.tag,
            len: 0,
            token: key.to_bits(),
        };
        self.actions.push(Action::Frame {
            to,
            head,
            body: FrameBody::None,
            cookie: NO_COOKIE,
        });
    }

    /// The path has read the payload of a frame.
    pub fn on_sent(&mut self, cookie: u64) {
        if cookie == NO_COOKIE {
            return;
        }
        let key = Key::from_bits(cookie);
        let Some(req) = self.reqs.get_mut(key) else {
            return;
        };
        match req.state {
            State::Sending | State::Streaming => self.finish(key, Outcome::CLEAN),
            State::SendingSync { acked: true, .. } => self.finish(key, Outcome::CLEAN),
            State::SendingSync { ref mut sent, .. } => {
                *sent = true;
                let (peer, len) = (req.peer, req.buf.len());
                self.unqueued(peer, len);
            }
            _ => {}
        }
    }

    /// The peer cannot be reached any more: everything that needs it ends with an error.
    pub fn on_gone(&mut self, peer: Peer, why: &str) {
        self.peers[peer.idx()].gone = Some(why.to_string());
        self.peers[peer.idx()].open = false;
        self.peers[peer.idx()].set_plain();
        self.forget_held(peer);
        let needs_it = |r: &Req<B>| r.peer == peer && r.state != State::Done;
        let reqs = self.reqs.iter().filter(|(_, r)| needs_it(r));
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
