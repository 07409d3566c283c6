//! Write: the receiver tells where a message goes before it is sent; the sender writes it straight
//! into place.
//!
//! This is the SR ("send with remote write") protocol of seeds 000, with two rules that keep MPI's
//! matching order:
//!
//! 1. A receive is announced only if no earlier posted receive that could take the same message is
//!    unannounced ([`crate::matching::Matching::announce`]).
//! 2. An announcement carries how many messages its sender (the receiver) has seen from the other
//!    side. The other side remembers the envelopes of those that it has sent since and that took no
//!    announced receive. The first of them that fits the announced receive will be matched with it:
//!    the announcement is used up. If that message was offered, the announcement answers the offer,
//!    and its payload goes at once; the CTS that follows is ignored. Messages of other
//!    communicators and tags do not matter.
//!
//! If the envelopes were forgotten, or the peer has announced too many, an announcement is dropped.
//! So that a dropped announcement does not let a later one overtake it, each carries a number and
//! the oldest number still posted; a peer that has dropped one at least that old also drops this
//! one.
//!
//! The sender's picture is wrong in one case: a receive was cancelled after it was announced. Then
//! the sender takes a message for the cancelled receive's, and the receiver gives it to a later
//! one, or keeps it. So a `Write` whose receive is no longer posted is matched by its envelope like
//! any other message, and a `Data` names, besides the receive, the offer that it belongs to, by
//! which its true receive is found ([`Receiver::stray_destination`]).
//!
//! An offer whose payload the receiver may fetch is not answered by an announcement, nor is a
//! synchronous one: both wait for the receiver's answer.
//!
//! An announcement costs a frame, and gains nothing if the messages are too short for a handshake.
//! Announcing is given up for a peer after [`MISSES`] such messages in a row, until a long one
//! comes.
//!
//! Body of `Announce`: number (u32), oldest posted number (u32), messages seen (u64). Header:
//! context, tag (MPI_ANY_TAG as the smallest integer), capacity in `len`, receive in `token`, its
//! source rank in `source`.

use super::destination::{Destination, Target};
use super::eager::room;
use super::flow_control::is_p2p;
use super::receiver::Receiver;
use super::sender::Sender;
use super::unexpected::Early;
use crate::endpoint::{FrameBody, Memory, Refused, Req, ReqId, State, envelope, header};
use crate::matching::{Envelope, Pattern};
use crate::wire::{EXTENSION_LEN, Header, Kind};
use kw_base::Peer;
use kw_base::counters::{Counter, Protocol};
use std::collections::VecDeque;

/// How a wildcard tag is written in an announcement.
const ANY_TAG: i32 = i32::MIN;
/// Announcements kept for one peer; further ones are dropped.
const MAX_ANNOUNCED: usize = 256;
/// Envelopes of sent messages kept for one peer; older ones are forgotten first.
const REMEMBERED: usize = 64;
/// After this many announced receives in a row that matched a short message, an announcement costs
/// a frame and gains nothing.
const MISSES: u32 = 4;

/// A receive that a peer has announced.
#[derive(Clone, Copy, Debug)]
struct Announced {
    number: u32,
    context: u32,
    /// The source rank that the receive names: this rank, in that communicator.
    source: u32,
    tag: i32,
    token: u64,
}

impl Announced {
    fn accepts(&self, env: Envelope) -> bool {
        let tag = self.tag == env.tag || self.tag == ANY_TAG && env.tag >= 0;
        tag && self.context == env.context && self.source == env.source
    }
}

/// A message that was sent before any receive was announced that it could have taken.
#[derive(Clone, Copy, Debug)]
struct Unasked {
    /// Its number among all messages to the peer.
    number: u64,
    env: Envelope,
    /// Its request, if an announcement may answer it.
    offer: Option<ReqId>,
}

