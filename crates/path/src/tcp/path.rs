//! Interface for the engine: TCP as a [`Path`].

use super::TcpPath;
use super::peers::down;
use crate::address::Known;
use crate::contract::{Body, Down, Inbound, Lines, Path, Sent};
use kw_base::{Calibration, Peer, Tick};
use kw_proto::p2p::prices;
use kw_proto::wire::Header;

impl Path for TcpPath {
    fn lines(&self, peer: Peer, host: &Calibration) -> Lines {
        prices::tcp(host, &self.net.peers.network(peer))
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn wants_address(&self, peer: Peer) -> bool {
        self.net.peers.wants_address(peer)
    }

    fn introduce(&mut self, peer: Peer, text: &str) -> Result<(), Down> {
        let address = Known::read(text).map_err(|why| down(peer, why.to_string()))?;
        if !self.net.peers.addresses.learn(peer, address) {
            return Err(down(peer, "there is no such rank"));
        }
        self.connector.go_on(&mut self.net, peer);
        Ok(())
    }

    #[inline]
    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        debug_assert_eq!(body.len(), head.body_len(), "body of {head:?}");
        let net = &mut self.net;
        if net.striping.is_for(body.len())
            && let Some(sent) = net.send_striped(to, (head, body), cookie)
        {
            return Ok(sent);
        }
        match net.peers.send(to, (head, body), cookie, &net.local.tuning) {
            Some(sent) => sent,
            None => self.connector.send(net, to, (head, body), cookie),
        }
    }

    fn poll(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let mut moved = self.begin_turn(inbound);
        let few = self.net.peers.lists().live.len() <= self.net.local.tuning.few_links;
        if few {
            for i in (0..self.net.peers.lists().live.len()).rev() {
                // A pull may end a connection, and with it shorten the list.
                if let Some(peer) = self.net.peers.lists().live.get(i) {
                    moved |= self.connector.pull(&mut self.net, peer, inbound);
                }
            }
            self.net.watcher.count_down();
        }
        if !few || self.net.watcher.is_hurried() || self.is_urgent(now) {
            moved |= self.look(now, inbound);
        }
        self.end_turn(inbound) | moved
    }

    #[inline]
    fn poll_from(&mut self, peer: Peer, now: Tick, inbound: &mut dyn Inbound) -> bool {
        if self.net.watcher.is_hurried() || self.net.peers.link(peer).is_none() {
            return self.poll(now, inbound);
        }
        self.net.watcher.count_down();
        let moved = self.begin_turn(inbound);
        let moved = self.connector.pull(&mut self.net, peer, inbound) | moved;
        self.end_turn(inbound) | moved
    }

    fn pending(&self) -> bool {
        self.net.peers.has_pending()
    }

    fn close(&mut self) {
        if !self.net.peers.is_closed() {
            self.net.peers.close(&self.net.local.tuning);
        }
    }
}
