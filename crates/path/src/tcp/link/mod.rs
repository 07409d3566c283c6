//! One connection in use: bytes out, bytes in.

use super::Tuning;
use super::bulk_detector::BulkDetector;
use super::disconnect::End;
use super::reader::Turn;
use super::stream::{Broken, Stream};
use super::stripe::Stripes;
use super::unacked::Unacked;
use crate::contract::Inbound;
use kw_base::Peer;
use kw_proto::p2p::prices::Network;
use kw_sys::poller::{Interest, Poller};
use kw_sys::tcp::Sock;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

mod coalesce;
mod sending;

use crate::network_meter::NetworkMeter;
use coalesce::Coalescer;

/// Pending events of the poller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// Nothing, or events that it has reported already.
    Nothing,
    /// The first thing that happens: a connection that is read directly needs the poller only for a
    /// sleep, and one that it watches costs the kernel 0.3 us for each packet.
    Once(Interest),
    /// Everything.
    Always(Interest),
}

/// A welcomed connection, and the link that it carries.
#[derive(Debug)]
pub struct Link {
    sock: Sock,
    stream: Stream,
    /// Short frames of a rank that runs ahead are joined.
    coalescer: Coalescer,
    /// Rate of sent data, if it leaves the machine.
    outgoing: BulkDetector,
    /// Within a machine: short frames of a rank that runs ahead may be joined, and the kernel may
    /// hold any amount.
    near: bool,
    /// The system's measurements of the route, if it leaves the machine.
    network: NetworkMeter,
    /// Events that the poller watches.
    watch: Watch,
    /// When it was used last, in uses of all connections.
    used: u64,
    /// We have asked the peer to close it.
    parting: bool,
    /// We have shut it, because nothing was answered over it.
    silent: bool,
    /// This rank's address and the peer's.
    way: Option<(SocketAddr, SocketAddr)>,
}

impl Link {
    /// Takes a connection into use for a link.
    pub fn new(sock: Sock, mut stream: Stream, tuning: &Tuning) -> Link {
        let near = sock.is_loopback();
        let segment = if near {
            tuning.segment_loopback
        } else {
            // If the kernel does not know this option, answers wait behind the data that it holds.
            let _ = sock.limit_unsent(tuning.part);
            tuning.segment
        };
        stream.open(segment, tuning);
        let mut link = Link {
            way: sock.ends(),
            sock,
            stream,
            coalescer: Coalescer::default(),
            outgoing: BulkDetector::default(),
            network: NetworkMeter::new(near),
            near,
            watch: Watch::Nothing,
            used: 0,
            parting: false,
            silent: false,
        };
        link.learn_network();
        link
    }

    /// Known properties of the route.
    pub fn network(&self) -> Network {
        self.network.known()
    }

    /// Queries the system's measurements, when that is due. Returns whether something new is known.
    #[inline]
    pub fn learn_network(&mut self) -> bool {
        let sent = self.stream.unacked().sent();
        self.network.is_due(sent) && self.network.learn(sent, self.sock.measured())
    }

    /// The link that it carries.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The link that it carries, mutable.
    #[inline]
    pub fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The connection is over: the link, and what happened; `None`: nothing was in flight.
    pub fn into_stream(mut self, what: Option<String>) -> Stream {
        let silent = self.silent;
        let broken = what.map(|what| Broken { what, silent });
        self.stream.lose_connection(broken);
        self.stream
    }

    /// Registers the connection with the poller under this number. A registered descriptor of this
    /// process can be changed.
    pub fn be_watched(&mut self, poller: &Poller, number: u64, watch: Watch) -> io::Result<()> {
        if watch == self.watch {
            return Ok(());
        }
        match watch {
            Watch::Nothing => {}
            Watch::Once(interest) => poller.change_once(&self.sock, number, interest)?,
            Watch::Always(interest) => poller.change(&self.sock, number, interest)?,
        }
        self.watch = watch;
        Ok(())
    }