/// State of this rank as a sender for the receives that one peer has announced, and for its own
/// messages that may match them.
#[derive(Debug)]
pub(super) struct TheirReceives {
    /// Messages sent to the peer.
    sent: u64,
    /// Whether sent messages are remembered.
    remembers: bool,
    /// Messages that the peer may not have seen and that took no announced receive, oldest first.
    unasked: VecDeque<Unasked>,
    /// Up to this number messages are not remembered.
    forgotten: u64,
    /// The peer announces receives of at least this many bytes; `None`: it has not announced any.
    asks_from: Option<u64>,
    /// The announced receives, oldest first.
    announced: VecDeque<Announced>,
    /// Newest announcement that was dropped; zero: none was.
    dropped: u32,
}

/// The receives that this rank has announced to one peer.
#[derive(Debug, Default)]
pub(super) struct OurReceives {
    /// Messages that came from the peer.
    pub seen: u64,
    /// The receives that are still posted, oldest first.
    posted: VecDeque<(u32, ReqId)>,
    /// Number of the newest one.
    number: u32,
    /// Consecutive announced receives that a short message took.
    missed: u32,
}

/// Consequence of an announcement for the messages of this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It is dropped: which message its receive will take is not known.
    Dropped,
    /// A message that is in flight takes the receive; its request, if it was offered.
    Taken(Option<ReqId>),
    /// A message that is yet to be sent takes it.
    Open,
}

impl TheirReceives {
    /// Before the first message. For `remembers` see [`TheirReceives::remember`].
    pub fn new(remembers: bool) -> TheirReceives {
        TheirReceives {
            sent: 0,
            remembers,
            unasked: VecDeque::new(),
            forgotten: 0,
            asks_from: None,
            announced: VecDeque::new(),
            dropped: 0,
        }
    }

    /// From now on sent messages are remembered, or no more. They are if announcements may come and
    /// an offer waits for the receiver's answer alone.
    pub fn remember(&mut self, wanted: bool) {
        if self.remembers != wanted {
            self.remembers = wanted;
            self.forgotten = self.sent;
            self.unasked.clear();
        }
    }

    /// A message was sent that took no announced receive.
    #[inline(always)]
    pub fn sent_unasked(&mut self, env: Envelope, offer: Option<ReqId>) {
        self.sent += 1;
        if self.remembers {
            self.note(env, offer);
        }
    }

    fn note(&mut self, env: Envelope, offer: Option<ReqId>) {
        if self.unasked.len() == REMEMBERED
            && let Some(old) = self.unasked.pop_front()
        {
            self.forgotten = old.number;
        }
        self.unasked.push_back(Unasked {
            number: self.sent,
            env,
            offer,
        });
    }

    /// A message was sent that took an announced receive.
    pub fn sent_asked(&mut self) {
        self.sent += 1;
    }

    /// Forgets messages that the peer has seen; returns whether all others are remembered.
    fn knows_since(&mut self, seen: u64) -> bool {
        while self.unasked.front().is_some_and(|m| m.number <= seen) {
            self.unasked.pop_front();
        }
        let forgotten = if self.remembers {
            self.forgotten
        } else {
            self.sent
        };
        seen >= forgotten
    }

    /// Whether no announced receive takes a message with this envelope.
    #[inline(always)]
    pub fn is_unasked(&self, env: Envelope) -> bool {
        self.announced.is_empty() || !self.asks(env)
    }

    fn asks(&self, env: Envelope) -> bool {
        self.announced.iter().any(|a| a.accepts(env))
    }

    /// Whether the receive of such a message will be announced, if it is as long: the peer
    /// announces receives of this length, and none that is posted before this one stays
    /// unannounced, because no message is in flight that could take it.
    pub fn is_sure_to_ask(&self, env: Envelope, len: u64) -> bool {
        let long = self.asks_from.is_some_and(|least| len >= least);
        long && self.unasked.iter().all(|m| m.env != env)
    }

    /// The peer did not announce a receive as it should have.
    pub fn expect_nothing(&mut self) {
        self.asks_from = None;
    }

    /// Forgets announced receives that are no longer posted: they were cancelled.
    fn prune(&mut self, oldest: u32) {
        let ended = |a: &Announced| (a.number.wrapping_sub(oldest) as i32) < 0;
        while self.announced.front().is_some_and(ended) {
            self.announced.pop_front();
        }
    }

