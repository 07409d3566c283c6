//! Reliable, ordered bytes over datagrams: the machine under `path/udp`, without sockets, clock or
//! memory of the user.
//!
//! A connection ([`Conn`]) joins two ranks and carries one stream of bytes each way. Datagrams may
//! be lost, repeated, damaged, reordered and delayed; the bytes come out as they went in, once and
//! in order. The modules: [`packet`] is the format of a datagram, [`setup`] how two ranks make a
//! connection, [`keepalive`] whether the other one is still there, [`Params`] the numbers and their
//! sources.
//!
//! # Use
//! The owner keeps the bytes that have not arrived, tells the machine how many there are
//! ([`Conn::write`]), and asks it what to send ([`Conn::poll_transmit`]): it gets a header and the
//! stream offset of the bytes that follow. [`Conn::receive`] passes the contents of a datagram to a
//! reader. Nothing happens by itself: at [`Conn::next_timeout`] the owner calls `poll_transmit`
//! again.
//!
//! # How it works
//! - Each packet has a number of its own; acknowledgements name numbers, in ranges (selective
//!   acknowledgement).
//! - A packet is lost when three later ones have arrived, or when one has and 9/8 of a round trip
//!   has passed since (RFC 9002, 6.1). Its bytes go again in a new packet.
//! - If no acknowledgement comes for a while, one packet asks for it, whatever the window says (RFC
//!   9002, 6.2).
//! - [`Congestion`] says how much may be in flight, the pacer how much of it at once, the receiver
//!   how much it takes.
//! - Acknowledgements ride on data that goes the other way; alone they go only when the sender says
//!   that it waits, when something is missing and again when it is lost, after 64 packets or a
//!   millisecond.

pub mod congestion;
mod inflow;
pub mod keepalive;
mod outflow;
mod pacing;
pub mod packet;
mod params;
mod ranges;
mod rtt;
pub mod setup;

pub use congestion::{Congestion, Lan};
pub use outflow::Tally;
pub use params::Params;
pub use ranges::Ranges;

use inflow::Inflow;
use kw_base::Tick;
use outflow::Outflow;
use pacing::Pacer;
use packet::{HEAD_LEN, Head, Kind, LONGEST_HEAD, NOW};
use rtt::Rtt;
use std::ops::Range;
use std::time::Duration;

/// Secret of a connection, shared by its two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// Its number, in every datagram.
    pub number: u32,
    /// Seed of the checksum of every datagram.
    pub seed: u32,
}

/// A datagram to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Bytes of the header, which have been written.
    pub head: usize,
    /// Bytes of the stream that follow it.
    pub data: Range<u64>,
}

/// Result of receiving a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// It was of this connection.
    Taken,
    /// Damaged or from an unknown sender: dropped.
    Dropped,
}

/// The other side breaks the protocol; the connection cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It acknowledges packets that were never sent.
    #[error("it acknowledged a packet that was never sent")]
    Acknowledged,
    /// It sends more than the window allows, or too many packets.
    #[error("it sent more than the window allows")]
    TooMuch,
}

/// One connection.
#[derive(Debug)]
pub struct Conn {
    params: Params,
    me: u32,
    session: Session,
    out: Outflow,
    inn: Inflow,
    rtt: Rtt,
    congestion: Box<dyn Congestion>,
    pacer: Pacer,
    /// When the pacer lets the next packet go.
    paced: Tick,
    heard: Tick,
}

impl Conn {
    /// A connection of rank `me`, with the default congestion control.
    pub fn new(params: Params, me: u32, session: Session, now: Tick) -> Conn {
        let congestion = Box::new(Lan::new(&params));
        Conn::with_congestion(params, me, session, now, congestion)
    }

    /// Like `new`, with another congestion control.
    pub fn with_congestion(
        params: Params,
        me: u32,
        session: Session,
        now: Tick,
        congestion: Box<dyn Congestion>,
    ) -> Conn {
        Conn {
            me,
            session,
            out: Outflow::new(&params),
            inn: Inflow::new(),
            rtt: Rtt::new(&params),
            pacer: Pacer::new(params.burst),
            congestion,
            paced: Tick::NEVER,
            heard: now,
            params,
        }
    }

    /// `n` more bytes of the stream are ready; `wanted`: their owner waits until they have arrived.
    pub fn write(&mut self, n: u64, wanted: bool) {
        self.out.write(n, wanted);
    }

    /// All bytes before this one have arrived: they will not be requested again.
    pub fn arrived(&self) -> u64 {
        self.out.arrived()
    }

    /// The shortest time from a packet to its acknowledgement; `None` before the first one.
    pub fn round_trip(&self) -> Option<Duration> {
        self.rtt.lowest()
    }

    /// Number of datagrams that the unsent bytes fill.
    pub fn unsent(&self) -> usize {
        self.out
            .unsent()
            .div_ceil(room(self.params.datagram) as u64) as usize
    }

    /// Whether written bytes have not arrived yet.
    pub fn is_busy(&self) -> bool {
        self.out.is_busy()
    }

    /// Bytes received and handed on.
    pub fn received(&self) -> u64 {
        self.inn.next()
    }

    /// When the other side was heard last.
    pub fn heard(&self) -> Tick {
        self.heard
    }

