//! A link outlives its connections: data to be sent, sent but unacknowledged data, and the position
//! of received frames.
//!
//! See [`kw_proto::retransmit`] for why nothing is lost, repeated or reordered when a connection
//! breaks.

use super::Tuning;
use super::disconnect::End;
use super::outbox::{COPIED, Outbox};
use super::reader::{Farewell, FrameReader, Turn};
use super::socket::Socket;
use super::stripe::{LinkStripes, Stripes};
use super::unacked::Unacked;
use crate::contract::{Body, Inbound, Sent};
use kw_base::Peer;
use kw_proto::handshake::Claim;
use kw_proto::wire::{Header, Kind};
use std::io;

/// The number of connections in the claim of a further connection of a link: the claim of a first
/// one never has it.
const RAIL: u64 = u64::MAX;

/// Identity of a further connection of a link.
pub fn rail_claim(link: u64) -> Claim {
    Claim {
        link,
        connections: RAIL,
        received: 0,
    }
}

/// Whether a connection with this claim is a further one.
pub fn is_rail(claim: &Claim) -> bool {
    claim.connections == RAIL
}

/// End of the last connection of a link.
#[derive(Clone, Debug)]
pub struct Broken {
    /// For people.
    pub what: String,
    /// It was left, because nothing was answered over it.
    pub silent: bool,
}

/// One link, with or without a connection.
#[derive(Debug, Default)]
pub struct Stream {
    outbox: Outbox,
    unacked: Unacked,
    reader: FrameReader,
    /// Payloads that come or go in pieces over several connections.
    stripes: LinkStripes,
    /// Random number of the link; zero: it has none yet.
    number: u64,
    /// Connections that have carried it.
    connections: u64,
    broken: Option<Broken>,
    /// It has had a connection, and so knows the size of its segments.
    opened: bool,
}

impl Stream {
    /// A link that has had no connection.
    pub fn new(reliable: bool) -> Stream {
        Stream {
            unacked: Unacked::new(reliable),
            ..Stream::default()
        }
    }

    /// Gives it its random number, if it has none.
    pub fn name(&mut self, random: impl Fn() -> u64) {
        while self.number == 0 {
            self.number = random();
        }
    }

    /// Random number of the link.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Prepares it for a connection; the first one, on loopback or not, decides about segments.
    pub fn open(&mut self, segment: u64, tuning: &Tuning) {
        if !self.opened {
            self.opened = true;
            let segment = segment.max(COPIED);
            self.stripes.open(tuning.piece);
            self.outbox.set_segment(segment);
            self.reader.open(segment, tuning);
        }
        self.unacked.open(tuning);
    }

    /// Its connection ended. `None`: it was closed with nothing in flight.
    pub fn lose_connection(&mut self, how: Option<Broken>) {
        self.broken = how;
    }

    /// End of its last connection.
    pub fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// This side's position in it.
    pub fn claim(&self) -> Claim {
        Claim {
            link: self.number,
            connections: self.connections,
            received: self.reader.received(),
        }
    }

    /// Whether a connection with this claim of the peer's could carry this link on. Sides may
    /// differ by one connection, whose welcome only one has received.
    pub fn allows(&self, claim: &Claim) -> bool {
        let fresh = self.connections == 0 && claim.connections == 0 && claim.received == 0;
        let known = self.number == claim.link && self.connections.abs_diff(claim.connections) <= 1;
        let may_go_on = self.is_reliable() && known;
        (fresh || may_go_on) && self.unacked.covers(claim.received)
    }

    /// A connection with this claim of the peer's carries it from now on. `done` is called for the
    /// owners that get their payload back. `false`: it cannot.
    pub fn resume(&mut self, claim: &Claim, done: impl FnMut(u64)) -> bool {
        if !self.allows(claim) {
            return false;
        }
        self.number = claim.link;
        self.broken = None;
        self.reader.resume();
        self.connections = self.connections.max(claim.connections) + 1;
        self.unacked.resume(claim.received, done)
    }

