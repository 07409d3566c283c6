//! Long payloads in pieces over several connections: dealing out, receiving, confirming.

use super::acceptor::Acceptor;
use super::local::Local;
use super::peers::Peers;
use super::rails::Rails;
use super::segmented;
use super::stripe::{Stripes, head_of};
use super::watcher::Watcher;
use crate::contract::{Body, Inbound, Sent};
use crate::peer_set::PeerSet;
use kw_base::{Peer, Tick};
use kw_proto::stripe::Carrier;
use kw_proto::wire::{Header, Kind};

/// Striped payloads and their connections.
#[derive(Debug)]
pub struct Striping {
    rails: Rails,
    /// Peers with which something is in flight in pieces.
    active: PeerSet,
    /// Payloads are striped from this many bytes on; `None`: never.
    from: Option<u64>,
    /// Payloads that were sent in pieces.
    payloads: u64,
    /// Pieces that were sent again.
    again: u64,
}

impl Striping {
    /// No payloads, among this many ranks; payloads are striped from this many bytes on, if ever.
    pub fn new(size: u32, from: Option<u64>) -> Striping {
        Striping {
            rails: Rails::new(size, from.is_some()),
            active: PeerSet::default(),
            from,
            payloads: 0,
            again: 0,
        }
    }

    /// There are `size` ranks from now on.
    pub fn grow(&mut self, size: u32) {
        self.rails.grow(size);
    }

    /// The further connections.
    pub fn rails(&self) -> &Rails {
        &self.rails
    }

    /// Whether a payload of this many bytes may be striped.
    #[inline]
    pub fn is_for(&self, len: u64) -> bool {
        self.from.is_some_and(|from| len >= from)
    }

    /// Whether nothing is in flight.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// Counters of rails: payloads sent in pieces, their bytes that did not use the first
    /// connection, and resent pieces.
    pub fn counts(&self) -> [u64; 3] {
        [self.payloads, self.rails.bytes(), self.again]
    }

