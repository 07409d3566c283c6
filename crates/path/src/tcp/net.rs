//! State shared by all parts of the TCP path: this rank, the poller, the peers, and payloads
//! striped over several connections.

use super::disconnect::End;
use super::local::Local;
use super::peers::{Peers, Pulled, down};
use super::striping::Striping;
use super::watcher::Watcher;
use crate::contract::{Body, Inbound, Sent};
use kw_base::Peer;
use kw_proto::wire::Header;

/// The four parts, each with its own state.
#[derive(Debug)]
pub struct Net {
    pub local: Local,
    pub watcher: Watcher,
    pub peers: Peers,
    pub striping: Striping,
}

impl Net {
    /// Sends a frame with a long payload in pieces over several connections, if there are several.
    #[cold]
    pub fn send_striped(
        &mut self,
        to: Peer,
        frame: (&Header, Body<'_>),
        cookie: u64,
    ) -> Option<Sent> {
        let net = (&self.local, &mut self.watcher);
        self.striping.send(to, frame, cookie, net, &mut self.peers)
    }

    /// Reads from one connection.
    #[inline]
    pub fn pull(&mut self, peer: Peer, inbound: &mut dyn Inbound) -> Result<Pulled, End> {
        self.peers.pull(peer, &self.local.tuning, inbound)
    }

    /// Sends queued data.
    pub fn flush(&mut self, inbound: &mut dyn Inbound) -> bool {
        let (mut moved, mut i) = (false, 0);
        while let Some(peer) = self.peers.lists().backlog.get(i) {
            let (sent, left) = self.push(peer, inbound);
            moved |= sent;
            i += usize::from(left);
        }
        moved
    }

    /// There is room to send to this peer.
    pub fn push_ready(&mut self, peer: Peer, inbound: &mut dyn Inbound) -> bool {
        let waits = self.peers.lists().backlog.contains(peer);
        waits && self.push(peer, inbound).0
    }

    /// Sends queued data for one peer. Returns whether some was sent, and whether the peer stays in
    /// the list of peers with queued data.
    fn push(&mut self, peer: Peer, inbound: &mut dyn Inbound) -> (bool, bool) {
        let sent = self.peers.push(peer, &self.local.tuning, inbound);
        if self.peers.wants_pieces(peer) {
            self.striping.share(peer, &self.local, &mut self.peers);
        }
        (sent, !self.peers.end_push(peer))
    }

    /// Advances payloads that are in flight in pieces.
    #[cold]
    pub fn serve_striping(&mut self, inbound: &mut dyn Inbound) -> bool {
        let net = (&self.local, &self.watcher);
        self.striping.serve_all(net, &mut self.peers, inbound)
    }

    /// The end of a peer: reports it, unless a goodbye was reported already.
    pub fn bury(&mut self, peer: Peer, reason: String, inbound: &mut dyn Inbound) {
        self.striping.forget(peer);
        if self.peers.bury(peer, reason.clone()) {
            inbound.on_down(down(peer, reason), false);
        }
    }

    /// The connection of a peer is closed with nothing in flight: its link rests until it is
    /// needed.
    pub fn rest(&mut self, peer: Peer, inbound: &mut dyn Inbound) {
        self.striping.drop_rails(peer, &mut self.peers);
        self.peers.part(peer, None);
        self.ask_for_address(peer, inbound);
    }

    /// Asks for the address of a peer, if it is not known.
    pub fn ask_for_address(&self, peer: Peer, inbound: &mut dyn Inbound) {
        if self.peers.addresses.of(peer).is_empty() {
            inbound.on_stray(peer);
        }
    }
}
