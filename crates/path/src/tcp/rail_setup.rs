//! Making further connections ([`super::rails`]): which links there are, calling and being called.

use super::acceptor::PendingAccept;
use super::dial::Dialled;
use super::rail::Rail;
use super::stream::is_rail;
use super::*;
use kw_proto::handshake::Verdict;
use kw_proto::stripe::Carrier;

/// How long no rail is tried after one could not be made.
const REST: Duration = Duration::from_secs(20);
/// Strands are numbered from one to here, and from one again: the number of one must fit beside a rank's.
const MOST_IDS: Carrier = (1 << 24) - 1;

impl TcpPath {
    /// Our interface with this address; an address of none stands for itself.
    pub(super) fn interface(&self, address: IpAddr) -> String {
        let found = self.own.iter().find(|i| i.addr == address);
        found.map_or_else(|| address.to_string(), |i| i.name.clone())
    }

    /// Whether a connection between these addresses would be on a link that no other connection to this peer uses.
    fn is_other_link(&self, peer: Peer, here: IpAddr, there: IpAddr) -> bool {
        let rail_set = self.bundles[peer.idx()].as_ref();
        let rails = rail_set.iter().flat_map(|b| &b.rails);
        let first = match &self.slots[peer.idx()] {
            Slot::Up(link) => link.addresses(),
            _ => None,
        };
        let mut used = rails.map(|s| (s.here, s.there)).chain(first);
        if self.tuning.rails_anywhere {
            return rail_set.is_none_or(|b| b.rails.is_empty());
        }
        let known = &self.known[peer.idx()];
        let (ours, theirs) = (self.interface(here), known.interface_of(there));
        used.all(|(h, t)| {
            let apart = theirs.is_none() || known.interface_of(t) != theirs;
            self.interface(h) != ours && apart
        })
    }

    /// Whether our host has several interfaces that the ranks may use.
    pub(super) fn has_links(&self) -> bool {
        let mut names = self.sources.iter().map(|&a| self.interface(a));
        let first = names.next();
        self.tuning.rails_anywhere || names.any(|n| Some(n) != first)
    }

    /// Dials rails that are wanted, moves those that are being dialled, and says when to come again.
    pub(super) fn dial_rails<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> Tick {
        let mut next = Tick::NEVER;
        for peer in std::mem::take(&mut self.wanting) {
            let at = self.want_rail(peer, now, inbound);
            next = next.min(at);
            if at != Tick::NEVER {
                self.want(peer);
            }
        }
        next
    }

    /// A further connection to this peer is to be made.
    pub(super) fn want(&mut self, peer: Peer) {
        if note(&mut self.wanting, peer) {
            self.patience = 0;
        }
    }

    /// When to come again; never: there is nothing to do for now.
    fn want_rail<I: Inbound>(&mut self, peer: Peer, now: Tick, inbound: &mut I) -> Tick {
        self.advance_rail(peer, now);
        let Some(rail_set) = &mut self.bundles[peer.idx()] else {
            return Tick::NEVER;
        };
        if let Some(dial) = &mut rail_set.dial {
            if let Ok(at) = dial.tick(now, &self.identity, &self.poller, &[]) {
                return at;
            }
            rail_set.dial = None;
            rail_set.rest = now + REST;
            return Tick::NEVER;
        }
        if !std::mem::take(&mut rail_set.wanted) || now < rail_set.rest || self.closed {
            return Tick::NEVER;
        }
        if self.known[peer.idx()].is_empty() {
            inbound.on_stray(peer);
            return Tick::NEVER;
        }
        if !matches!(self.slots[peer.idx()], Slot::Up(_)) {
            return Tick::NEVER;
        }
        match self.begin_rail(peer) {
            true => now,
            false => {
                if let Some(rail_set) = &mut self.bundles[peer.idx()]
                    && rail_set.rails.is_empty()
                {
                    rail_set.rest = now + REST;
                }
                Tick::NEVER
            }
        }
    }

