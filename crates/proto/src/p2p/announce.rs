//! Write: the receiver says where a message goes before it exists; the sender writes straight into place.
//!
//! This is the SR ("send with remote write") protocol of seeds 000, with two rules that keep MPI's matching order:
//!
//! 1. A receive is announced only if no earlier posted receive that could take the same message is unannounced
//!    ([`crate::matching::Matching::announce`]).
//! 2. An announcement carries how many messages its sender (the receiver) has seen from the other side. If the other side
//!    has sent more, a message is under way that might belong to this receive: the announcement is dropped. So that a
//!    dropped announcement does not let a later one overtake it, each carries a number and the oldest number still
//!    posted; whoever has dropped one at least that old drops this one as well.
//!
//! Where the messages are always quicker than the announcements (a ping-pong of large messages over TCP: the answer
//! leaves before the announcement of the next receive comes), announcing is all but given up for that peer: [`MISSES`]. Not
//! where both have offered each other a message (an exchange): there the announcements cross with the offers while both ranks are equally quick,
//! but as soon as one is late, the announcement of the other is what keeps both directions busy. Without it the late one's
//! CTS lets the other fill the connection with its payload, and the answer to the late one's own offer waits behind that: the two messages take turns.
//!
//! The message itself (kind `Write`) names the receive. If that receive is no longer posted (cancelled), the message is
//! matched by its envelope like any other.
//!
//! Body of `Announce`: number (u32), oldest posted number (u32), messages seen (u64). Header: context, tag (MPI_ANY_TAG as
//! the smallest integer), capacity in `len`, receive in `token`, its source rank in `source`.

use super::eager::Landing;
use super::machine::{Machine, ReqKey, State};
use super::{Action, FrameBody, Memory, NO_COOKIE};
use crate::matching::{Envelope, Pattern};
use crate::wire::{EXTENSION_LEN, Header, Kind};
use kw_base::counters::{Counter, Protocol};
use kw_base::{Key, Peer};
use std::collections::VecDeque;

/// How a wildcard tag is written in an announcement.
const ANY_TAG: i32 = i32::MIN;
/// Announcements kept for one peer; older ones are dropped first.
const KEPT: usize = 64;
/// After so many announced receives in a row that a message took by its envelope all the same, the peer is too quick:
/// announcing costs a frame and wins nothing.
const MISSES: u32 = 4;
/// From then on only every so many-th receive is announced, until one wins again.
const RETRY: u32 = 32;

#[derive(Clone, Copy, Debug)]
struct Announced {
    context: u32,
    /// The source rank the receive names: ours, in that communicator.
    source: u32,
    tag: i32,
    token: u64,
}

/// What two ranks know of each other's messages, one direction each.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Messages sent to the peer.
    pub sent: u64,
    /// Messages that came from the peer.
    pub seen: u64,
    /// The peer's announced receives, oldest first.
    inbox: VecDeque<Announced>,
    /// Newest announcement of the peer that was dropped.
    dropped: u32,
    /// Our own announced receives that are still posted, oldest first.
    posted: VecDeque<(u32, ReqKey)>,
    /// Number of our newest announcement.
    number: u32,
    /// Announced receives in a row that won nothing.
    missed: u32,
    /// The message that was offered to the peer last.
    pub offer: Option<ReqKey>,
    /// Receives since then that were not announced.
    held_back: u32,
}

impl Flow {
    /// Whether announcing the next receive is worth its frame.
    fn worth_it(&mut self) -> bool {
        if self.missed < MISSES {
            return true;
        }
        self.held_back += 1;
        if self.held_back < RETRY {
            return false;
        }
        self.held_back = 0;
        true
    }

    /// Whether the peer has announced nothing.
    #[inline]
    pub fn idle(&self) -> bool {
        self.inbox.is_empty()
    }

    /// The announced receive that a message with this envelope will match, taken off the list.
    pub fn take_announced(&mut self, env: Envelope) -> Option<u64> {
        let fits = |a: &Announced| {
            a.context == env.context
                && a.source == env.source
                && (a.tag == env.tag || a.tag == ANY_TAG && env.tag >= 0)
        };
        let i = self.inbox.iter().position(fits)?;
        self.inbox.remove(i).map(|a| a.token)
    }
}

