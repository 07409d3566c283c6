//! One connection in use: the machine, the frames that go in and come out, and the route to the
//! other side.

use super::frames::Reader;
use super::queue::Queue;
use crate::contract::{Body, Inbound, Sent};
use crate::network_meter::{NetworkMeter, Stretch};
use kw_base::{Peer, Tick};
use kw_proto::p2p::prices::{Network, UDP_CONTROL};
use kw_proto::reliable::keepalive::Keepalive;
use kw_proto::reliable::setup::Welcome;
use kw_proto::reliable::{Conn, Fault, OVERHEAD, Received};
use kw_proto::wire::{Header, Kind, WireError};
use kw_sys::tcp::Measured;
use kw_sys::udp::Sock;
use std::net::SocketAddr;
use std::time::Duration;

/// After this many resent packets there is a log line, and then after twice as many each time,
const MANY: u64 = 64;
/// if they are one in this many of all.
const OFTEN: u64 = 1000;

/// A route to a peer: which of our sockets, and which of its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Position of the socket.
    pub sock: usize,
    /// Address of the peer.
    pub to: SocketAddr,
}

/// Datagrams that are ready to be sent in one call.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    len: usize,
}

/// The other side breaks the protocol; the connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// In its frames.
    #[error("it sent an invalid frame ({0}); check that all ranks load the same library")]
    Frame(#[from] WireError),
    /// In its packets.
    #[error("{0}; check that all ranks load the same library")]
    Packet(#[from] Fault),
}

/// A connection.
#[derive(Debug)]
pub struct Link {
    /// The machine.
    pub conn: Conn,
    queue: Queue,
    reader: Reader,
    /// The route.
    pub way: Way,
    /// Message to repeat if the other side did not receive its welcome.
    pub welcome: Option<Welcome>,
    /// Whether it is still there.
    pub keepalive: Keepalive,
    /// Datagrams that the socket had no room for.
    held: Option<Vec<u8>>,
    network: NetworkMeter,
    stretch: Stretch,
    /// The goodbye was reported.
    pub end_reported: bool,
    /// Logged when this many packets have been resent.
    report: u64,
}

/// How many of `left` datagrams leave in the next call, which takes `most`. If they fill more than
/// one call and not more than two, three quarters: the other side works on these while the rest is
/// sent, and its last piece of work is short.
fn train(left: usize, most: usize) -> usize {
    match left > most && left <= 2 * most {
        true => most.min(left * 3 / 4),
        false => most,
    }
}

impl Link {
    /// Takes a connection into use, with the data queued for it; `near`: it stays within the
    /// machine.
    pub fn new(
        mut conn: Conn,
        queue: Queue,
        (way, near): (Way, bool),
        welcome: Option<Welcome>,
        now: Tick,
    ) -> Link {
        conn.write(queue.end(), !queue.is_empty());
        Link {
            conn,
            queue,
            reader: Reader::default(),
            way,
            welcome,
            keepalive: Keepalive::new(now),
            held: None,
            network: NetworkMeter::new(near),
            stretch: Stretch::default(),
            end_reported: false,
            report: MANY,
        }
    }

    /// Whether something is still to be sent, or has not arrived there. A peer that has said
    /// goodbye needs nothing more.
    pub fn is_busy(&self) -> bool {
        self.conn.is_busy() && !self.reader.bye
    }

    /// Whether the peer has said goodbye.
    pub fn has_bye(&self) -> bool {
        self.reader.bye
    }

    /// Whether the socket must have room again before more can be sent.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Queues a frame.
    #[inline]
    pub fn push(&mut self, head: &Header, body: Body<'_>, cookie: u64) -> Sent {
        let before = self.queue.end();
        let arrived = self.conn.arrived();
        let sent = self.queue.push(head, body, cookie, arrived);
        let wanted = sent == Sent::Queued || head.kind == Kind::Bye;
        self.conn.write(self.queue.end() - before, wanted);
        sent
    }

    /// The caller of the last [`Link::push`] continues: see [`Queue::keep`].
    #[inline]
    pub fn keep(&mut self) {
        self.queue.keep();
    }

    /// A datagram of the other side came. The error is why the connection cannot go on.
    #[inline]
    pub fn receive(
        &mut self,
        peer: Peer,
        now: Tick,
        datagram: &[u8],
        marked: bool,
        inbound: &mut dyn Inbound,
    ) -> Result<Received, Broken> {
        let mut wrong = None;
        let reader = &mut self.reader;
        let got = self.conn.receive(now, datagram, marked, &mut |bytes| {
            if wrong.is_none() {
                wrong = reader.take(peer, bytes, inbound).err();
            }
        });
        match wrong {
            Some(e) => Err(e.into()),
            None => Ok(got?),
        }
    }

    /// Reports the data that has arrived there.
    #[inline]
    pub fn release(&mut self, peer: Peer, inbound: &mut dyn Inbound) {
        self.queue
            .release(self.conn.arrived(), |cookie| inbound.on_sent(peer, cookie));
    }

    /// Known properties of the route.
    pub fn network(&self) -> Network {
        self.network.known()
    }

    /// Reads what the acknowledgements tell about the network, when that is due. Returns whether
    /// something new is known.
    #[inline]
    pub fn learn_network(&mut self, now: Tick) -> bool {
        let arrived = self.conn.arrived();
        self.stretch.note(now, arrived, self.conn.unsent() > 0);
        self.network.is_due(arrived) && self.learn(now, arrived)
    }

    #[cold]
    fn learn(&mut self, now: Tick, arrived: u64) -> bool {
        let Some(trip) = self.conn.round_trip() else {
            return false;
        };
        // The work of both sides, for the packet and for its acknowledgement, is priced separately.
        let work = Duration::from_nanos(2 * UDP_CONTROL as u64);
        let measured = Measured {
            round_trip: trip.saturating_sub(work),
            rate: self.stretch.rate(now, arrived),
        };
        self.network.learn(arrived, Some(measured))
    }

    /// Sends what may be sent now. `idle`: this rank is about to sleep, and acknowledges everything
    /// it has received.
    pub fn flush(
        &mut self,
        now: Tick,
        sock: &Sock,
        batch: &mut Batch,
        most: usize,
        idle: bool,
    ) -> bool {
        let size = self.conn.datagram();
        if let Some(bytes) = self.held.take()
            && !sock.send(self.way.to, &bytes, size)
        {
            self.held = Some(bytes);
            return false;
        }
        let most = (most / size).clamp(1, sock.most());
        let mut moved = false;
        while self.fill(now, batch, train(self.conn.unsent(), most), idle) {
            moved = true;
            let bytes = &batch.bytes[..batch.len];
            if !sock.send(self.way.to, bytes, size) {
                self.held = Some(bytes.to_vec());
                break;
            }
        }
        moved
    }

    /// Puts up to `most` datagrams into the batch, all but the last as long as can be.
    fn fill(&mut self, now: Tick, batch: &mut Batch, most: usize, idle: bool) -> bool {
        let size = self.conn.datagram();
        let want = most * size + OVERHEAD;
        if batch.bytes.len() < want {
            batch.bytes.resize(want, 0);
        }
        batch.len = 0;
        for _ in 0..most {
            let to = &mut batch.bytes[batch.len..];
            let next = self.conn.poll_transmit(now, to);
            let next = if idle {
                next.or_else(|| self.conn.poll_ack(now, to))
            } else {
                next
            };
            let Some(t) = next else { break };
            let len = t.head + (t.data.end - t.data.start) as usize;
            self.queue.read(t.data.start, &mut to[t.head..len]);
            self.conn.seal(&mut to[..len]);
            batch.len += len;
            if len < size {
                break;
            }
        }
        batch.len > 0
    }

    /// Logs that a connection loses much; called now and then.
    pub fn report(&mut self, peer: Peer) {
        let t = self.conn.tally();
        if t.again < self.report || t.again * OFTEN < t.packets {
            return;
        }
        while t.again >= self.report {
            self.report *= 2;
        }
        let (packets, again) = (t.packets, t.again);
        tracing::info!(
            "udp to rank {peer} at {} loses much: {again} of {packets} packets were sent again",
            self.way.to
        );
    }

    /// When this connection has to be served again.
    pub fn next(&self) -> Tick {
        self.conn.next_timeout().min(self.keepalive.next())
    }
}

#[cfg(test)]
mod tests {
    use super::train;

    #[test]
    fn the_last_call_is_the_shorter_one_and_nothing_is_left_over() {
        for (left, calls) in [
            (1, vec![1]),
            (44, vec![44]),
            (46, vec![34, 12]),
            (88, vec![44, 44]),
            (100, vec![44, 42, 14]),
        ] {
            let (mut rest, mut seen) = (left, Vec::new());
            while rest > 0 {
                seen.push(train(rest, 44).min(rest));
                rest -= seen[seen.len() - 1];
            }
            assert_eq!(seen, calls, "{left}");
        }
        assert_eq!(train(1, 1), 1);
        assert_eq!(train(2, 1), 1);
    }
}