    /// Dials the peer's addresses on links that are not used yet. `false`: there are none, or there is no room.
    fn begin_rail(&mut self, peer: Peer) -> bool {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return false;
        };
        let number = link.stream.number;
        let rail_set = self.bundles[peer.idx()].iter();
        let rails = rail_set.flat_map(|b| &b.rails).map(|s| s.there);
        let used = rails.chain(link.addresses().map(|a| a.1));
        let known = &self.known[peer.idx()];
        let used: Vec<_> = used.map(|a| known.interface_of(a)).collect();
        let anywhere = self.tuning.rails_anywhere && used.len() < 2;
        let elsewhere = |a: &SocketAddr| anywhere || !used.contains(&known.interface_of(a.ip()));
        let addresses: Vec<_> = known.addresses().filter(elsewhere).collect();
        let room = self.most == usize::MAX || self.connections() * 2 < self.most;
        if addresses.is_empty() || number == 0 || !room {
            return false;
        }
        let mut dial = self.new_dial(peer, tag::RAIL_DIAL, addresses, Stream::rail(number));
        dial.start(&self.identity, &self.poller, &[]);
        if let Some(rail_set) = &mut self.bundles[peer.idx()] {
            rail_set.dial = Some(Box::new(dial));
        }
        true
    }

    /// Moves the dial of a rail on.
    pub(super) fn advance_rail(&mut self, peer: Peer, now: Tick) -> bool {
        let Some(rail_set) = &mut self.bundles[peer.idx()] else {
            return false;
        };
        let Some(dial) = &mut rail_set.dial else {
            return false;
        };
        match dial.advance(now, &self.poller) {
            Dialled::Connected(sock, _, _) => {
                rail_set.dial = None;
                self.add_rail(peer, sock);
                true
            }
            _ => false,
        }
    }

    /// Takes a connection into use as a rail; one that turns out to be on a link that is used already is closed.
    fn add_rail(&mut self, peer: Peer, sock: Sock) {
        let ends = sock.here().ok().zip(sock.there().ok());
        let Some((here, there)) = ends.map(|(h, t)| (h.ip(), t.ip())) else {
            return;
        };
        let other = self.is_other_link(peer, here, there);
        let rail_set = self.bundles[peer.idx()].get_or_insert_default();
        rail_set.next = rail_set.next % MOST_IDS + 1;
        let number = tag::rail(peer, rail_set.next);
        if !other || self.poller.change(&sock, number, Interest::Read).is_err() {
            return;
        }
        // Where the system does not know these options, it finds out later that a link is gone.
        let _ = sock.watch(self.tuning.silence);
        let rail = Rail::new(sock, rail_set.next, here, there, &self.tuning);
        rail_set.rails.push(rail);
        // Perhaps there is a third link.
        rail_set.wanted = true;
        self.want(peer);
    }

    /// A connected peer wants to have a further connection.
    pub(super) fn rail_pending(&mut self, peer: Peer, key: u64) -> bool {
        let Some(pending) = self.acceptor.take(key) else {
            return false;
        };
        let answer = match self.wants_rail(peer, &pending) {
            true => Verdict::Welcome,
            false => Verdict::Duplicate,
        };
        let claim = pending.claim();
        if let Some(sock) = pending.answer(answer, claim)
            && answer == Verdict::Welcome
            && self.poller.change(&sock, tag::RAIL, Interest::Read).is_ok()
        {
            let rail_set = self.bundles[peer.idx()].get_or_insert_default();
            rail_set.dial = None;
            self.add_rail(peer, sock);
        }
        true
    }

    fn wants_rail(&self, peer: Peer, pending: &PendingAccept) -> bool {
        let Some(Slot::Up(link)) = self.slot(peer) else {
            return false;
        };
        let rail_set = self.bundles[peer.idx()].as_ref();
        let ours_counts = self.me < peer && rail_set.is_some_and(|b| b.dial.is_some());
        let known = is_rail(&pending.claim()) && link.stream.number == pending.claim().link;
        let ends = pending.ends();
        let other = |(here, there)| self.is_other_link(peer, here, there);
        self.stripes && !self.closed && known && !ours_counts && ends.is_some_and(other)
    }
}
