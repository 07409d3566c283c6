//! Making connections and taking them into use: calling a peer, being called, and room for both.
//!
//! When both ranks of a pair connect at the same time, the connection that the lower rank made is
//! kept: the higher rank welcomes it and drops its own; the lower rank lets the higher one's wait,
//! and welcomes it only if all of its own attempts fail.

use super::acceptor::{Acceptor, PendingAccept};
use super::connection_limit::ConnectionLimit;
use super::dial::{Dialled, Unreachable};
use super::link::Link;
use super::net::Net;
use super::peers::{Slot, down};
use super::reader::PARTING;
use super::stream::{Stream, is_rail};
use super::watcher::Token;
use crate::contract::{Body, Down, Inbound, Sent};
use kw_base::{Peer, Tick};
use kw_proto::handshake::{Claim, Verdict};
use kw_proto::p2p::prices::Network;
use kw_proto::wire::{Header, Kind};
use kw_sys::poller::Interest;
use kw_sys::tcp::Sock;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

/// Connections that are being given up at once.
const AT_ONCE: usize = 4;
/// Time after which calls that wait for room, or for an acknowledgement, are checked again.
const SOON: Duration = Duration::from_millis(2);

/// The rank that makes connections.
#[derive(Debug)]
pub struct Connector {
    acceptor: Acceptor,
    limit: ConnectionLimit,
    made: Vec<Made>,
}

/// A connection that this rank made, the last one to its peer.
#[derive(Debug)]
pub struct Made {
    /// The destination.
    pub peer: Peer,
    /// This rank's address and the peer's; it may have been closed since.
    pub ends: (IpAddr, IpAddr),
    /// Results for the peer's other addresses; empty if it has none.
    pub others: String,
}

impl Connector {
    /// Accepts connections at this acceptor.
    pub fn new(acceptor: Acceptor, limit: ConnectionLimit) -> Connector {
        Connector {
            acceptor,
            limit,
            made: Vec::new(),
        }
    }

    /// There are `size` ranks from now on.
    pub fn grow(&mut self, size: u32) {
        self.acceptor.grow(size);
    }

    /// Peers are forgotten.
    pub fn forget(&mut self, which: Range<u32>) {
        self.made.retain(|made| !which.contains(&made.peer.0));
    }

    /// Pending incoming connections.
    pub fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    /// Connections that this rank made.
    pub fn made(&self) -> &[Made] {
        &self.made
    }

    /// Whether outgoing connections are being made or given up.
    pub fn is_connecting(&self, net: &Net) -> bool {
        let lists = net.peers.lists();
        !lists.dialing.is_empty() || net.striping.rails().is_wanting() || !lists.yielding.is_empty()
    }

    /// Number of current and imminent connections.
    pub fn connections(&self, net: &Net) -> usize {
        let lists = net.peers.lists();
        let sockets = |p: Peer| match net.peers.slot(p) {
            Some(Slot::Dialing(dialing)) => dialing.dial.sockets(),
            _ => 0,
        };
        let dials: usize = lists.dialing.iter().map(sockets).sum();
        lists.live.len() + net.striping.rails().sockets() + dials + self.acceptor.len()
    }

