//! Write: the receiver says where a message goes before it exists; the sender writes straight into place.
//!
//! This is the SR ("send with remote write") protocol of seeds 000, with two rules that keep MPI's matching order:
//!
//! 1. A receive is announced only if no earlier posted receive that could take the same message is unannounced
//!    ([`crate::matching::Matching::announce`]).
//! 2. An announcement carries how many messages its sender (the receiver) has seen from the other side. The other side
//!    remembers the envelopes of those that it has sent since and that took no announced receive. The first of them that
//!    fits the announced receive will be matched with it: the announcement is used up. If that message was offered, the
//!    announcement answers the offer, and its payload goes at once; the CTS that follows is ignored. Messages of other
//!    communicators and tags are of no account.
//!
//! Where the envelopes were forgotten, or the peer's announcements are too many, an announcement is dropped. So that a
//! dropped announcement does not let a later one overtake it, each carries a number and the oldest number still posted;
//! whoever has dropped one at least that old drops this one as well.
//!
//! The sender's picture is wrong in one case: a receive was cancelled after it was announced. Then the sender takes a
//! message for the cancelled receive which the receiver gives to a later one, or keeps. So a `Write` whose receive is
//! no longer posted is matched by its envelope like any other message, and a `Data` names, besides the receive, the
//! offer that it belongs to, by which its true receive is found ([`Machine::stray_landing`]).
//!
//! An offer whose payload the receiver may fetch is not answered by an announcement, nor is a synchronous one: both wait
//! for the receiver's word.
//!
//! An announcement costs a frame, and wins nothing where the messages are too short for a handshake. Announcing is given
//! up for a peer after [`MISSES`] such messages in a row, until a long one comes.
//!
//! Body of `Announce`: number (u32), oldest posted number (u32), messages seen (u64). Header: context, tag (MPI_ANY_TAG as
//! the smallest integer), capacity in `len`, receive in `token`, its source rank in `source`.

use super::Memory;
use super::eager::{Landing, Place};
use super::flow_control::is_p2p;
use super::machine::{Early, Machine, Message};
use super::outbox::header;
use super::requests::{Req, ReqKey, State};
use crate::matching::{Envelope, Pattern};
use crate::wire::{EXTENSION_LEN, Header, Kind};
use kw_base::counters::{Counter, Protocol};
use kw_base::{Key, Peer};
use std::collections::VecDeque;

/// How a wildcard tag is written in an announcement.
const ANY_TAG: i32 = i32::MIN;
/// Announcements kept for one peer; further ones are dropped.
const KEPT: usize = 256;
/// Envelopes of sent messages kept for one peer; older ones are forgotten first.
const REMEMBERED: usize = 64;
/// After so many announced receives in a row that a short message took, announcing costs a frame and wins nothing.
const MISSES: u32 = 4;

#[derive(Clone, Copy, Debug)]
struct Announced {
    number: u32,
    context: u32,
    /// The source rank the receive names: ours, in that communicator.
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
    offer: Option<ReqKey>,
}

/// What two ranks know of each other's messages, one direction each.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Messages sent to the peer.
    sent: u64,
    /// Messages that came from the peer.
    pub seen: u64,
    /// Whether sent messages are remembered.
    remembers: bool,
    /// Messages that the peer may not have seen and that took no announced receive, oldest first.
    unasked: VecDeque<Unasked>,
    /// Up to this number messages are not remembered.
    forgotten: u64,
    /// The peer announces receives of so many bytes and more; `u64::MAX` when it is not known to announce any.
    asks_from: u64,
    /// The peer's announced receives, oldest first.
    inbox: VecDeque<Announced>,
    /// Newest announcement of the peer that was dropped.
    dropped: u32,
    /// Our own announced receives that are still posted, oldest first.
    posted: VecDeque<(u32, ReqKey)>,
    /// Number of our newest announcement.
    number: u32,
    /// Announced receives in a row that a short message took.
    missed: u32,
}

impl Flow {
    /// Before the first message. For `remembers` see [`Flow::remember`].
    pub fn new(remembers: bool) -> Flow {
        Flow {
            remembers,
            asks_from: u64::MAX,
            ..Flow::default()
        }
    }