    /// The poller has reported an event. Returns whether it reports nothing more.
    pub fn on_reported(&mut self) -> bool {
        let once = matches!(self.watch, Watch::Once(_));
        if once {
            self.watch = Watch::Nothing;
        }
        once
    }

    /// It is used, after this many uses of all connections.
    #[inline]
    pub fn use_now(&mut self, uses: u64) {
        self.used = uses;
    }

    /// When it was used last.
    pub fn last_use(&self) -> u64 {
        self.used
    }

    /// We ask the peer to close it.
    pub fn part(&mut self) {
        self.parting = true;
    }

    /// Whether we have asked it to.
    pub fn is_parting(&self) -> bool {
        self.parting
    }

    /// This rank's address and the peer's.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        self.way.map(|(here, there)| (here.ip(), there.ip()))
    }

    /// The two addresses, for people.
    pub fn way(&self) -> String {
        self.way.map_or_else(String::new, |(here, there)| {
            format!("{} to {}", here.ip(), there.ip())
        })
    }

    /// Has a sleep on the socket end when `most` bytes of the payload that is being received have
    /// come, or its end; with zero, as soon as anything has come. It never waits for more than the
    /// rest: nothing else is certain to come.
    pub fn wake_for(&mut self, most: u32) {
        let rest = self.stream.reader().awaited();
        self.sock.wake_at(rest.min(most as u64) as u32);
    }

    /// Whether nothing is in flight, as far as this side knows.
    pub fn is_idle(&self) -> bool {
        self.stream.is_flushed() && !self.awaits_ack() && self.stream.is_between_frames()
    }

    /// Whether a sender waits for an acknowledgement of the peer's kernel.
    #[inline]
    pub fn awaits_ack(&self) -> bool {
        self.stream.unacked().awaits_ack()
    }

    /// Unacknowledged data, and the socket that reports acknowledgements.
    #[inline]
    pub fn unacked(&mut self) -> (&mut Unacked, &Sock) {
        (self.stream.unacked_mut(), &self.sock)
    }

    /// Whether the peer's kernel has acknowledged everything, so that closing loses no data of this
    /// rank.
    pub fn is_acknowledged(&mut self) -> bool {
        self.stream.unacked_mut().is_acknowledged(&self.sock)
    }

    /// Striped payloads, if there ever were any, and the number of stream bytes handed over.
    pub fn stripes(&mut self) -> Option<(&mut Stripes, u64)> {
        let sent = self.stream.unacked().sent();
        self.stream.stripes().map(|s| (s, sent))
    }

    /// How long the other side's kernel has answered nothing.
    pub fn unanswered(&self) -> Option<Duration> {
        self.sock.unanswered()
    }

    /// Leaves a connection over which nothing is answered: received data is read, then its end.
    pub fn leave_silent(&mut self) {
        self.silent = true;
        self.sock.shut();
    }

    /// Whether it was left.
    pub fn is_silent(&self) -> bool {
        self.silent
    }

    /// Ends it, as a bad network would.
    pub fn shut(&self) {
        self.sock.shut();
    }

    /// Nothing more will be sent over it.
    pub fn shut_write(&self) {
        self.sock.shut_write();
    }

    /// Receives, for as many turns as it gets, and hands frames over.
    #[inline]
    pub fn pull(
        &mut self,
        peer: Peer,
        tuning: &Tuning,
        inbound: &mut dyn Inbound,
    ) -> Result<bool, End> {
        let mut moved = false;
        for _ in 0..tuning.turns {
            match self.stream.read(&self.sock, peer, tuning, inbound)? {
                Turn::Nothing => break,
                Turn::Emptied => {
                    moved = true;
                    break;
                }
                Turn::Filled => moved = true,
            }
        }
        if self.sock.wakes_at() > 1 {
            self.wake_for(self.sock.wakes_at());
        }
        if moved && self.stream.reader().is_hurried() {
            self.sock.acknowledge();
        }
        Ok(moved)
    }
}
