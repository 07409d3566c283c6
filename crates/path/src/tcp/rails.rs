//! Two links between two hosts: further connections of a peer, and how they are made.
//!
//! The first connection of a peer carries every frame, in order. When a payload is long
//! (`Tuning::stripe_from`) and both hosts have another interface, further connections ("rails") are
//! made, one for each pair of interfaces that no connection uses yet, and such payloads travel in
//! pieces over all of them ([`super::striping`]): any that has room takes the next. A rail is made
//! like the first connection: all addresses raced, the key proved both ways; its claim names the
//! link that it belongs to.
//!
//! | what happened | how it goes on |
//! | --- | --- |
//! | a rail ends | the pieces it carried, unless the peer has confirmed them, go over the others |
//! | the first connection ends | it is made again over any pair of addresses ([`super::reconnect`]); rails carry pieces meanwhile |
//! | it was made again where a rail is | that rail is closed; another is made if there is room |
//! | a rail cannot be made | it is tried again after 20 s, at the next long payload |
//!
//! Rails are read only while a payload comes in pieces, so that short messages cost nothing more.

use super::acceptor::{Acceptor, PendingAccept};
use super::dial::{Dial, Dialled};
use super::local::Local;
use super::peers::Peers;
use super::rail::Rail;
use super::stream::{is_rail, rail_claim};
use super::watcher::{Token, Watcher};
use crate::contract::Inbound;
use crate::peer_set::PeerSet;
use kw_base::{Peer, Tick};
use kw_proto::handshake::Verdict;
use kw_proto::stripe::Carrier;
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::Sock;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Pause after a rail could not be made.
const REST: Duration = Duration::from_secs(20);
/// Rails are numbered from one to this, and from one again: the number must fit beside a rank's.
const MOST_IDS: Carrier = (1 << 24) - 1;

/// Further connections of one peer.
#[derive(Debug, Default)]
struct RailSet {
    rails: Vec<Rail>,
    /// One more, which is being made.
    dial: Option<Box<Dial>>,
    /// Before this no other is tried.
    rest: Tick,
    /// A long payload went over the first connection alone: a rail is wanted.
    wanted: bool,
    /// Names the last rail.
    last: Carrier,
}

impl RailSet {
    /// Sockets that it has open.
    fn sockets(&self) -> usize {
        self.rails.len() + self.dial.as_ref().map_or(0, |d| d.sockets())
    }

    /// Names the next rail.
    fn next_id(&mut self) -> Carrier {
        self.last = self.last % MOST_IDS + 1;
        self.last
    }
}

/// Further connections of all peers.
#[derive(Debug)]
pub struct Rails {
    /// Whether there may be any (`KW_STRIPE`, and several interfaces).
    enabled: bool,
    sets: Vec<Option<Box<RailSet>>>,
    /// Peers to which one more has to be made.
    wanting: PeerSet,
    /// Payload bytes that went over rails that no longer exist.
    sent: u64,
}

impl Rails {
    /// No rails, for this many ranks.
    pub fn new(size: u32, enabled: bool) -> Rails {
        Rails {
            enabled,
            sets: (0..size).map(|_| None).collect(),
            wanting: PeerSet::default(),
            sent: 0,
        }
    }

    /// There are `size` ranks from now on.
    pub fn grow(&mut self, size: u32) {
        let more = self.sets.len()..size as usize;
        self.sets.extend(more.map(|_| None));
    }

    /// The rails of a peer.
    pub fn of(&self, peer: Peer) -> &[Rail] {
        match self.sets.get(peer.idx()) {
            Some(Some(set)) => &set.rails,
            _ => &[],
        }
    }

    /// The rails of a peer, mutable.
    pub fn of_mut(&mut self, peer: Peer) -> &mut [Rail] {
        match self.sets.get_mut(peer.idx()) {
            Some(Some(set)) => &mut set.rails,
            _ => &mut [],
        }
    }

    /// The rails of all peers.
    pub fn all(&self) -> impl Iterator<Item = (Peer, &Rail)> {
        let sets = self.sets.iter().enumerate();
        sets.flat_map(|(i, set)| {
            let rails = set.iter().flat_map(|s| &s.rails);
            rails.map(move |rail| (Peer(i as u32), rail))
        })
    }

    /// Sockets that they have open, including those that are being made.
    pub fn sockets(&self) -> usize {
        self.sets.iter().flatten().map(|s| s.sockets()).sum()
    }

    /// Payload bytes that went over rails.
    pub fn bytes(&self) -> u64 {
        self.sent + self.all().map(|(_, r)| r.sent()).sum::<u64>()
    }

    /// A peer that has open rails or is being called for one, and with which nothing is in flight.
    pub fn idle_peer(&self, busy: &PeerSet) -> Option<Peer> {
        let mut peers = (0..self.sets.len()).map(|i| Peer(i as u32));
        peers.find(|&p| {
            let set = self.sets[p.idx()].as_ref();
            set.is_some_and(|s| s.sockets() > 0) && !busy.contains(p)
        })
    }

