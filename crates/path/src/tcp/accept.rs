//! Those who call us: hearing who stands at the [acceptor](super::acceptor), and which of their connections is taken.

use super::acceptor::PendingAccept;
use super::stream::is_rail;
use super::*;
use kw_proto::handshake::Verdict;

impl TcpPath {
    /// Our own attempts have failed for now: a connection of the peer that waits for this is welcome.
    pub(super) fn fall_back<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Some(pending) = self.acceptor.parked(peer) else {
            return false;
        };
        self.welcome(peer, pending, inbound);
        true
    }

    fn welcome<I: Inbound>(&mut self, peer: Peer, pending: PendingAccept, inbound: &mut I) {
        let slot = &mut self.slots[peer.idx()];
        let mut fresh = Stream::new(self.reliable);
        let stream = match slot {
            Slot::Dialing(dial) => &mut dial.stream,
            Slot::Idle(Some(stream)) => stream,
            _ => &mut fresh,
        };
        let claim = pending.claim();
        if !stream.allows(&claim) {
            return;
        }
        let ours = Claim {
            link: claim.link,
            ..stream.claim()
        };
        // When the connection breaks at the last moment the peer comes again, or our dial goes on.
        if let Some(sock) = pending.answer(Verdict::Welcome, ours)
            && self
                .poller
                .change(&sock, tag::LINK | peer.0 as u64, Interest::Read)
                .is_ok()
        {
            let stream = std::mem::take(stream);
            self.connected(peer, sock, stream, claim, inbound);
        }
    }

    /// A stranger said something.
    pub(super) fn advance_pending<I: Inbound>(&mut self, key: u64, inbound: &mut I) -> bool {
        let Some(rank) = self.acceptor.advance(key) else {
            return false;
        };
        let peer = Peer(rank);
        if self.acceptor.claim(key).is_some_and(|c| is_rail(&c)) {
            return self.rail_pending(peer, key);
        }
        self.leave(peer, key, inbound);
        match self.slot(peer) {
            Some(Slot::Idle(_)) => {}
            Some(Slot::Dialing(dial)) if self.me > peer || dial.is_idle() => {}
            Some(Slot::Dialing(_)) => return true,
            _ => {
                if let Some(pending) = self.acceptor.take(key) {
                    pending.answer(Verdict::Duplicate, Claim::default());
                }
                return true;
            }
        }
        if let Some(pending) = self.acceptor.take(key) {
            self.welcome(peer, pending, inbound);
        }
        true
    }

    /// A connected peer calls. If it knows of the connection that we have, that one is over: what it has brought is read, and it is
    /// left. If not, ours is looked at: it may be over without our knowledge.
    fn leave<I: Inbound>(&mut self, peer: Peer, key: u64, inbound: &mut I) {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return;
        };
        let Some(claim) = self.acceptor.claim(key) else {
            return;
        };
        if link.stream.kept.is_none() || link.stream.bye || !link.stream.allows(&claim) {
            return;
        }
        let knows = claim.connections >= link.stream.claim().connections;
        let why = format!(
            "the connection of ranks {} and {peer} ({}) was ended by rank {peer}",
            self.me,
            link.way()
        );
        while matches!(self.slots[peer.idx()], Slot::Up(_)) && self.pull(peer, inbound) {}
        if knows && matches!(self.slots[peer.idx()], Slot::Up(_)) {
            self.part(peer, why);
        }
    }
}