    /// Sends a frame with a long payload in pieces, if there is a rail; asks for one otherwise.
    #[cold]
    pub fn send(
        &mut self,
        to: Peer,
        (head, body): (&Header, Body<'_>),
        cookie: u64,
        (local, watcher): (&Local, &mut Watcher),
        peers: &mut Peers,
    ) -> Option<Sent> {
        let Body::Payload { buf, from, len } = body else {
            return None;
        };
        if !segmented(head.kind) || peers.is_closed() || !self.rails.want(to, watcher) {
            return None;
        }
        let link = peers.link_mut(to)?;
        if link.stream().has_goodbye() {
            return None;
        }
        let stripes = link.stream_mut().make_stripes();
        let striped = Header {
            token: stripes.begin((buf, from, len), cookie),
            ..Header::bare(Kind::Striped)
        };
        peers.say(to, &striped, Body::Bytes(&head.encode()), &local.tuning);
        self.payloads += 1;
        self.note(to);
        self.share(to, local, peers);
        Some(Sent::Queued)
    }

    /// Something is in flight in pieces with this peer.
    pub fn note(&mut self, peer: Peer) {
        self.active.insert(peer);
    }

    /// Deals out pieces to every connection that has room.
    pub fn share(&mut self, peer: Peer, local: &Local, peers: &mut Peers) -> bool {
        let mut moved = false;
        // By turns, so that a payload of a few pieces is not all on one.
        while feed_first(peer, local, peers) | self.feed_rails(peer, local, peers) {
            moved = true;
        }
        moved
    }

    fn feed_rails(&mut self, peer: Peer, local: &Local, peers: &mut Peers) -> bool {
        let Some(stripes) = peers.stripes(peer) else {
            return false;
        };
        let (mut moved, mut broken) = (false, Vec::new());
        for rail in self.rails.of_mut(peer) {
            if !rail.is_sending()
                && let Some(piece) = stripes.hand_out(rail.id())
            {
                rail.begin(piece);
            }
            match rail.push(stripes, &local.tuning) {
                Ok(went) => moved |= went,
                Err(_) => broken.push(rail.id()),
            }
        }
        moved |= !broken.is_empty();
        for id in broken {
            self.drop_rail(peer, id, peers);
        }
        moved
    }

    /// Advances payloads that are in flight in pieces, with every peer.
    #[cold]
    pub fn serve_all(
        &mut self,
        (local, watcher): (&Local, &Watcher),
        peers: &mut Peers,
        inbound: &mut dyn Inbound,
    ) -> bool {
        let mut moved = false;
        for i in (0..self.active.len()).rev() {
            let Some(peer) = self.active.get(i) else {
                continue;
            };
            let comes = peers.stripes(peer).is_some_and(|s| s.is_coming());
            moved |= self.serve(peer, comes, local, peers, inbound);
            if peers.stripes(peer).is_none_or(|s| s.is_idle()) {
                self.active.remove(peer);
                self.rails.listen(peer, watcher.poller());
            }
        }
        moved
    }

    /// Advances payloads that are in flight in pieces with a peer; reads its rails if `read`.
    fn serve(
        &mut self,
        peer: Peer,
        read: bool,
        local: &Local,
        peers: &mut Peers,
        inbound: &mut dyn Inbound,
    ) -> bool {
        let mut moved = tell_owners(peer, peers, inbound);
        moved |= read && self.pull_rails(peer, local, peers, inbound);
        moved |= confirm(peer, local, peers);
        moved | self.share(peer, local, peers)
    }

    /// Reads the rails of a peer.
    fn pull_rails(
        &mut self,
        peer: Peer,
        local: &Local,
        peers: &mut Peers,
        inbound: &mut dyn Inbound,
    ) -> bool {
        let mut none = Stripes::new(1);
        let stripes = peers.stripes(peer).unwrap_or(&mut none);
        let (mut moved, mut complete, mut ended) = (false, Vec::new(), Vec::new());
        for rail in self.rails.of_mut(peer) {
            match rail.pull(stripes, &local.tuning, &mut complete) {
                Ok(came) => moved |= came,
                Err(_) => ended.push(rail.id()),
            }
        }
        for (number, cookie) in complete {
            if let Some(stream) = peers.stream_mut(peer) {
                stream.reader_mut().stop_writing(number);
            }
            inbound.on_body(peer, cookie);
        }
        moved |= !ended.is_empty();
        for id in ended {
            self.drop_rail(peer, id, peers);
        }
        moved
    }

    /// The poller reports a rail: it can be read or written, or has ended. (For one that waits for
    /// its payload to begin, only its end.)
    pub fn rail_ready(
        &mut self,
        (peer, id): (Peer, Carrier),
        (local, watcher): (&Local, &Watcher),
        peers: &mut Peers,
        inbound: &mut dyn Inbound,
    ) -> bool {
        let mut rails = self.rails.of(peer).iter();
        if rails.any(|r| r.id() == id && r.tells_its_end()) {
            self.drop_rail(peer, id, peers);
        }
        let moved = self.serve(peer, true, local, peers, inbound);
        self.rails.listen(peer, watcher.poller());
        moved
    }

    /// A further connection is over: the pieces that it carried go again.
    #[cold]
    pub fn drop_rail(&mut self, peer: Peer, id: Carrier, peers: &mut Peers) {
        self.rails.remove(peer, id);
        if let Some(stripes) = peers.stripes(peer) {
            self.again += stripes.lost(id) as u64;
            self.note(peer);
        }
    }

    /// Closes all further connections of a peer.
    pub fn drop_rails(&mut self, peer: Peer, peers: &mut Peers) {
        let all: Vec<_> = self.rails.of(peer).iter().map(|r| r.id()).collect();
        for id in all {
            self.drop_rail(peer, id, peers);
        }
        self.rails.stop_dialing(peer);
    }

    /// Closes the rails of a peer with which nothing is in flight in pieces, to make room. Returns
    /// whether there was one.
    pub fn drop_idle_rails(&mut self, peers: &mut Peers) -> bool {
        let idle = self.rails.idle_peer(&self.active);
        if let Some(peer) = idle {
            self.drop_rails(peer, peers);
        }
        idle.is_some()
    }

    /// The first connection of a peer was re-established: rails on its link are closed.
    pub fn leave_first(&mut self, peer: Peer, local: &Local, peers: &mut Peers) {
        for id in self.rails.beside_first(peer, local, peers) {
            self.drop_rail(peer, id, peers);
        }
    }

    /// The end of a peer.
    pub fn forget(&mut self, peer: Peer) {
        self.rails.forget(peer);
        self.active.remove(peer);
    }

    /// Before a sleep that ends when this many bytes of a piece have arrived.
    pub fn arm(&mut self, batch: u32, watcher: &Watcher) {
        for peer in self.active.iter() {
            self.rails.listen(peer, watcher.poller());
            for rail in self.rails.of_mut(peer) {
                rail.wake_for(batch);
            }
        }
    }

    /// Makes rails that are wanted, if there is `room`; returns when to come again.
    pub fn dial(
        &mut self,
        now: Tick,
        room: bool,
        net: (&Local, &mut Watcher),
        peers: &Peers,
        inbound: &mut dyn Inbound,
    ) -> Tick {
        self.rails.dial_all(now, room, net, peers, inbound)
    }

    /// An event of a rail that is being made. Returns whether there is one more.
    pub fn advance_dial(
        &mut self,
        peer: Peer,
        now: Tick,
        net: (&Local, &mut Watcher),
        peers: &Peers,
    ) -> bool {
        self.rails.advance(peer, now, net, peers)
    }

    /// A connected peer calls for one more connection, which is pending at the acceptor.
    pub fn answer(
        &mut self,
        peer: Peer,
        at: (&mut Acceptor, u64),
        net: (&Local, &mut Watcher),
        peers: &Peers,
    ) {
        self.rails.answer(peer, at, net, peers);
    }
}

/// Gives the first connection of a peer a piece, if it has sent all that it had.
fn feed_first(peer: Peer, local: &Local, peers: &mut Peers) -> bool {
    let Some(link) = peers.link_mut(peer) else {
        return false;
    };
    if !link.stream().is_flushed() {
        return false;
    }
    let Some((stripes, sent)) = link.stripes() else {
        return false;
    };
    let Some((piece, buf, from)) = stripes.hand_out_first(sent) else {
        return false;
    };
    let body = Body::Payload {
        buf: &buf,
        from,
        len: piece.len,
    };
    peers.say(peer, &head_of(&piece), body, &local.tuning);
    true
}

/// Notifies the owners of payloads that the peer has.
fn tell_owners(peer: Peer, peers: &mut Peers, inbound: &mut dyn Inbound) -> bool {
    let Some(link) = peers.link_mut(peer) else {
        return false;
    };
    let flushed = link.stream().is_flushed();
    let Some((stripes, sent)) = link.stripes() else {
        return false;
    };
    if flushed {
        stripes.first_is_through(sent);
    }
    let given = stripes.take_confirmed();
    peers.give_back(peer, &given, inbound);
    !given.is_empty()
}

/// Tells the peer which payloads have come.
fn confirm(peer: Peer, local: &Local, peers: &mut Peers) -> bool {
    if peers.link(peer).is_none() {
        return false;
    }
    let arrived = peers.stripes(peer).map(Stripes::take_arrived);
    let arrived = arrived.unwrap_or_default();
    for &number in &arrived {
        let head = Header {
            token: number,
            ..Header::bare(Kind::Taken)
        };
        peers.say(peer, &head, Body::None, &local.tuning);
    }
    !arrived.is_empty()
}