impl<B: Memory> Machine<B> {
    /// Announces a receive that was just posted, where the rules allow.
    pub(super) fn announce(&mut self, to: Peer, want: Pattern, key: ReqKey, capacity: u64) {
        if !self.peers[to.idx()].flow.worth_it() || !self.matching.announce(want, key) {
            return;
        }
        let flow = &mut self.peers[to.idx()].flow;
        flow.number = flow.number.wrapping_add(1);
        flow.posted.push_back((flow.number, key));
        let oldest = flow.posted.front().map_or(flow.number, |p| p.0);
        let mut body = [0; EXTENSION_LEN];
        body[..4].copy_from_slice(&flow.number.to_le_bytes());
        body[4..8].copy_from_slice(&oldest.to_le_bytes());
        body[8..].copy_from_slice(&flow.seen.to_le_bytes());
        let head = Header {
            kind: Kind::Announce,
            context: want.context,
            source: want.source.unwrap_or(0),
            tag: want.tag.unwrap_or(ANY_TAG),
            len: capacity,
            token: key.to_bits(),
        };
        self.counters.hit(Counter::WriteAnnounced);
        self.actions.push(Action::Frame {
            to,
            head,
            body: FrameBody::Extension(body),
            cookie: NO_COOKIE,
        });
    }

    /// An announced receive is not posted any more.
    pub(super) fn retract(&mut self, peer: Peer, key: ReqKey) {
        if let Some(p) = self.peers.get_mut(peer.idx()) {
            p.flow.posted.retain(|&(_, k)| k != key);
        }
    }

    /// A posted receive was matched by a message's envelope: forget that it was announced.
    #[inline]
    pub(super) fn taken_by_envelope(&mut self, key: ReqKey) {
        let Some(req) = self.reqs.get(key) else {
            return;
        };
        let peer = req.peer;
        let exchange = self.is_offering(peer);
        if let Some(p) = self.peers.get_mut(peer.idx())
            && !p.flow.posted.is_empty()
        {
            let before = p.flow.posted.len();
            p.flow.posted.retain(|&(_, k)| k != key);
            if !exchange {
                p.flow.missed += (before - p.flow.posted.len()) as u32;
            }
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
        let flow = &mut self.peers[from.idx()].flow;
        if flow.sent != seen || flow.dropped != 0 && flow.dropped.wrapping_sub(oldest) as i32 >= 0 {
            flow.dropped = number;
            self.counters.hit(Counter::WriteDropped);
            return Ok(());
        }
        if flow.inbox.len() == KEPT {
            // The oldest cannot be dropped alone without letting younger ones overtake it.
            flow.inbox.clear();
            flow.dropped = number;
            self.counters.hit(Counter::WriteDropped);
            return Ok(());
        }
        let (context, source, tag, token) = (head.context, head.source, head.tag, head.token);
        flow.inbox.push_back(Announced {
            context,
            source,
            tag,
            token,
        });
        Ok(())
    }

    /// Sends a message into an announced receive.
    pub(super) fn send_write(&mut self, key: ReqKey, to: Peer, env: Envelope, token: u64, buf: &B) {
        self.set_state(key, State::Streaming);
        let len = buf.len();
        let way = self.peers[to.idx()].way;
        self.counters.sent(way, Protocol::Write, len);
        let head = Header {
            kind: Kind::Write,
            context: env.context,
            source: env.source,
            tag: env.tag,
            len,
            token,
        };
        let body = FrameBody::Payload {
            buf: buf.clone(),
            len,
        };
        self.actions.push(Action::Frame {
            to,
            head,
            body,
            cookie: key.to_bits(),
        });
    }

    /// A message comes for an announced receive.
    pub(super) fn write_landing(
        &mut self,
        from: Peer,
        head: &Header,
    ) -> Result<Landing<B>, String> {
        let key = Key::from_bits(head.token);
        let posted = match self.reqs.get(key) {
            Some(req) if req.peer == from => match req.state {
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
                self.peers[from.idx()].flow.seen += 1;
                self.peers[from.idx()].flow.missed = 0;
                self.retract(from, key);
                self.counters.hit(Counter::Expected);
                Ok(self.land_in(key, from, env, head.len))
            }
            _ => self.message_landing(from, head),
        }
    }
}