    /// The first frame to a peer without a connection.
    #[cold]
    pub fn send(
        &mut self,
        net: &mut Net,
        to: Peer,
        (head, body): (&Header, Body<'_>),
        cookie: u64,
    ) -> Result<Sent, Down> {
        if to == net.local.me || net.peers.slot(to).is_none() {
            return Err(down(to, "TCP does not reach this rank"));
        }
        let known = !net.peers.addresses.of(to).is_empty();
        if let Slot::Idle(stream) = net.peers.slot_mut(to)
            && known
        {
            let stream = stream.take().map(|s| *s);
            let stream = stream.unwrap_or_else(|| Stream::new(net.local.reliable));
            dial(net, to, stream);
        }
        match net.peers.slot_mut(to) {
            Slot::Dialing(dialing) => {
                let sent = dialing.stream.queue(head, body, 0, cookie);
                self.start_dial(net, to);
                Ok(sent)
            }
            // It was there, and its address is being asked for.
            Slot::Idle(Some(stream)) => Ok(stream.queue(head, body, 0, cookie)),
            Slot::Gone(why) => Err(down(to, why.clone())),
            _ => Err(down(to, "its address is not known yet")),
        }
    }

    /// Begins a dial, if there is room.
    fn start_dial(&mut self, net: &mut Net, to: Peer) {
        if !self.limit.may_call(self.connections(net)) {
            return self.make_room(net);
        }
        if let Some(dialing) = net.peers.dialing_mut(to) {
            let (identity, sources) = (&net.local.identity, net.local.sources());
            dialing.dial.start(identity, net.watcher.poller(), sources);
        }
    }

    /// Dials a peer whose connection broke, if its address is known.
    pub fn go_on(&mut self, net: &mut Net, peer: Peer) {
        if net.peers.addresses.of(peer).is_empty() {
            return;
        }
        let Slot::Idle(Some(stream)) = net.peers.slot_mut(peer) else {
            return;
        };
        if stream.broken().is_none() && stream.is_flushed() {
            return;
        }
        let stream = std::mem::take(&mut **stream);
        dial(net, peer, stream);
        self.start_dial(net, peer);
        // The dial's times count from the next poll.
        net.watcher.wake();
    }

    /// An event of an outgoing call.
    pub fn advance_dial(
        &mut self,
        net: &mut Net,
        peer: Peer,
        now: Tick,
        inbound: &mut dyn Inbound,
    ) -> bool {
        let Some(dialing) = net.peers.dialing_mut(peer) else {
            return false;
        };
        match dialing.dial.advance(now, net.watcher.poller()) {
            Dialled::Waiting => false,
            Dialled::Connected(sock, claim, others) => {
                let stream = std::mem::take(&mut dialing.stream);
                self.made.retain(|m| m.peer != peer);
                if let Some((here, there)) = sock.ends() {
                    let ends = (here.ip(), there.ip());
                    self.made.push(Made { peer, ends, others });
                }
                self.connected(net, peer, (sock, stream, claim), inbound);
                true
            }
            Dialled::Exhausted => self.fall_back(net, peer, inbound),
        }
    }

    /// Our own attempts have failed for now: a connection of the peer that waits for this is
    /// welcome.
    fn fall_back(&mut self, net: &mut Net, peer: Peer, inbound: &mut dyn Inbound) -> bool {
        let Some(pending) = self.acceptor.parked(peer) else {
            return false;
        };
        self.welcome(net, peer, pending, inbound);
        true
    }

    fn welcome(
        &mut self,
        net: &mut Net,
        peer: Peer,
        pending: PendingAccept,
        inbound: &mut dyn Inbound,
    ) {
        let mut fresh = Stream::new(net.local.reliable);
        let stream = net.peers.stream_mut(peer).unwrap_or(&mut fresh);
        let claim = pending.claim();
        if !stream.allows(&claim) {
            return;
        }
        let ours = Claim {
            link: claim.link,
            ..stream.claim()
        };
        let number = Token::Link(peer).bits();
        // If the connection breaks at the last moment the peer comes again, or our dial continues.
        if let Some(sock) = pending.answer(Verdict::Welcome, ours)
            && let Ok(()) = net.watcher.poller().change(&sock, number, Interest::Read)
        {
            let stream = std::mem::take(stream);
            self.connected(net, peer, (sock, stream, claim), inbound);
        }
    }

    /// A connection to this peer is agreed upon: the link goes on over it.
    fn connected(
        &mut self,
        net: &mut Net,
        peer: Peer,
        (sock, mut stream, claim): (Sock, Stream, Claim),
        inbound: &mut dyn Inbound,
    ) {
        self.acceptor.dismiss(peer);
        if !stream.resume(&claim, |cookie| inbound.on_sent(peer, cookie)) {
            let why = "the connection was re-established, but one side requests data that the other has discarded; a device between them acknowledges in their place";
            return net.bury(peer, why.to_string(), inbound);
        }
        let tuning = &net.local.tuning;
        if net.local.reliable {
            // If the system does not know these options, it finds out later.
            let _ = sock.watch(tuning.silence);
        }
        let sized = tuning.socket_buffer.map_or(Ok(()), |n| sock.set_buffers(n));
        let link = Link::new(sock, stream, tuning);
        let adopted = sized.and_then(|()| net.peers.adopt(peer, link, tuning, &net.watcher));
        match adopted {
            Ok(()) => {
                net.striping.leave_first(peer, &net.local, &mut net.peers);
                net.flush(inbound);
                if net.peers.network(peer) != Network::default() {
                    inbound.on_repriced(peer);
                }
            }
            Err(e) => {
                let why = format!("the new connection could not be used ({e})");
                net.bury(peer, why, inbound);
            }
        }
    }

    /// Data came on a connection that is pending at the acceptor.
    pub fn advance_pending(&mut self, net: &mut Net, key: u64, inbound: &mut dyn Inbound) -> bool {
        let Some(rank) = self.acceptor.advance(key) else {
            return false;
        };
        let peer = Peer(rank);
        if self.acceptor.claim(key).is_some_and(|c| is_rail(&c)) {
            let here = (&net.local, &mut net.watcher);
            let at = (&mut self.acceptor, key);
            net.striping.answer(peer, at, here, &net.peers);
            return true;
        }
        self.leave(net, peer, key, inbound);
        let welcome = match net.peers.slot(peer) {
            Some(Slot::Idle(_)) => true,
            // Ours counts; the peer's waits.
            Some(Slot::Dialing(d)) if net.local.precedes(peer) && !d.dial.is_idle() => return true,
            Some(Slot::Dialing(_)) => true,
            _ => false,
        };
        match self.acceptor.take(key) {
            Some(pending) if welcome => self.welcome(net, peer, pending, inbound),
            Some(pending) => {
                pending.answer(Verdict::Duplicate, Claim::default());
            }
            None => {}
        }
        true
    }

    /// A connected peer calls. If it knows of the connection that we have, that one is over: the
    /// data that it has brought is read, and it is left. If not, ours is checked: it may be over
    /// without our knowledge.
    fn leave(&mut self, net: &mut Net, peer: Peer, key: u64, inbound: &mut dyn Inbound) {
        let (Some(link), Some(claim)) = (net.peers.link(peer), self.acceptor.claim(key)) else {
            return;
        };
        let stream = link.stream();
        if !stream.is_reliable() || stream.has_goodbye() || !stream.allows(&claim) {
            return;
        }
        let knows = claim.connections >= stream.claim().connections;
        let why = format!(
            "the connection of ranks {} and {peer} ({}) was ended by rank {peer}",
            net.local.me,
            link.way()
        );
        while net.peers.link(peer).is_some() && self.pull(net, peer, inbound) {}
        if knows && net.peers.link(peer).is_some() {
            net.peers.part(peer, Some(why));
        }
    }

    /// Reads from one connection.
    #[inline]
    pub fn pull(&mut self, net: &mut Net, peer: Peer, inbound: &mut dyn Inbound) -> bool {
        match net.pull(peer, inbound) {
            Ok(pulled) => {
                if pulled.unwanted {
                    self.give_way(net, peer, inbound);
                }
                if pulled.striping {
                    net.striping.note(peer);
                }
                pulled.moved
            }
            Err(end) => {
                self.ended(net, peer, end, inbound);
                true
            }
        }
    }

    /// Accepts connections that wait at a listening socket, if there is room.
    pub fn let_in(&mut self, net: &mut Net, listener: usize, now: Tick) -> bool {
        let room = self.limit.room(self.connections(net));
        if room == 0 {
            self.make_room(net);
            self.acceptor.set_shut(true, net.watcher.poller());
            return false;
        }
        let here = (&net.local.identity, net.watcher.poller());
        let moved = self.acceptor.accept(listener, room, now, here);
        if self.acceptor.is_shut() && self.limit.found_full(self.connections(net)) {
            self.make_room(net);
        }
        moved
    }

    /// Asks the peer of the idle connection that was used longest ago to close it.
    #[cold]
    fn make_room(&mut self, net: &mut Net) {
        if net.striping.drop_idle_rails(&mut net.peers) || net.peers.is_closed() {
            return;
        }
        let Some(peer) = net.peers.longest_idle(AT_ONCE) else {
            return;
        };
        if let Some(link) = net.peers.link_mut(peer) {
            link.part();
        }
        let bye = Header {
            token: PARTING,
            ..Header::bare(Kind::Bye)
        };
        net.peers.say(peer, &bye, Body::None, &net.local.tuning);
    }

    /// The peer wants the connection closed: done when nothing is in flight, otherwise checked
    /// again soon.
    #[cold]
    fn give_way(&mut self, net: &mut Net, peer: Peer, inbound: &mut dyn Inbound) {
        let closed = net.peers.is_closed();
        let Some(link) = net.peers.link_mut(peer) else {
            return;
        };
        if closed || link.stream().has_goodbye() {
            return;
        }
        if link.is_idle() && link.is_acknowledged() {
            net.rest(peer, inbound);
        } else if net.peers.note_yielding(peer) {
            net.watcher.wake();
        }
    }

    /// Time has passed: continues calls, gives up those that take too long, and checks again the
    /// calls that wait for room. Returns when to come again.
    pub fn tick(&mut self, net: &mut Net, now: Tick, inbound: &mut dyn Inbound) -> Tick {
        let next = self.acceptor.expire(now);
        let next = next.min(self.look_for_room(net, now, inbound));
        let room = self.limit.may_add_rail(self.connections(net));
        let here = (&net.local, &mut net.watcher);
        let rails = net.striping.dial(now, room, here, &net.peers, inbound);
        next.min(rails).min(self.tick_dials(net, now, inbound))
    }

    fn tick_dials(&mut self, net: &mut Net, now: Tick, inbound: &mut dyn Inbound) -> Tick {
        let mut next = Tick::NEVER;
        for i in (0..net.peers.lists().dialing.len()).rev() {
            let Some(peer) = net.peers.lists().dialing.get(i) else {
                continue;
            };
            let Some(dialing) = net.peers.dialing_mut(peer) else {
                continue;
            };
            if !dialing.dial.has_begun() {
                continue;
            }
            let (identity, sources) = (&net.local.identity, net.local.sources());
            let poller = net.watcher.poller();
            match dialing.dial.tick(now, identity, poller, sources) {
                Ok(at) => next = next.min(at),
                Err(Unreachable) => {
                    let reason = dialing.dial.sentence();
                    net.bury(peer, reason, inbound);
                }
            }
        }
        next
    }

    /// Checks again the calls that wait for room; returns when the next time is.
    fn look_for_room(&mut self, net: &mut Net, now: Tick, inbound: &mut dyn Inbound) -> Tick {
        let mut waits = false;
        for peer in net.peers.take_yielding() {
            self.give_way(net, peer, inbound);
            waits |= net.peers.lists().yielding.contains(peer);
        }
        for i in 0..net.peers.lists().dialing.len() {
            let peer = net.peers.lists().dialing.get(i);
            let waiting = |net: &Net| match peer.and_then(|p| net.peers.slot(p)) {
                Some(Slot::Dialing(dialing)) => !dialing.dial.has_begun(),
                _ => false,
            };
            if waiting(net) {
                peer.into_iter().for_each(|p| self.start_dial(net, p));
                waits |= waiting(net);
            }
        }
        if self.acceptor.is_shut() {
            match self.limit.room(self.connections(net)) > 0 {
                true => self.acceptor.set_shut(false, net.watcher.poller()),
                false => self.make_room(net),
            }
            waits |= self.acceptor.is_shut();
        }
        if waits { now + SOON } else { Tick::NEVER }
    }
}

/// Begins to connect to a peer whose addresses are known.
fn dial(net: &mut Net, to: Peer, mut stream: Stream) {
    stream.name(|| {
        // Without random numbers no handshake begins either; the attempts say so.
        let bytes = kw_sys::random::key().unwrap_or([1; 32]);
        u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[1; 8]))
    });
    let known = net.peers.addresses.of(to);
    let addresses = known.addresses().collect();
    let token = (to, Token::Dial(to));
    let broken = stream.broken().cloned();
    let dial = net
        .local
        .dial(token, known, addresses, stream.claim(), broken);
    net.peers.begin_dial(to, dial, stream);
    net.watcher.hurry();
}
