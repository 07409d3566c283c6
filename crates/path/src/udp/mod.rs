//! UDP: one socket for each interface of the process, whatever the number of peers; data that the
//! network loses is sent again by [`kw_proto::reliable`].
//!
//! # Use
//! Used like [`crate::tcp`]: [`UdpPath::new`], publish the address, `introduce`, `send`, `poll`. To
//! sleep: [`UdpPath::arm`], `poll` once more, and wait for [`UdpPath::as_fd`](std::os::fd::AsFd) to
//! become readable; the timers of the connections make it readable as well, by the poller's alarm,
//! so a sleeper needs no time-out of its own.
//!
//! # Frames
//! The frames to a peer are one stream of bytes, [`queue`], which the machine of the connection
//! cuts into datagrams. Small payload is copied into the queue, from 2 KB on after it has been
//! sent; a long one stays in its [`Buf`](kw_sys::buf::Buf) and is read when it is sent, or resent,
//! so `on_sent` is called when it has *arrived*. Received data is put into place as it arrives (see
//! [`frames`]). Up to 56 KB of datagrams go to the kernel in one call, and come from it in one
//! (GSO, GRO).
//!
//! # Time
//! A machine that measures round trips must know when a frame is sent, which `send` is not told;
//! the time passed to `poll` may be some polls old. So the owner gives this path a clock.
//!
//! # Connections
//! ```text
//!           send                    welcome (theirs or ours)              fault, peer not there
//! Unknown ---------> Calling ------------------------------> Up(Link) --------------------------------> Gone
//!    |                  \--- nothing heard for 10 s ---------------------------------------------------> ^
//!    \------ somebody proves to be this peer: welcome -----> Up
//!    \------ a process proves to be this peer: welcome ----> Up
//! When both ranks of a pair call each other, the lower one's call counts (see
//! [`kw_proto::reliable::setup`]).
//!
//! # Ends
//! `close` sends a Bye frame on every connection; a rank that has received one expects no
//! acknowledgement of data that it still sends. A rank that is silent is not taken for dead: see
//! [`kw_proto::reliable::keepalive`]. A datagram that proves nothing is dropped and counted.
//!
//! # Files
//! | file | what |
//! | --- | --- |
//! | `open`, `tune` | the sockets; numbers that were measured |
//! | `network` | the functions of a network besides sending and polling |
//! | `call` | a peer that is being called |
//! | `link` (`queue`, `frames`) | a connection in use: data that waits to be sent or to arrive; frames put into place as their bytes come |
//! | `incoming` | datagrams to their connections, or to the listener of handshakes |
//! | `timers` | work that is due by time |

mod call;
mod frames;
mod incoming;
mod link;
mod network;
mod open;
mod queue;
mod timers;
mod tune;

pub use network::open;
pub use open::Config;
pub use tune::Tuning;

use crate::address;
use crate::contract::{Body, Down, Inbound, Lines, Path, Sent};
use crate::peer_set::PeerSet;
use call::Call;
use kw_base::{Calibration, Peer, Tick};
use kw_proto::handshake::Identity;
use kw_proto::p2p::prices::{self, Network};
use kw_proto::reliable::setup::{Caller, Listener, Welcome};
use kw_proto::reliable::{Conn, Params, Session};
use kw_proto::wire::{Header, Kind};
use kw_sys::poller::{Interest, Poller};
use kw_sys::udp::{Inbox, Sock};
use link::{Batch, Link, Way};
use queue::Queue;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// Counters.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Packets sent, without bare acknowledgements.
    pub packets: u64,
    /// Those of them that repeated bytes or asked.
    pub again: u64,
    /// Datagrams that were damaged or not authenticated.
    pub dropped: u64,
}

/// State of a peer.
#[derive(Debug)]
enum Slot {
    Unknown,
    Known(Vec<SocketAddr>),
    Calling(Box<Call>),
    Up(Box<Link>),
    Gone(String),
}

/// The UDP path of one rank.
#[derive(Debug)]
pub struct UdpPath {
    me: Peer,
    identity: Identity,
    tuning: Tuning,
    clock: fn() -> Tick,
    poller: Poller,
    socks: Vec<Sock>,
    /// Sends to closed ports, so that the resulting errors do not mix with the others.
    scouts: Vec<Sock>,
    armed: Vec<bool>,
    address: String,
    listener: Listener,
    slots: Vec<Slot>,
    /// Peers whose slot is `Up`.
    live: PeerSet,
    /// Peers whose slot is `Calling`.
    calling: PeerSet,
    /// Peers to which some data has not arrived yet.
    busy: PeerSet,
    /// Peers that have been heard and may be sent to.
    heard: PeerSet,
    /// Peers for whose data the socket had no room.
    held: PeerSet,
    /// When they are tried again, if nothing comes before.
    retry: Tick,
    /// When some connection or call has to be served.
    next: Tick,
    /// The last poll brought as much as it could.
    flooded: bool,
    /// Taken out while it is read.
    inbox: Option<Box<Inbox>>,
    batch: Batch,
    tally: Tally,
    closed: bool,
}

