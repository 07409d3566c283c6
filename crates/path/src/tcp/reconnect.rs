//! Connections that break, and links that go on over the next one.
//!
//! A link outlives its connections ([`super::stream`], [`kw_proto::retransmit`]). When one ends without a goodbye, what its kernel still has is read, and
//! the peer is dialled again, over every pair of addresses; whichever side finds out first. The new connection's handshake says
//! under the key which link it carries on and how much of it each side has ([`Claim`]), and each goes on from there.
//!
//! | what happened | who finds out | how it goes on |
//! | --- | --- | --- |
//! | the connection was reset or closed on the way | both sides, at the next look | dialled by both; the lower rank's call counts |
//! | only one side was told | that side | its call reaches the other, whose connection then ends |
//! | the rank ended | its kernel closes the connection | three rounds (0.4 s) in which all addresses refuse: lost |
//! | its host or the way is gone | the kernel, after `Tuning::silence` without an answer | dialled for 5 s, then lost |
//! | the rank is stopped | nobody: its kernel answers | its full socket may end the connection; the call waits until it goes on |
//!
//! A rank that was connected to, and never sent first, does not know where the peer listens; it asks ([`Inbound::on_stray`]).

use super::disconnect::End;
use super::*;

impl TcpPath {
    /// A connection ended.
    #[cold]
    pub(super) fn ended<I: Inbound>(&mut self, peer: Peer, end: End, inbound: &mut I) -> bool {
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return true;
        };
        let end = unacked_timeout::why(end, &link.stream);
        let what = end.what(self.me, peer, &link.way());
        if link.parting && end.may_go_on() && self.parted(peer, inbound) {
            return true;
        }
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return true;
        };
        let over = link.stream.bye || self.closed && link.stream.is_flushed();
        if over || link.stream.kept.is_none() || !end.may_go_on() {
            self.bury(peer, format!("{what}; {}", end.advice(peer)), inbound);
            return true;
        }
        self.part(peer, what);
        if self.known[peer.idx()].is_empty() {
            inbound.on_stray(peer);
        }
        self.go_on(peer);
        true
    }

    /// Takes the link from its connection, which is closed.
    pub(super) fn part(&mut self, peer: Peer, why: String) {
        let slot = &mut self.slots[peer.idx()];
        let old = std::mem::replace(slot, Slot::Idle(None));
        if let Slot::Up(link) = old {
            let mut stream = link.stream;
            stream.broke = why;
            *slot = Slot::Idle(Some(Box::new(stream)));
        }
        self.lists.forget(peer);
    }

    /// Dials a peer whose connection broke, if it is known where it listens.
    pub(super) fn go_on(&mut self, peer: Peer) {
        let Slot::Idle(Some(stream)) = &mut self.slots[peer.idx()] else {
            return;
        };
        if stream.broke.is_empty() && stream.is_flushed() || self.known[peer.idx()].is_empty() {
            return;
        }
        let stream = std::mem::take(&mut **stream);
        self.dial(peer, stream);
        self.start_dial(peer);
        // The dial's times count from the next look; without the alarm that is the next poll.
        let _ = self.poller.set_alarm(Tick(1));
    }
}