    /// Closes a rail.
    pub fn remove(&mut self, peer: Peer, id: Carrier) {
        if let Some(set) = &mut self.sets[peer.idx()] {
            let gone = set.rails.iter().filter(|r| r.id() == id);
            self.sent += gone.map(Rail::sent).sum::<u64>();
            set.rails.retain(|r| r.id() != id);
        }
    }

    /// Makes no more rails to a peer for now.
    pub fn stop_dialing(&mut self, peer: Peer) {
        if let Some(set) = &mut self.sets[peer.idx()] {
            set.dial = None;
        }
    }

    /// The peer no longer exists.
    pub fn forget(&mut self, peer: Peer) {
        self.sets[peer.idx()] = None;
    }

    /// Has the poller report the events that matter of the rails of a peer.
    pub fn listen(&mut self, peer: Peer, poller: &Poller) {
        for rail in self.of_mut(peer) {
            rail.listen(peer, poller);
        }
    }

    /// Whether a further connection to any peer has to be made.
    pub fn is_wanting(&self) -> bool {
        !self.wanting.is_empty()
    }

    /// A long payload goes to this peer: returns whether there is a rail for it. If not, one is
    /// made.
    pub fn want(&mut self, peer: Peer, watcher: &mut Watcher) -> bool {
        let Some(set) = self.sets.get_mut(peer.idx()) else {
            return false;
        };
        let set = set.get_or_insert_default();
        if set.rails.is_empty() {
            set.wanted = true;
            self.note_wanting(peer, watcher);
            return false;
        }
        true
    }

    fn note_wanting(&mut self, peer: Peer, watcher: &mut Watcher) {
        if self.wanting.insert(peer) {
            watcher.hurry();
        }
    }

    /// Dials rails that are wanted, advances those that are being dialled, and returns when to come
    /// again. `room`: there is room for more connections.
    pub fn dial_all(
        &mut self,
        now: Tick,
        room: bool,
        (local, watcher): (&Local, &mut Watcher),
        peers: &Peers,
        inbound: &mut dyn Inbound,
    ) -> Tick {
        let mut next = Tick::NEVER;
        for peer in self.wanting.take() {
            self.advance(peer, now, (local, &mut *watcher), peers);
            let at = self.dial(peer, now, room, (local, &mut *watcher), peers, inbound);
            next = next.min(at);
            if at != Tick::NEVER {
                self.note_wanting(peer, watcher);
            }
        }
        next
    }

    /// Continues the dial of a rail, or begins one. Returns when to come again; never: there is
    /// nothing to do for now.
    fn dial(
        &mut self,
        peer: Peer,
        now: Tick,
        room: bool,
        (local, watcher): (&Local, &mut Watcher),
        peers: &Peers,
        inbound: &mut dyn Inbound,
    ) -> Tick {
        let Some(set) = &mut self.sets[peer.idx()] else {
            return Tick::NEVER;
        };
        if let Some(dial) = &mut set.dial {
            if let Ok(at) = dial.tick(now, &local.identity, watcher.poller(), &[]) {
                return at;
            }
            (set.dial, set.rest) = (None, now + REST);
            return Tick::NEVER;
        }
        if !std::mem::take(&mut set.wanted) || now < set.rest || peers.is_closed() {
            return Tick::NEVER;
        }
        if peers.addresses.of(peer).is_empty() {
            inbound.on_stray(peer);
            return Tick::NEVER;
        }
        if peers.link(peer).is_none() {
            return Tick::NEVER;
        }
        if room && self.begin(peer, (local, watcher), peers) {
            return now;
        }
        if let Some(set) = &mut self.sets[peer.idx()]
            && set.rails.is_empty()
        {
            set.rest = now + REST;
        }
        Tick::NEVER
    }

    /// Dials the peer's addresses on links that are not used yet. `false`: there are none.
    fn begin(
        &mut self,
        peer: Peer,
        (local, watcher): (&Local, &mut Watcher),
        peers: &Peers,
    ) -> bool {
        let Some(link) = peers.link(peer) else {
            return false;
        };
        let number = link.stream().number();
        let rails = self.of(peer).iter().map(|r| r.ends().1);
        let used = rails.chain(link.addresses().map(|a| a.1));
        let known = peers.addresses.of(peer);
        let used: Vec<_> = used.map(|a| known.interface_of(a)).collect();
        let anywhere = local.tuning.rails_anywhere && used.len() < 2;
        let elsewhere = |a: &SocketAddr| anywhere || !used.contains(&known.interface_of(a.ip()));
        let addresses: Vec<_> = known.addresses().filter(elsewhere).collect();
        if addresses.is_empty() || number == 0 {
            return false;
        }
        let token = (peer, Token::RailDial(peer));
        let mut dial = local.dial(token, known, addresses, rail_claim(number), None);
        dial.start(&local.identity, watcher.poller(), &[]);
        if let Some(set) = &mut self.sets[peer.idx()] {
            set.dial = Some(Box::new(dial));
        }
        true
    }