impl AsFd for UdpPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

fn down(peer: Peer, reason: impl Into<String>) -> Down {
    Down {
        path: "udp",
        peer,
        reason: reason.into(),
    }
}

impl UdpPath {
    /// Datagrams that were dropped: damaged or not authenticated.
    pub fn connections_refused(&self) -> u64 {
        self.tally.dropped
    }

    /// The addresses, ours and the peers', of the connections that this rank made.
    pub fn network(&self) -> Vec<String> {
        let lines = self.live.iter().filter_map(|peer| {
            let Slot::Up(link) = self.slot(peer)? else {
                return None;
            };
            let here = self.socks[link.way.sock].at().ip();
            let line = || format!("udp to rank {peer}: {here} to {}", link.way.to.ip());
            link.welcome.is_none().then(line)
        });
        lines.collect()
    }

    /// Counters of all connections.
    pub fn tally(&self) -> Tally {
        let mut sum = self.tally;
        for slot in &self.slots {
            if let Slot::Up(link) = slot {
                let t = link.conn.tally();
                sum.packets += t.packets;
                sum.again += t.again;
            }
        }
        sum
    }

    /// Must be called before sleeping on the descriptor: acknowledges everything received, and asks
    /// to be woken when a timer is due or a full socket has room again.
    pub fn arm(&mut self) {
        let now = (self.clock)();
        let mut held = vec![false; self.socks.len()];
        for i in 0..self.live.len() {
            let Some(peer) = self.live.get(i) else {
                continue;
            };
            self.push(peer, now, true);
            if let Slot::Up(link) = &self.slots[peer.idx()] {
                held[link.way.sock] |= link.is_held();
            }
        }
        for (i, wants) in held.into_iter().enumerate() {
            if wants != self.armed[i] {
                let interest = if wants {
                    Interest::Both
                } else {
                    Interest::Read
                };
                // A registered descriptor of this process can be changed; without it the timers
                // still wake this rank.
                let _ = self.poller.change(&self.socks[i], i as u64, interest);
                self.armed[i] = wants;
            }
        }
        // Without the alarm a sleeping rank would only be woken by incoming data; the error cannot
        // be reported.
        let _ = self.poller.set_alarm(self.next);
    }

    fn slot(&self, peer: Peer) -> Option<&Slot> {
        self.slots.get(peer.idx())
    }

