//! Two links between two hosts: long payloads go over both.
//!
//! The first connection of a peer carries every frame, in order. When a payload is long (`Tuning::stripe_from`) and both hosts have another
//! interface, further connections ("rails") are made, one for each pair of interfaces that no connection uses yet, and such payloads travel in
//! pieces over all of them (see [`kw_proto::stripe`]): whichever has room takes the next. A rail is made as the first connection is: all addresses
//! raced, the key proved both ways; its claim says which link it belongs to.
//!
//! | what happened | how it goes on |
//! | --- | --- |
//! | a rail ends | what it carried, and the peer has not confirmed, goes again over the others |
//! | the first connection ends | it is made anew over any pair of addresses ([`super::reconnect`]); rails carry pieces meanwhile |
//! | it was made anew where a rail is | that rail is closed; another is made where there is room for one |
//! | a rail cannot be made | it is tried again after 20 s ([`super::rail_setup`]), at the next long payload |
//!
//! Strands are read only while a payload comes in pieces, so that short messages cost nothing more.

use super::rail::Rail;
use super::*;
use kw_proto::stripe::Carrier;

/// Further connections of one peer.
#[derive(Debug, Default)]
pub struct RailSet {
    pub rails: Vec<Rail>,
    /// One more, that is being made.
    pub dial: Option<Box<Dial>>,
    /// Before this no other is tried.
    pub rest: Tick,
    /// A long payload went over the first connection alone: a rail is wanted.
    pub wanted: bool,
    /// Names the next rail.
    pub next: Carrier,
}

impl RailSet {
    /// Sockets that it has open.
    pub fn sockets(&self) -> usize {
        self.rails.len() + self.dial.as_ref().map_or(0, |d| d.sockets())
    }
}

impl TcpPath {
    /// A further connection is over: what it carried goes again.
    #[cold]
    pub(super) fn drop_rail(&mut self, peer: Peer, id: Carrier) {
        if let Some(rail_set) = &mut self.bundles[peer.idx()] {
            for rail in rail_set.rails.iter().filter(|s| s.id == id) {
                self.striped_bytes += rail.sent;
            }
            rail_set.rails.retain(|s| s.id != id);
        }
        if let Some(stripes) = self.slots[peer.idx()].stripes() {
            self.striped_again += stripes.out.lost(id) as u64;
            self.note_striping(peer);
        }
    }

    /// Closes all further connections of a peer.
    pub(super) fn drop_rails(&mut self, peer: Peer) {
        let all = self.bundles[peer.idx()].iter().flat_map(|b| &b.rails);
        for id in all.map(|s| s.id).collect::<Vec<_>>() {
            self.drop_rail(peer, id);
        }
        if let Some(rail_set) = &mut self.bundles[peer.idx()] {
            rail_set.dial = None;
        }
    }

    /// The poller tells of a rail: it can be read or written, or has ended. (Of one that waits for its payload to begin, only its end.)
    pub(super) fn rail_ready<I: Inbound>(&mut self, number: u64, inbound: &mut I) -> bool {
        let (peer, id) = (Peer(number as u32), (number >> 32) as Carrier);
        let rail_set = self.bundles[peer.idx()].iter();
        let ended = |s: &Rail| s.id == id && s.heard == Interest::End;
        if rail_set.flat_map(|b| &b.rails).any(ended) {
            self.drop_rail(peer, id);
        }
        let moved = self.serve_rails(peer, true, inbound);
        self.listen_to_rails(peer);
        moved
    }

    /// Has the poller tell of what matters of the rails of a peer.
    pub(super) fn listen_to_rails(&mut self, peer: Peer) {
        let rail_set = self.bundles[peer.idx()].iter_mut();
        for rail in rail_set.flat_map(|b| &mut b.rails) {
            let want = match (rail.is_early(), rail.is_sending()) {
                (true, _) => Interest::End,
                (_, true) => Interest::Both,
                _ => Interest::Read,
            };
            let number = tag::rail(peer, rail.id);
            // A descriptor of ours that is registered can be changed.
            if rail.heard != want && self.poller.change(&rail.sock, number, want).is_ok() {
                rail.heard = want;
            }
        }
    }

    /// Before a sleep.
    pub(super) fn arm_rails(&mut self, batch: u32) {
        for i in 0..self.striping.len() {
            let peer = self.striping[i];
            self.listen_to_rails(peer);
            let rail_set = self.bundles[peer.idx()].iter_mut();
            for rail in rail_set.flat_map(|b| &mut b.rails) {
                rail.wake_for(batch);
            }
        }
    }

    /// The first connection was made anew: rails on its link are closed.
    pub(super) fn part_from_rails(&mut self, peer: Peer) {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return;
        };
        let first = link.addresses();
        if self.tuning.rails_anywhere {
            return;
        }
        let rails = self.bundles[peer.idx()].iter().flat_map(|b| &b.rails);
        let same = |s: &&Rail| {
            first.is_some_and(|(here, _)| self.interface(here) == self.interface(s.here))
        };
        for id in rails.filter(same).map(|s| s.id).collect::<Vec<_>>() {
            self.drop_rail(peer, id);
        }
    }

    /// Closes the rails of a peer with which nothing is under way in pieces, to make room. Whether there was one.
    pub(super) fn drop_idle_rails(&mut self) -> bool {
        let idle = |i: &usize| {
            let open = self.bundles[*i].as_ref().is_some_and(|b| b.sockets() > 0);
            open && !self.striping.contains(&Peer(*i as u32))
        };
        let Some(at) = (0..self.bundles.len()).find(idle) else {
            return false;
        };
        self.drop_rails(Peer(at as u32));
        true
    }

    /// Which rails there are, for people.
    pub(super) fn network_of_rails(&self) -> Vec<String> {
        let all = self.bundles.iter().enumerate();
        let rails = all.flat_map(|(i, b)| {
            b.iter()
                .flat_map(move |b| b.rails.iter().map(move |s| (i, s)))
        });
        let line = |(peer, s): (usize, &Rail)| {
            let device = self.interface(s.here);
            let (here, there, sent) = (s.here, s.there, s.sent);
            format!(
                "tcp to rank {peer}, further link: {here} ({device}) to {there}; {sent} bytes of long messages sent over it"
            )
        };
        rails.map(line).collect()
    }
}