    /// From now on sent messages are remembered, or no more. They are where announcements may come and an offer waits
    /// for the receiver's word alone.
    pub fn remember(&mut self, wanted: bool) {
        if self.remembers != wanted {
            self.remembers = wanted;
            self.forgotten = self.sent;
            self.unasked.clear();
        }
    }

    /// A message was sent that took no announced receive.
    #[inline(always)]
    pub fn sent_unasked(&mut self, env: Envelope, offer: Option<ReqKey>) {
        self.sent += 1;
        if self.remembers {
            self.note(env, offer);
        }
    }

    fn note(&mut self, env: Envelope, offer: Option<ReqKey>) {
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

    /// Forgets messages that the peer has seen; whether all others are remembered.
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
        self.inbox.is_empty() || !self.asks(env)
    }

    fn asks(&self, env: Envelope) -> bool {
        self.inbox.iter().any(|a| a.accepts(env))
    }

    /// Whether the receive of such a message will be announced, if it is as long: the peer announces those, and none that is
    /// posted before this one stays unannounced, because no message is under way that could take such a one.
    pub fn is_sure_to_ask(&self, env: Envelope, len: u64) -> bool {
        len >= self.asks_from && self.unasked.iter().all(|m| m.env != env)
    }

    /// The peer did not announce a receive as it should have.
    pub fn expect_nothing(&mut self) {
        self.asks_from = u64::MAX;
    }

    /// Forgets announced receives that are no longer posted: they were cancelled.
    fn prune(&mut self, oldest: u32) {
        let ended = |a: &Announced| (a.number.wrapping_sub(oldest) as i32) < 0;
        while self.inbox.front().is_some_and(ended) {
            self.inbox.pop_front();
        }
    }

    /// The announced receive that a message with this envelope will match, taken off the list.
    pub fn take_announced(&mut self, env: Envelope) -> Option<u64> {
        let i = self.inbox.iter().position(|a| a.accepts(env))?;
        self.inbox.remove(i).map(|a| a.token)
    }
}

impl<B: Memory> Machine<B> {
    /// Announces a receive that was just posted, where the rules allow.
    pub(super) fn announce(&mut self, to: Peer, want: Pattern, key: ReqKey, capacity: u64) {
        // The sender of a message of a collective may rely on the announcement.
        let in_vain = self.peers[to].flow.missed >= MISSES && is_p2p(want.context);
        if in_vain || !self.matching.announce(want, key) {
            return;
        }
        let flow = &mut self.peers[to].flow;
        flow.number = flow.number.wrapping_add(1);
        flow.posted.push_back((flow.number, key));
        let oldest = flow.posted.front().map_or(flow.number, |p| p.0);
        let mut body = [0; EXTENSION_LEN];
        body[..4].copy_from_slice(&flow.number.to_le_bytes());
        body[4..8].copy_from_slice(&oldest.to_le_bytes());
        body[8..].copy_from_slice(&flow.seen.to_le_bytes());
        let env = Envelope {
            context: want.context,
            source: want.source.unwrap_or(0),
            tag: want.tag.unwrap_or(ANY_TAG),
        };
        let head = header(Kind::Announce, env, capacity, key.to_bits());
        self.out.counters.hit(Counter::WriteAnnounced);
        self.out.extended(to, head, body);
    }

    /// An announced receive is not posted any more.
    pub(super) fn retract(&mut self, key: ReqKey) {
        if let Some(peer) = self.requests.get(key).and_then(|r| r.peer) {
            let posted = &mut self.peers[peer].flow.posted;
            posted.retain(|&(_, k)| k != key);
        }
    }

    /// A posted receive was matched by a message's envelope: forget that it was announced. `short`: announcing it was of
    /// no use, because the message is no longer than those that are sent at once.
    #[inline]
    pub(super) fn taken_by_envelope(&mut self, key: ReqKey, short: bool) {
        let Some(peer) = self.requests.get(key).and_then(|r| r.peer) else {
            return;
        };
        let flow = &mut self.peers[peer].flow;
        if !flow.posted.is_empty() {
            let before = flow.posted.len();
            flow.posted.retain(|&(_, k)| k != key);
            flow.missed += (before - flow.posted.len()) as u32;
        }
        if !short {
            flow.missed = 0;
        }
    }