    /// Sends what a connection may send, and notes when it has to be served again.
    #[inline]
    fn push(&mut self, peer: Peer, now: Tick, idle: bool) -> bool {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return false;
        };
        let sock = &self.socks[link.way.sock];
        let moved = link.flush(now, sock, &mut self.batch, self.tuning.batch, idle);
        self.next = self.next.min(link.next());
        if link.is_held() {
            self.held.insert(peer);
        }
        moved
    }

    /// The first frame to a peer without a connection.
    #[cold]
    fn send_unconnected(
        &mut self,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        if to == self.me || to.idx() >= self.slots.len() {
            return Err(down(to, "UDP does not reach this rank"));
        }
        if let Slot::Known(addresses) = &self.slots[to.idx()] {
            let nonce =
                kw_sys::random::key().map_err(|e| down(to, format!("no random bytes ({e})")))?;
            let longest = self.tuning.params.datagram;
            let caller = Caller::new(&self.identity, self.me.0, to.0, nonce, longest);
            let call = Call::new(caller, addresses, (self.clock)());
            self.slots[to.idx()] = Slot::Calling(Box::new(call));
            self.calling.insert(to);
        }
        match &mut self.slots[to.idx()] {
            Slot::Calling(call) => {
                let sent = call.queue.push(head, body, cookie, 0);
                call.queue.keep();
                call.send((self.clock)(), &self.socks);
                self.next = self.next.min(call.next());
                Ok(sent)
            }
            Slot::Gone(why) => Err(down(to, why.clone())),
            _ => Err(down(to, "its address is not known yet")),
        }
    }

    /// Takes a connection into use.
    fn adopt(
        &mut self,
        peer: Peer,
        session: Session,
        datagram: usize,
        way: Way,
        welcome: Option<Welcome>,
        now: Tick,
    ) {
        let queue = match &mut self.slots[peer.idx()] {
            Slot::Calling(call) => std::mem::take(&mut call.queue),
            _ => Queue::default(),
        };
        self.listener.forget(peer.0);
        self.calling.remove(peer);
        if queue.end() > 0 {
            self.busy.insert(peer);
        }
        self.live.insert(peer);
        let params = Params {
            datagram,
            ..self.tuning.params.clone()
        };
        let (here, there) = (self.socks[way.sock].at(), way.to);
        tracing::debug!("udp to rank {peer} is up: {here} to {there}, {datagram} bytes a datagram");
        let near = way.to.ip().is_loopback() || way.to.ip() == here.ip();
        let conn = Conn::new(params, self.me.0, session, now);
        let link = Link::new(conn, queue, (way, near), welcome, now);
        self.slots[peer.idx()] = Slot::Up(Box::new(link));
        self.push(peer, now, false);
    }

    /// The connection's measurements of the route to a peer: none before there is one.
    fn measured(&self, peer: Peer) -> Network {
        match self.slot(peer) {
            Some(Slot::Up(link)) => link.network(),
            _ => Network::default(),
        }
    }

    /// The end of a peer: reports it, unless a goodbye was reported already.
    fn bury(&mut self, peer: Peer, reason: String, inbound: &mut dyn Inbound) {
        let old = std::mem::replace(&mut self.slots[peer.idx()], Slot::Gone(reason.clone()));
        for list in [
            &mut self.live,
            &mut self.calling,
            &mut self.busy,
            &mut self.heard,
            &mut self.held,
        ] {
            list.remove(peer);
        }
        let mut end_reported = false;
        if let Slot::Up(link) = &old {
            end_reported = link.end_reported;
            let t = link.conn.tally();
            self.tally.packets += t.packets;
            self.tally.again += t.again;
            let (packets, again) = (t.packets, t.again);
            tracing::debug!(
                "udp to rank {peer} is down after {packets} packets, {again} of them again"
            );
        }
        if !end_reported && !self.closed {
            inbound.on_down(down(peer, reason), false);
        }
    }
}

impl Path for UdpPath {
    fn lines(&self, peer: Peer, host: &Calibration) -> Lines {
        prices::udp(host, &self.measured(peer))
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn wants_address(&self, peer: Peer) -> bool {
        peer != self.me && matches!(self.slot(peer), Some(Slot::Unknown))
    }

    fn introduce(&mut self, peer: Peer, text: &str) -> Result<(), Down> {
        let known = address::Known::read(text).map_err(|why| down(peer, why.to_string()))?;
        let addresses: Vec<_> = known.addresses().collect();
        if let Some(slot @ Slot::Unknown) = self.slots.get_mut(peer.idx()) {
            *slot = Slot::Known(addresses);
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        debug_assert_eq!(body.len(), head.body_len(), "body of {head:?}");
        let Some(Slot::Up(link)) = self.slots.get_mut(to.idx()) else {
            return self.send_unconnected(to, head, body, cookie);
        };
        if self.closed || link.has_bye() {
            return Err(down(to, "this rank has called MPI_Finalize"));
        }
        let was_busy = link.is_busy();
        let sent = link.push(head, body, cookie);
        if !was_busy {
            self.busy.insert(to);
        }
        self.push(to, (self.clock)(), false);
        if let Slot::Up(link) = &mut self.slots[to.idx()] {
            link.keep();
        }
        Ok(sent)
    }

    fn poll(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let now = now.max((self.clock)());
        let moved = self.drain(now, inbound);
        self.answer(now, inbound);
        if !self.held.is_empty() && (moved || now >= self.retry) {
            self.retry = now + self.tuning.retry;
            for peer in self.held.take() {
                self.push(peer, now, false);
            }
        }
        if now >= self.next {
            self.timers(now, inbound);
        }
        moved
    }

    fn pending(&self) -> bool {
        let calling =
            |p: Peer| matches!(self.slot(p), Some(Slot::Calling(c)) if !c.queue.is_empty());
        !self.busy.is_empty() || self.calling.iter().any(calling)
    }

    fn close(&mut self) {
        if self.closed {
            return;
        }
        let bye = Header::bare(Kind::Bye);
        for i in 0..self.slots.len() {
            let peer = Peer(i as u32);
            match &mut self.slots[i] {
                Slot::Up(_) => {
                    // A peer that has said goodbye itself needs none.
                    let _ = self.send(peer, &bye, Body::None, 0);
                }
                Slot::Calling(call) if !call.queue.is_empty() => {
                    call.queue.push(&bye, Body::None, 0, 0);
                }
                _ => {}
            }
        }
        self.closed = true;
    }
}
