//! Peers by their pending work, and sending over a connection, which adds them to the lists.

use super::Tuning;
use super::link::Link;
use crate::contract::{Body, Sent};
use crate::peer_set::PeerSet;
use kw_base::Peer;
use kw_proto::wire::Header;
use std::io;

/// The peers that a turn visits.
#[derive(Debug, Default)]
pub struct ReadyLists {
    /// Peers with a connection.
    pub live: PeerSet,
    /// Connected peers whose connection has something left to send.
    pub backlog: PeerSet,
    /// Connected peers whose connection has lent data that has to be acknowledged.
    pub unacked: PeerSet,
    /// Peers that are being called.
    pub dialing: PeerSet,
    /// Peers that want our connection closed, and did not get that yet.
    pub yielding: PeerSet,
    /// Peers to which short frames are joined (see `link::coalesce`).
    pub coalescing: PeerSet,
    /// Counts the rank's polls.
    looks: u64,
    /// Counts uses of connections.
    uses: u64,
}

impl ReadyLists {
    /// Sends a frame over a connection (see [`Link::send`]), and notes the work that is left.
    #[inline]
    pub fn send(
        &mut self,
        link: &mut Link,
        to: Peer,
        (head, body): (&Header, Body<'_>),
        cookie: u64,
        tuning: &Tuning,
    ) -> io::Result<Sent> {
        self.used(link);
        let idle = link.stream().is_flushed();
        link.count_frame(body.len(), self.looks, tuning);
        let sent = link.send(head, body, cookie, tuning)?;
        if link.coalesces_now() {
            self.coalescing.insert(to);
        }
        if idle && !link.stream().is_flushed() {
            self.backlog.insert(to);
        }
        self.note_unacked(to, link);
        Ok(sent)
    }

    /// The rank polls.
    #[inline]
    pub fn looked(&mut self) {
        self.looks += 1;
    }

    /// A connection is used.
    #[inline]
    pub fn used(&mut self, link: &mut Link) {
        self.uses += 1;
        link.use_now(self.uses);
    }

    /// Whether a connection waits for an acknowledgement may have changed.
    #[inline]
    pub fn note_unacked(&mut self, peer: Peer, link: &Link) {
        if link.awaits_ack() {
            self.unacked.insert(peer);
        }
    }

    /// A peer no longer has a connection, nor is one being made.
    pub fn forget(&mut self, peer: Peer) {
        let lists = [
            &mut self.live,
            &mut self.backlog,
            &mut self.unacked,
            &mut self.dialing,
            &mut self.yielding,
            &mut self.coalescing,
        ];
        for list in lists {
            list.remove(peer);
        }
    }
}