    /// Whether it may have another connection after this one.
    pub fn is_reliable(&self) -> bool {
        self.unacked.is_reliable()
    }

    /// Whether the peer said goodbye, and that was reported.
    #[inline]
    pub fn has_goodbye(&self) -> bool {
        self.reader.farewell() == Farewell::OfRank
    }

    /// Whether the peer wants this connection closed.
    #[inline]
    pub fn is_unwanted(&self) -> bool {
        self.reader.farewell() == Farewell::OfConnection
    }

    /// Whether nothing has to be sent.
    #[inline]
    pub fn is_flushed(&self) -> bool {
        self.outbox.is_empty() && !self.unacked.is_behind()
    }

    /// Whether anything is in flight in pieces.
    #[inline]
    pub fn is_striping(&self) -> bool {
        !self.stripes.is_idle()
    }

    /// Striped payloads, if there ever were any.
    pub fn stripes(&mut self) -> Option<&mut Stripes> {
        self.stripes.get()
    }

    /// Striped payloads, created on first use.
    pub fn make_stripes(&mut self) -> &mut Stripes {
        self.stripes.make()
    }

    /// Whether no frame has come in part.
    pub fn is_between_frames(&self) -> bool {
        self.reader.is_between_frames() && !self.is_striping()
    }

    /// The receiving half.
    #[inline]
    pub fn reader(&self) -> &FrameReader {
        &self.reader
    }

    /// Striped payloads, for a payload that is complete.
    pub fn reader_mut(&mut self) -> &mut FrameReader {
        &mut self.reader
    }

    /// Data kept until it is acknowledged.
    #[inline]
    pub fn unacked(&self) -> &Unacked {
        &self.unacked
    }

    /// The kept data, mutable, to query acknowledgements.
    #[inline]
    pub fn unacked_mut(&mut self) -> &mut Unacked {
        &mut self.unacked
    }

    /// Data waiting to be sent.
    #[inline]
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Queues the rest of a frame after its first `skip` bytes.
    #[inline]
    pub fn queue(&mut self, head: &Header, body: Body<'_>, skip: u64, cookie: u64) -> Sent {
        self.outbox.push(head, body, skip, cookie)
    }

    /// Throws away waiting data: a link that ends with its connection will not send it.
    pub fn drop_queue(&mut self) {
        if !self.is_reliable() {
            self.outbox.clear();
        }
    }

    /// The frame that is queued next is the last one.
    pub fn seal(&mut self) {
        self.outbox.seal();
    }

    /// The last frame of a link that has no connection yet: a goodbye, behind waiting data.
    pub fn queue_goodbye(&mut self) {
        if !self.is_flushed() {
            self.outbox.seal();
            self.outbox.push(&Header::bare(Kind::Bye), Body::None, 0, 0);
        }
    }

    /// Polls the socket once, and passes complete frames on.
    #[inline]
    pub fn read<S: Socket>(
        &mut self,
        sock: &S,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut dyn Inbound,
    ) -> Result<Turn, End> {
        self.reader
            .turn(sock, peer, (&mut self.stripes, tuning), inbound)
    }

    /// One system call: data that has to be sent again, then from the queue. `done` is called for
    /// the owners whose payload is no longer needed.
    pub fn send_some<S: Socket>(
        &mut self,
        sock: &S,
        tuning: &Tuning,
        done: impl FnMut(u64),
    ) -> io::Result<usize> {
        match self.unacked.is_behind() {
            true => self.unacked.repeat(sock, tuning),
            false => self.send_queued(sock, tuning, done),
        }
    }

    /// One system call from the queue.
    pub fn send_queued<S: Socket>(
        &mut self,
        sock: &S,
        tuning: &Tuning,
        mut done: impl FnMut(u64),
    ) -> io::Result<usize> {
        let unacked = &mut self.unacked;
        self.outbox.send_some(sock, tuning.send_chunk, |went| {
            if let Some(cookie) = unacked.went(went, tuning) {
                done(cookie);
            }
        })
    }
}

#[cfg(test)]
mod tests;