    /// The peer announced a receive.
    pub(super) fn on_announce(
        &mut self,
        from: Peer,
        head: &Header,
        body: &[u8],
    ) -> Result<(), String> {
        let Some(body) = body.first_chunk::<EXTENSION_LEN>() else {
            return Err(format!("announcement of {} bytes", body.len()));
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
        let flow = &mut self.peers[from].flow;
        flow.prune(oldest);
        flow.asks_from = flow.asks_from.min(head.len);
        let known = flow.knows_since(seen) && flow.inbox.len() < KEPT;
        if !known || flow.dropped != 0 && flow.dropped.wrapping_sub(oldest) as i32 >= 0 {
            // Those that were kept stay: the receiver posted them earlier.
            flow.dropped = number;
            self.out.counters.hit(Counter::WriteDropped);
            self.offer_withheld_to(from);
            return Ok(());
        }
        match flow.unasked.iter().position(|m| asked.accepts(m.env)) {
            None => {
                if !self.write_withheld(from, asked.token, |env| asked.accepts(env)) {
                    self.peers[from].flow.inbox.push_back(asked);
                }
            }
            Some(i) => {
                let offer = flow.unasked.remove(i).and_then(|m| m.offer);
                self.use_up(from, asked.token, offer);
            }
        }
        Ok(())
    }

    /// An announced receive will take a message that is under way; if that is an offer, its payload need not wait.
    fn use_up(&mut self, to: Peer, token: u64, offer: Option<ReqKey>) {
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
    pub(super) fn send_write(&mut self, key: ReqKey, to: Peer, env: Envelope, token: u64, buf: &B) {
        self.requests.set_state(key, State::Streaming);
        let len = buf.len();
        let way = self.peers[to].way;
        self.out.counters.sent(way, Protocol::Write, len);
        let head = header(Kind::Write, env, len, token);
        self.out.payload(to, head, buf.clone(), key);
    }

    /// A message comes for an announced receive.
    pub(super) fn write_landing(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Landing<B>, String> {
        let key = Key::from_bits(head.token);
        let posted = match self.requests.get(key) {
            Some(req) if req.peer == Some(from) => match req.state {
                State::Posted(want) => Some(want),
                _ => None,
            },
            _ => None,
        };
        let env = Envelope {
            context: head.context,
            source: head.source,
            tag: head.tag,
        };
        match posted {
            Some(want) if self.matching.withdraw(want, key) => {
                self.peers[from].flow.seen += 1;
                self.peers[from].flow.missed = 0;
                self.retract(key);
                self.out.counters.hit(Counter::Expected);
                Ok(self.land_in(key, from, env, head.len))
            }
            _ => self.message_landing(from, head),
        }
    }

    /// Payload of an offer that its sender took for the message of a receive that is cancelled: where it goes instead.
    #[cold]
    pub(super) fn stray_landing(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Landing<B>, String> {
        let offer = head.aux();
        let waits = |r: &Req<B>| r.peer == Some(from) && r.state == State::Asked { offer };
        let found = self.requests.iter().find(|(_, r)| waits(r));
        if let Some((key, req)) = found {
            return Ok(Landing {
                place: Place::Request(key),
                buf: req.buf.clone(),
            });
        }
        let is_it = |m: &Message<B>| m.from == from && m.is_offer(offer);
        let found = self.early.iter().find(|(_, m)| is_it(m));
        let Some((key, len)) = found.map(|(k, m)| (k, m.len)) else {
            return Ok(Landing::nowhere());
        };
        let buf = self.room(len)?;
        if let Some(mut m) = self.let_go(key) {
            m.early = Early::Landing(buf.clone(), None);
            self.put_back(key, m);
        }
        let place = Place::Early(key);
        Ok(Landing { place, buf })
    }
}