    /// The announced receive that a message with this envelope will match, taken off the list.
    pub fn take(&mut self, env: Envelope) -> Option<u64> {
        let i = self.announced.iter().position(|a| a.accepts(env))?;
        self.announced.remove(i).map(|a| a.token)
    }

    /// The peer has announced a receive. `oldest`: number of its oldest that is still posted;
    /// `seen`: how many of our messages it had seen; `len`: bytes of the receive.
    fn on_announce(&mut self, asked: Announced, oldest: u32, seen: u64, len: u64) -> Verdict {
        self.prune(oldest);
        self.asks_from = Some(self.asks_from.map_or(len, |least| least.min(len)));
        let known = self.knows_since(seen) && self.announced.len() < MAX_ANNOUNCED;
        if !known || self.dropped != 0 && self.dropped.wrapping_sub(oldest) as i32 >= 0 {
            // Kept announcements stay: the receiver posted them earlier.
            self.dropped = asked.number;
            return Verdict::Dropped;
        }
        let taken = self.unasked.iter().position(|m| asked.accepts(m.env));
        match taken.and_then(|i| self.unasked.remove(i)) {
            Some(message) => Verdict::Taken(message.offer),
            None => Verdict::Open,
        }
    }
}

impl OurReceives {
    /// Announces a receive: returns its number, and the oldest one that is still posted.
    fn add(&mut self, key: ReqId) -> (u32, u32) {
        self.number = self.number.wrapping_add(1);
        self.posted.push_back((self.number, key));
        let oldest = self.posted.front().map_or(self.number, |p| p.0);
        (self.number, oldest)
    }

    /// A receive is not posted any more. Returns whether it was announced.
    fn remove(&mut self, key: ReqId) -> bool {
        let before = self.posted.len();
        self.posted.retain(|&(_, k)| k != key);
        before != self.posted.len()
    }

    /// Whether too many consecutive announcements were of no use.
    fn is_in_vain(&self) -> bool {
        self.missed >= MISSES
    }

    /// A receive was matched by a message's envelope. `short`: announcing it was of no use.
    #[inline]
    pub(super) fn taken_by_envelope(&mut self, key: ReqId, short: bool) {
        if !self.posted.is_empty() {
            self.missed += self.remove(key) as u32;
        }
        if !short {
            self.missed = 0;
        }
    }

    /// A message came for an announced receive.
    fn taken(&mut self, key: ReqId) {
        self.seen += 1;
        self.missed = 0;
        self.remove(key);
    }
}

impl<B: Memory> Sender<'_, B> {
    /// The peer announced a receive.
    pub(super) fn on_announce(
        &mut self,
        from: Peer,
        head: &Header,
        body: &[u8],
    ) -> Result<(), Refused> {
        let Some(body) = body.first_chunk::<EXTENSION_LEN>() else {
            return Err(Refused::Short(head.kind, body.len()));
        };
        let word = |i: usize| u32::from_le_bytes([body[i], body[i + 1], body[i + 2], body[i + 3]]);
        let (number, oldest) = (word(0), word(4));
        let seen = word(8) as u64 | (word(12) as u64) << 32;
        let asked = Announced {
            number,
            context: head.context,
            source: head.source,
            tag: head.tag,
            token: head.token,
        };
        let theirs = &mut self.peers[from].messages.theirs;
        match theirs.on_announce(asked, oldest, seen, head.len) {
            Verdict::Taken(offer) => self.use_up(from, asked.token, offer),
            Verdict::Dropped => {
                self.out.counters.hit(Counter::WriteDropped);
                self.offer_deferred_to(from);
            }
            Verdict::Open => {
                if !self.write_deferred(from, asked.token, |env| asked.accepts(env)) {
                    self.peers[from].messages.theirs.announced.push_back(asked);
                }
            }
        }
        Ok(())
    }

    /// An announced receive will take a message that is in flight; if that is an offer, its payload
    /// need not wait.
    fn use_up(&mut self, to: Peer, token: u64, offer: Option<ReqId>) {
        let waits = |r: &&mut Req<B>| r.state == State::Offered { cancelling: false };
        let Some((key, req)) =
            offer.and_then(|k| Some((k, self.requests.get_mut(k).filter(waits)?)))
        else {
            self.out.counters.hit(Counter::WriteDropped);
            return;
        };
        let len = req.buf.len();
        self.send_data(key, to, token, len, Protocol::Write);
    }

    /// Sends a message into an announced receive.
    pub(super) fn send_write(&mut self, key: ReqId, to: Peer, env: Envelope, token: u64, buf: &B) {
        let head = header(Kind::Write, env, buf.len(), token);
        self.stream(key, to, head, Protocol::Write);
    }
}