    /// Consecutive questions that were not answered.
    pub fn asked(&self) -> u32 {
        self.out.asked()
    }

    /// Counters.
    pub fn tally(&self) -> Tally {
        self.out.tally
    }

    /// The session.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Bytes of the longest datagram.
    pub fn datagram(&self) -> usize {
        self.params.datagram
    }

    /// Asks the other side for an acknowledgement, though there may be nothing to acknowledge.
    pub fn ask(&mut self) {
        self.out.ask();
    }

    /// Handles a datagram whose sender claims to be the other side. `marked`: the network marked it
    /// (ECN).
    pub fn receive(
        &mut self,
        now: Tick,
        datagram: &[u8],
        marked: bool,
        reader: &mut dyn FnMut(&[u8]),
    ) -> Result<Received, Fault> {
        let Some(packet) = packet::open(datagram, self.session.seed) else {
            return Ok(Received::Dropped);
        };
        let head = packet.head;
        if head.session != self.session.number || !matches!(head.kind, Kind::Data | Kind::Ack) {
            return Ok(Received::Dropped);
        }
        self.heard = now;
        if let Some(ack) = &packet.ack {
            let cc = self.congestion.as_mut();
            let answer = head.kind == Kind::Data;
            let result = self
                .out
                .on_ack(now, ack, answer, &mut self.rtt, cc, &self.params);
            result.map_err(|()| Fault::Acknowledged)?;
        }
        if head.kind == Kind::Data {
            let taken = self.inn.take(
                now,
                head.number,
                head.offset,
                packet.body,
                &self.params,
                reader,
            );
            taken.map_err(|_| Fault::TooMuch)?;
            if head.flags & NOW != 0 {
                self.inn.hurry();
            }
            if marked {
                self.inn.mark();
            }
        }
        Ok(Received::Taken)
    }

    /// The next datagram: its header is written to `to` (of at least [`Conn::datagram`] bytes); its
    /// bytes of the stream follow, and then it has to be sealed. `None`: nothing now; see
    /// [`Conn::next_timeout`].
    pub fn poll_transmit(&mut self, now: Tick, to: &mut [u8]) -> Option<Transmit> {
        let cc = self.congestion.as_mut();
        if self.out.timeout(&self.rtt, &self.params) <= now {
            self.out.on_timeout(now, &self.rtt, cc, &self.params);
        }
        if self.may_send(now) {
            return Some(self.packet(now, to));
        }
        (self.inn.ack_due(&self.params) <= now).then(|| self.bare_ack(now, to))
    }

    /// Sends owed acknowledgements before this rank sleeps or leaves.
    pub fn poll_ack(&mut self, now: Tick, to: &mut [u8]) -> Option<Transmit> {
        self.inn.owes().then(|| self.bare_ack(now, to))
    }

    /// Puts the checksum into a datagram that is complete.
    pub fn seal(&self, datagram: &mut [u8]) {
        packet::seal(datagram, self.session.seed);
    }

    fn may_send(&mut self, now: Tick) -> bool {
        self.paced = Tick::NEVER;
        if self.out.is_asking() {
            return true;
        }
        let window = self.congestion.window();
        if !self.out.has_bytes() || !self.out.fits(window) {
            return false;
        }
        let rtt = self
            .rtt
            .lowest()
            .map_or(self.rtt.smoothed(), |low| self.rtt.smoothed().min(4 * low));
        match self.pacer.admit(now, window, rtt) {
            Ok(()) => true,
            Err(at) => {
                self.paced = at;
                false
            }
        }
    }

    fn packet(&mut self, now: Tick, to: &mut [u8]) -> Transmit {
        let ack = self.inn.owes().then(|| self.inn.ack(now, &self.params));
        // A first guess at the place of the body; the number and the offset are known after the
        // choice.
        let mut head = self.head(Kind::Data);
        let len = head.encode(ack.as_ref(), to);
        let room = (self.params.datagram - len) as u64;
        let next = self.out.next(now, room, self.congestion.window());
        (head.number, head.offset) = (next.number, next.range.start);
        head.flags = if next.now { NOW } else { 0 };
        head.encode_again(to);
        self.pacer
            .spend(now, len as u64 + next.range.end - next.range.start);
        Transmit {
            head: len,
            data: next.range,
        }
    }

    fn bare_ack(&mut self, now: Tick, to: &mut [u8]) -> Transmit {
        let ack = self.inn.ack(now, &self.params);
        let head = self.head(Kind::Ack).encode(Some(&ack), to);
        Transmit { head, data: 0..0 }
    }

    fn head(&self, kind: Kind) -> Head {
        Head {
            kind,
            flags: 0,
            from: self.me,
            session: self.session.number,
            number: 0,
            offset: 0,
        }
    }

    /// When `poll_transmit` has to be called again, if nothing comes before.
    pub fn next_timeout(&self) -> Tick {
        let out = self.out.timeout(&self.rtt, &self.params);
        out.min(self.inn.ack_due(&self.params)).min(self.paced)
    }
}

/// Room that a buffer for a datagram needs in addition to the body.
pub const OVERHEAD: usize = LONGEST_HEAD;
/// Bytes of a stream that fit into a datagram of this many bytes.
pub fn room(datagram: usize) -> usize {
    datagram.saturating_sub(HEAD_LEN)
}

#[cfg(test)]
mod tests;