    /// Advances the dial of a rail. Returns whether there is one more.
    pub fn advance(
        &mut self,
        peer: Peer,
        now: Tick,
        (local, watcher): (&Local, &mut Watcher),
        peers: &Peers,
    ) -> bool {
        let set = self.sets.get_mut(peer.idx()).and_then(Option::as_mut);
        let Some(set) = set else {
            return false;
        };
        let Some(dial) = &mut set.dial else {
            return false;
        };
        match dial.advance(now, watcher.poller()) {
            Dialled::Connected(sock, _, _) => {
                set.dial = None;
                self.add(peer, sock, (local, watcher), peers);
                true
            }
            _ => false,
        }
    }

    /// Takes a connection into use as a rail; one that turns out to be on a link that is used
    /// already is closed.
    fn add(
        &mut self,
        peer: Peer,
        sock: Sock,
        (local, watcher): (&Local, &mut Watcher),
        peers: &Peers,
    ) {
        let Some(ends) = sock.ends().map(|(h, t)| (h.ip(), t.ip())) else {
            return;
        };
        let other = self.is_other_link(peer, ends, local, peers);
        let set = self.sets[peer.idx()].get_or_insert_default();
        let id = set.next_id();
        let number = Token::Rail(peer, id).bits();
        let watched = || watcher.poller().change(&sock, number, Interest::Read);
        if !other || watched().is_err() {
            return;
        }
        // If the system does not know these options, it finds out later that a link is gone.
        let _ = sock.watch(local.tuning.silence);
        set.rails.push(Rail::new(sock, id, ends, &local.tuning));
        // Perhaps there is a third link.
        set.wanted = true;
        self.note_wanting(peer, watcher);
    }

    /// A connected peer wants a further connection, which is pending at the acceptor under this
    /// key.
    pub fn answer(
        &mut self,
        peer: Peer,
        (acceptor, key): (&mut Acceptor, u64),
        (local, watcher): (&Local, &mut Watcher),
        peers: &Peers,
    ) {
        let Some(pending) = acceptor.take(key) else {
            return;
        };
        let wanted = self.is_welcome(peer, &pending, local, peers);
        let verdict = match wanted {
            true => Verdict::Welcome,
            false => Verdict::Duplicate,
        };
        let claim = pending.claim();
        if let Some(sock) = pending.answer(verdict, claim)
            && wanted
        {
            self.sets[peer.idx()].get_or_insert_default().dial = None;
            self.add(peer, sock, (local, watcher), peers);
        }
    }

    fn is_welcome(
        &self,
        peer: Peer,
        pending: &PendingAccept,
        local: &Local,
        peers: &Peers,
    ) -> bool {
        let Some(link) = peers.link(peer) else {
            return false;
        };
        let set = self.sets[peer.idx()].as_ref();
        let ours_counts = local.precedes(peer) && set.is_some_and(|s| s.dial.is_some());
        let claim = pending.claim();
        let known = is_rail(&claim) && link.stream().number() == claim.link;
        let other = |ends| self.is_other_link(peer, ends, local, peers);
        self.enabled
            && !peers.is_closed()
            && known
            && !ours_counts
            && pending.ends().is_some_and(other)
    }

    /// Whether a connection between these addresses would be on a link that no other connection to
    /// this peer uses.
    fn is_other_link(
        &self,
        peer: Peer,
        (here, there): (IpAddr, IpAddr),
        local: &Local,
        peers: &Peers,
    ) -> bool {
        let rails = self.of(peer);
        if local.tuning.rails_anywhere {
            return rails.is_empty();
        }
        let first = peers.link(peer).and_then(|l| l.addresses());
        let mut used = rails.iter().map(Rail::ends).chain(first);
        let known = peers.addresses.of(peer);
        let (ours, theirs) = (local.interface(here), known.interface_of(there));
        used.all(|(h, t)| {
            let apart = theirs.is_none() || known.interface_of(t) != theirs;
            local.interface(h) != ours && apart
        })
    }

    /// The rails of a peer on the link of its first connection.
    pub fn beside_first(&self, peer: Peer, local: &Local, peers: &Peers) -> Vec<Carrier> {
        let first = peers.link(peer).and_then(|l| l.addresses());
        let Some((here, _)) = first else {
            return Vec::new();
        };
        let ours = local.interface(here);
        let same = |r: &&Rail| !local.tuning.rails_anywhere && local.interface(r.ends().0) == ours;
        self.of(peer).iter().filter(same).map(Rail::id).collect()
    }

    /// The current rails, for people.
    pub fn network<'a>(&'a self, local: &'a Local) -> impl Iterator<Item = String> + 'a {
        self.all().map(|(peer, rail)| {
            let (here, there) = rail.ends();
            let (device, sent) = (local.interface(here), rail.sent());
            format!(
                "tcp to rank {peer}, further link: {here} ({device}) to {there}; {sent} bytes of long messages sent over it"
            )
        })
    }
}