impl<B: Memory> Receiver<'_, B> {
    /// Announces a receive that was just posted, if the rules allow it.
    pub(super) fn announce(&mut self, to: Peer, want: Pattern, key: ReqId, capacity: u64) {
        let ours = &mut self.peers[to].messages.ours;
        // The sender of a message of a collective may rely on the announcement.
        let in_vain = ours.is_in_vain() && is_p2p(want.context);
        if in_vain || !self.receiving.matching.announce(want, key.0) {
            return;
        }
        let (number, oldest) = ours.add(key);
        let mut body = [0; EXTENSION_LEN];
        body[..4].copy_from_slice(&number.to_le_bytes());
        body[4..8].copy_from_slice(&oldest.to_le_bytes());
        body[8..].copy_from_slice(&ours.seen.to_le_bytes());
        let env = Envelope {
            context: want.context,
            source: want.source.unwrap_or(0),
            tag: want.tag.unwrap_or(ANY_TAG),
        };
        let head = header(Kind::Announce, env, capacity, key.to_bits());
        self.out.counters.hit(Counter::WriteAnnounced);
        self.out.extended(to, head, FrameBody::Extension(body));
    }

    /// An announced receive is not posted any more.
    pub(super) fn retract(&mut self, key: ReqId) {
        if let Some(peer) = self.requests.get(key).and_then(|r| r.peer) {
            self.peers[peer].messages.ours.remove(key);
        }
    }

    /// A posted receive was matched by a message's envelope: forgets that it was announced.
    /// `short`: announcing it was of no use, because the message is no longer than those that are
    /// sent at once.
    #[inline]
    pub(super) fn taken_by_envelope(&mut self, key: ReqId, short: bool) {
        if let Some(peer) = self.requests.get(key).and_then(|r| r.peer) {
            self.peers[peer].messages.ours.taken_by_envelope(key, short);
        }
    }

    /// A message comes for an announced receive.
    pub(super) fn write_destination(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Destination<B>, Refused> {
        let key = ReqId::from_bits(head.token);
        let posted = match self.requests.get(key) {
            Some(req) if req.peer == Some(from) => match req.state {
                State::Posted(want) => Some(want),
                _ => None,
            },
            _ => None,
        };
        match posted {
            Some(want) if self.receiving.matching.withdraw(want, key.0) => {
                self.peers[from].messages.ours.taken(key);
                self.out.counters.hit(Counter::Expected);
                Ok(self.land_in(key, from, envelope(head), head.len))
            }
            _ => self.message_destination(from, head),
        }
    }

    /// Payload of an offer that its sender took for the message of a cancelled receive: returns
    /// where it goes instead.
    #[cold]
    pub(super) fn stray_destination(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Destination<B>, Refused> {
        let offer = head.aux();
        let waits = |r: &Req<B>| r.peer == Some(from) && r.state == State::Asked { offer };
        let found = self.requests.iter().find(|(_, r)| waits(r));
        if let Some((key, req)) = found {
            return Ok(Destination {
                target: Target::Request(key),
                buf: req.buf.clone(),
            });
        }
        let unexpected = &self.receiving.unexpected;
        let Some(key) = unexpected.offer(from, offer) else {
            return Ok(Destination::nowhere());
        };
        let len = unexpected.get(key).map_or(0, |m| m.len);
        let buf = room::<B>(len)?;
        if let Some(mut m) = self.let_go(key) {
            m.early = Early::Arriving(buf.clone(), None);
            self.put_back(key, m);
        }
        let target = Target::Early(key);
        Ok(Destination { target, buf })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(tag: i32) -> Envelope {
        Envelope {
            context: 4,
            source: 0,
            tag,
        }
    }

    /// The announcement with this number of a receive with this tag.
    fn asked(number: u32, tag: i32) -> Announced {
        Announced {
            number,
            context: 4,
            source: 0,
            tag,
            token: number as u64,
        }
    }

    /// State while announcements may arrive and offers wait for them.
    fn theirs() -> TheirReceives {
        TheirReceives::new(true)
    }

    #[test]
    fn an_announcement_is_open_until_a_message_takes_it() {
        let mut peer = theirs();
        assert_eq!(peer.on_announce(asked(1, 7), 1, 0, 100), Verdict::Open);
        peer.announced.push_back(asked(1, 7));
        assert!(peer.is_unasked(env(8)) && !peer.is_unasked(env(7)));
        assert_eq!(peer.take(env(8)), None);
        assert_eq!(peer.take(env(7)), Some(1));
        assert_eq!(peer.take(env(7)), None);
    }

    #[test]
    fn a_message_under_way_takes_the_first_announcement_that_fits_and_may_be_answered_by_it() {
        let (mut peer, offer) = (theirs(), ReqId::from_bits(5));
        peer.sent_unasked(env(7), None);
        peer.sent_unasked(env(8), Some(offer));
        let mut hear = |number, tag| peer.on_announce(asked(number, tag), 1, 0, 100);
        assert_eq!(hear(1, 8), Verdict::Taken(Some(offer)));
        assert_eq!(hear(2, ANY_TAG), Verdict::Taken(None));
        assert_eq!(hear(3, ANY_TAG), Verdict::Open);
    }

    #[test]
    fn a_message_that_the_receiver_had_seen_takes_none() {
        let mut peer = theirs();
        peer.sent_unasked(env(7), None);
        assert_eq!(peer.on_announce(asked(1, 7), 1, 1, 100), Verdict::Open);
    }

    #[test]
    fn behind_a_dropped_announcement_others_are_dropped_until_it_is_no_longer_posted() {
        let mut peer = theirs();
        (0..REMEMBERED as i32 + 1).for_each(|tag| peer.sent_unasked(env(tag), None));
        // The first message is forgotten, and the receiver has not seen it.
        assert_eq!(peer.on_announce(asked(1, 900), 1, 0, 100), Verdict::Dropped);
        assert_eq!(peer.on_announce(asked(2, 901), 1, 9, 100), Verdict::Dropped);
        assert_eq!(peer.on_announce(asked(3, 902), 2, 9, 100), Verdict::Dropped);
        assert_eq!(peer.on_announce(asked(4, 903), 4, 9, 100), Verdict::Open);
    }

    #[test]
    fn a_peer_is_sure_to_announce_what_is_as_long_as_what_it_has_announced() {
        let mut peer = theirs();
        assert!(!peer.is_sure_to_ask(env(7), u64::MAX), "it never announced");
        peer.on_announce(asked(1, 7), 1, 0, 100);
        assert!(peer.is_sure_to_ask(env(7), 100) && !peer.is_sure_to_ask(env(7), 99));
        peer.sent_unasked(env(7), None);
        assert!(!peer.is_sure_to_ask(env(7), 100), "a message may be first");
        peer.expect_nothing();
        assert!(!peer.is_sure_to_ask(env(8), 100));
    }

    #[test]
    fn announcing_is_in_vain_after_short_messages_in_a_row() {
        let (mut ours, key) = (OurReceives::default(), |n: u32| ReqId::from_bits(n as u64));
        for n in 1..=MISSES {
            assert!(!ours.is_in_vain());
            assert_eq!(ours.add(key(n)), (n, n));
            ours.taken_by_envelope(key(n), true);
        }
        assert!(ours.is_in_vain());
        ours.taken_by_envelope(key(9), false);
        assert!(!ours.is_in_vain(), "a long one came");
    }
}
