//! TCP: one connection per pair of ranks, opened on the first send.
//!
//! # Use
//! ```no_run
//! use kw_base::Peer;
//! use kw_path::Path;
//! use kw_path::tcp::{Config, TcpPath};
//! let config = Config {
//!     me: Peer(0),
//!     size: 2,
//!     job: "job-1".to_string(),
//!     key: [0; 32],
//!     interfaces: "auto".to_string(), // the knob KW_INTERFACES
//!     single_host: true,              // all ranks of the job share this machine: listen on loopback only
//! };
//! let path = TcpPath::new(config).unwrap();
//! let _publish = path.address();
//! ```
//! After that it is a [`Path`]: `introduce` every peer that `wants_address` says (before the first send; never needed for
//! a peer that has connected to us), `send`, `poll`. To sleep: call [`TcpPath::arm`], `poll` once more, and if nothing
//! moved wait until [`TcpPath::as_fd`](std::os::fd::AsFd) (an epoll descriptor, for nesting in another, level-triggered)
//! is readable; time-outs of connection set-up make it readable as well. A thread that only serves needs no second `poll`, and
//! after its sleep [`TcpPath::poll_ready`] does.
//!
//! # Frames
//! A connection carries frames back to back: the 32-byte header of [`kw_core::wire`], then the body. Header and payload
//! leave in one gathering call from where they lie; what the socket does not take is queued (payload as a clone of its
//! [`Buf`](kw_sys::buf::Buf), anything small as a copy). A frame whose body is in the read buffer goes to `on_frame`; a
//! longer payload is received straight into its [`Landing`](crate::Landing). Between hosts the payload of `Data` and `Write` comes in
//! segments, between which small frames pass (see `outbox`); on loopback it would gain nothing. Reading and writing take turns with a budget,
//! so that two ranks that send each other large messages both move.
//!
//! # Making connections
//! All addresses of the peer are tried at once (see `dial`), and the first one that proves the job's key (see
//! [`kw_core::handshake`]) is kept. When both ranks of a pair connect at the same time, the connection that the lower rank
//! made is kept: the higher rank welcomes it and drops its own; the lower rank lets the higher one's wait, and welcomes it
//! only should its own attempts all fail. Frames flow only on a welcomed connection, so none is lost or overtaken.
//!
//! ```text
//!           send                    welcome (theirs or ours)              EOF, error
//! Unknown ---------> Dialing ------------------------------> Up(Link) -----------------> Gone
//!    |                  \--- nobody answers for 9 s - --------------------------------->  ^
//!    \------ a stranger proves to be this peer: welcome ---> Up
//! ```
//!
//! # Ends
//! `close` sends a Bye frame on every connection. A Bye that is received is told as `on_down(clean = true)`; an end
//! without it as `on_down(clean = false)` with what happened. Bye frames are the path's own and are not handed on.

mod dial;
mod door;
mod link;
mod outbox;
mod tune;

pub use tune::Tuning;

use crate::address;
use crate::contract::{Body, Caps, CostLine, Down, Inbound, Path, Sent};
use dial::{Dial, Dialled};
use door::{Door, Knock};
use kw_base::{Peer, Tick};
use kw_core::handshake::{Identity, Verdict};
use kw_core::wire::{Header, Kind};
use kw_sys::netif::Interface;
use kw_sys::poller::{Event, Interest, Poller};
use kw_sys::tcp::Sock;
use link::{End, Link};
use outbox::Outbox;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// What a path must know to open.
#[derive(Clone)]
pub struct Config {
    /// This rank.
    pub me: Peer,
    /// Ranks of the job.
    pub size: u32,
    /// Name of the job.
    pub job: String,
    /// Key of the job.
    pub key: [u8; 32],
    /// Interfaces or addresses to listen on, comma separated, or `auto` (`KW_INTERFACES`).
    pub interfaces: String,
    /// All ranks share this machine: `auto` is loopback only.
    pub single_host: bool,
}

/// Why the path could not open.
#[derive(Debug, thiserror::Error)]
#[error("path tcp cannot open: {0}")]
pub struct CannotOpen(pub String);

/// Who is about to sleep until a socket has something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asleep {
    /// A thread that waits: whatever comes may be what it waits for.
    Waiting,
    /// The event thread, while the program computes: every time that it wakes, the computation stands still, so it sleeps until a segment of
    /// a long payload has come.
    Serving,
}

/// What is known of a peer.
#[derive(Debug)]
enum Slot {
    Unknown,
    Known(Vec<SocketAddr>),
    Dialing(Box<Dial>),
    Up(Box<Link>),
    Gone(String),
}

/// Kinds whose payload may be interrupted by small frames: the receive is matched, so nobody can see the order.
fn segmented(kind: Kind) -> bool {
    matches!(kind, Kind::Data | Kind::Write)
}

/// Numbers in the poller: what kind of thing in the top byte, which one below.
mod tag {
    pub const DOOR: u64 = 0;
    pub const KNOCK: u64 = 1 << 56;
    pub const DIAL: u64 = 2 << 56;
    pub const LINK: u64 = 3 << 56;
    pub const KINDS: u64 = 0xff << 56;
}

/// The TCP path of one rank.
#[derive(Debug)]
pub struct TcpPath {
    me: Peer,
    identity: Identity,
    tuning: Tuning,
    address: String,
    poller: Poller,
    door: Door,
    slots: Vec<Slot>,
    /// Peers whose slot is `Up`.
    live: Vec<Peer>,
    /// Peers whose slot is `Up` and whose outbox holds something.
    backlog: Vec<Peer>,
    /// Peers whose slot is `Dialing`.
    dialing: Vec<Peer>,
    /// Polls until the next look at the poller when few connections are read directly.
    patience: u32,
    events: Vec<Event>,
    closed: bool,
    /// Every address of this host, and those that we listen on.
    own: Vec<Interface>,
    sources: Vec<IpAddr>,
    /// Connections that this rank made, and what became of the other addresses.
    made: Vec<(Peer, String)>,
}

impl AsFd for TcpPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

fn down(peer: Peer, reason: impl Into<String>) -> Down {
    Down {
        path: "tcp",
        peer,
        reason: reason.into(),
    }
}

impl TcpPath {
    /// Listens, and connects to nobody yet.
    pub fn new(config: Config) -> Result<TcpPath, CannotOpen> {
        let tuning = Tuning::for_size(config.size);
        TcpPath::tuned(config, tuning)
    }

    /// As `new`, with other numbers than the measured ones.
    pub fn tuned(config: Config, tuning: Tuning) -> Result<TcpPath, CannotOpen> {
        let all = kw_sys::netif::interfaces()
            .map_err(|e| CannotOpen(format!("the interfaces cannot be listed ({e})")))?;
        let chosen =
            address::choose(&config.interfaces, config.single_host, &all).map_err(CannotOpen)?;
        let poller = Poller::new().map_err(|e| CannotOpen(format!("epoll failed ({e})")))?;
        let (door, at) = Door::open(&chosen, &poller, config.size).map_err(CannotOpen)?;
        Ok(TcpPath {
            me: config.me,
            identity: Identity::new(config.key, &config.job, config.me.0, config.size),
            tuning,
            address: address::to_text(&at),
            poller,
            door,
            slots: (0..config.size).map(|_| Slot::Unknown).collect(),
            live: Vec::new(),
            backlog: Vec::new(),
            dialing: Vec::new(),
            patience: 0,
            events: Vec::new(),
            closed: false,
            sources: at.iter().map(SocketAddr::ip).collect(),
            own: all,
            made: Vec::new(),
        })
    }

    /// Connections that were closed because they could not prove the key, or took too long to.
    pub fn strangers_refused(&self) -> u64 {
        self.door.refused()
    }

    /// Which addresses the connections use that this rank made and that are still there, and what became of the others.
    pub fn network(&self) -> Vec<String> {
        let lines = self.made.iter().filter_map(|(peer, others)| {
            let Slot::Up(link) = self.slot(*peer)? else {
                return None;
            };
            let (here, there) = (link.sock.here().ok()?.ip(), link.sock.there().ok()?.ip());
            let device = self.own.iter().find(|i| i.addr == here);
            let device = device.map_or("", |i| i.name.as_str());
            let others = match others.is_empty() {
                true => String::new(),
                false => format!("; not {others}"),
            };
            Some(format!(
                "tcp to rank {peer}: {here} ({device}) to {there}{others}"
            ))
        });
        lines.collect()
    }

    /// To be called before sleeping on the descriptor: asks to be woken when a full socket has room again, and makes the
    /// next `poll` look at everything.
    pub fn arm(&mut self, who: Asleep) {
        self.patience = 0;
        let batch = match who {
            Asleep::Waiting => 0,
            Asleep::Serving => self.tuning.batch,
        };
        for &peer in &self.live {
            if let Slot::Up(link) = &mut self.slots[peer.idx()] {
                link.wake_for(batch);
                let wants = !link.outbox.is_empty();
                if wants != link.armed {
                    let interest = if wants {
                        Interest::Both
                    } else {
                        Interest::Read
                    };
                    // A descriptor of ours that is registered can be changed; without it the alarm below still wakes us.
                    let _ = self
                        .poller
                        .change(&link.sock, tag::LINK | peer.0 as u64, interest);
                    link.armed = wants;
                }
            }
        }
    }

    /// After a sleep on the descriptor: serves what made it readable, without asking the other connections.
    pub fn poll_ready<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        self.look(now, true, inbound)
    }

    fn slot(&self, peer: Peer) -> Option<&Slot> {
        self.slots.get(peer.idx())
    }

    /// The first frame to a peer we are not connected to.
    #[cold]
    fn send_unconnected(
        &mut self,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        if to == self.me || to.idx() >= self.slots.len() {
            return Err(down(to, "TCP does not reach this rank"));
        }
        if let Slot::Known(addresses) = &mut self.slots[to.idx()] {
            let own: Vec<IpAddr> = self.own.iter().map(|i| i.addr).collect();
            let dial = Dial::new(to, std::mem::take(addresses), &own);
            self.slots[to.idx()] = Slot::Dialing(Box::new(dial));
            self.dialing.push(to);
            self.patience = 0;
        }
        match &mut self.slots[to.idx()] {
            Slot::Dialing(dial) => {
                let sent = dial.outbox.push(head, body, 0, cookie);
                dial.start(&self.identity, &self.poller);
                Ok(sent)
            }
            Slot::Gone(why) => Err(down(to, why.clone())),
            _ => Err(down(to, "its address is not known yet")),
        }
    }

    /// Takes an authenticated connection into use.
    fn adopt(&mut self, peer: Peer, sock: Sock, outbox: Outbox) -> std::io::Result<()> {
        if let Some(bytes) = self.tuning.socket_buffer {
            sock.set_buffers(bytes)?;
        }
        self.poller
            .change(&sock, tag::LINK | peer.0 as u64, Interest::Read)?;
        if !outbox.is_empty() {
            self.backlog.push(peer);
        }
        self.live.push(peer);
        self.dialing.retain(|&p| p != peer);
        self.slots[peer.idx()] = Slot::Up(Box::new(Link::new(sock, outbox, &self.tuning)));
        Ok(())
    }

    /// The end of a peer: tells it, unless a goodbye was told already.
    fn bury<I: Inbound>(&mut self, peer: Peer, reason: String, inbound: &mut I) {
        let old = std::mem::replace(&mut self.slots[peer.idx()], Slot::Gone(reason.clone()));
        self.live.retain(|&p| p != peer);
        self.backlog.retain(|&p| p != peer);
        self.dialing.retain(|&p| p != peer);
        let told = matches!(&old, Slot::Up(link) if link.bye);
        if !told && !self.closed {
            inbound.on_down(down(peer, reason), false);
        }
    }

    /// Reads from one connection.
    #[inline]
    fn pull<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return false;
        };
        match link.pull(peer, &self.tuning, inbound) {
            Ok(moved) => moved,
            Err(end) => self.ended(peer, end, inbound),
        }
    }

    #[cold]
    fn ended<I: Inbound>(&mut self, peer: Peer, end: End, inbound: &mut I) -> bool {
        self.bury(peer, end.sentence(peer), inbound);
        true
    }

    /// Sends what is queued.
    fn flush<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let mut moved = false;
        let mut i = 0;
        while i < self.backlog.len() {
            let (sent, left) = self.push(self.backlog[i], inbound);
            moved |= sent;
            if left {
                i += 1;
            } else {
                self.backlog.swap_remove(i);
            }
        }
        moved
    }

    /// Sends what is queued for one peer. Whether some went, and whether some is left.
    fn push<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> (bool, bool) {
        let Slot::Up(link) = &mut self.slots[peer.idx()] else {
            return (false, false);
        };
        // The reading side finds out what happened, after all that came before the end.
        let sent = link.push(peer, &self.tuning, inbound).unwrap_or_else(|_| {
            link.outbox.clear();
            false
        });
        let left = !link.outbox.is_empty();
        if !left && self.closed {
            link.sock.shut_write();
        }
        (sent, left)
    }

    /// There is room to send to this peer.
    fn push_ready<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        if !self.backlog.contains(&peer) {
            return false;
        }
        let (sent, left) = self.push(peer, inbound);
        if !left {
            self.backlog.retain(|&p| p != peer);
        }
        sent
    }

    /// Asks the poller and serves what it names; `links`: the connections too.
    fn look<I: Inbound>(&mut self, now: Tick, links: bool, inbound: &mut I) -> bool {
        self.patience = self.tuning.look_every;
        let mut events = std::mem::take(&mut self.events);
        // An epoll that fails leaves the direct reads; there is nobody to tell.
        let _ = self.poller.wait(Some(Duration::ZERO), &mut events);
        let mut moved = false;
        for e in &events {
            let low = e.data & !tag::KINDS;
            moved |= match e.data & tag::KINDS {
                tag::LINK if links => {
                    let peer = Peer(low as u32);
                    (e.read && self.pull(peer, inbound))
                        | (e.write && self.push_ready(peer, inbound))
                }
                tag::LINK => false,
                tag::DIAL => self.advance_dial(Peer(low as u32), now, inbound),
                tag::KNOCK => self.advance_knock(low, inbound),
                _ => self
                    .door
                    .accept(low as usize, now, &self.identity, &self.poller),
            };
        }
        self.events = events;
        self.timers(now, inbound);
        moved
    }

    fn advance_dial<I: Inbound>(&mut self, peer: Peer, now: Tick, inbound: &mut I) -> bool {
        let Slot::Dialing(dial) = &mut self.slots[peer.idx()] else {
            return false;
        };
        match dial.advance(now, &self.poller) {
            Dialled::Waiting => false,
            Dialled::Connected(sock, outbox, others) => {
                self.made.push((peer, others));
                self.connected(peer, sock, outbox, inbound);
                true
            }
            Dialled::Exhausted => self.fall_back(peer, inbound),
        }
    }

    fn connected<I: Inbound>(&mut self, peer: Peer, sock: Sock, outbox: Outbox, inbound: &mut I) {
        self.door.dismiss(peer);
        match self.adopt(peer, sock, outbox) {
            Ok(()) => {
                self.flush(inbound);
            }
            Err(e) => self.bury(
                peer,
                format!("the new connection could not be used ({e})"),
                inbound,
            ),
        }
    }

    /// Our own attempts have failed for now: a connection of the peer that waits for this is welcome.
    fn fall_back<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        let Some(knock) = self.door.parked(peer) else {
            return false;
        };
        self.welcome(peer, knock, inbound);
        true
    }

    fn welcome<I: Inbound>(&mut self, peer: Peer, knock: Knock, inbound: &mut I) {
        let outbox = match &mut self.slots[peer.idx()] {
            Slot::Dialing(dial) => std::mem::take(&mut dial.outbox),
            _ => Outbox::default(),
        };
        let Some(sock) = knock.answer(Verdict::Welcome) else {
            // The connection broke at the last moment; the peer comes again, or our dial goes on.
            if let Slot::Dialing(dial) = &mut self.slots[peer.idx()] {
                dial.outbox = outbox;
            }
            return;
        };
        self.connected(peer, sock, outbox, inbound);
    }

    /// A stranger said something.
    fn advance_knock<I: Inbound>(&mut self, key: u64, inbound: &mut I) -> bool {
        let Some(rank) = self.door.advance(key) else {
            return false;
        };
        let peer = Peer(rank);
        match self.slot(peer) {
            Some(Slot::Unknown | Slot::Known(_)) => {}
            Some(Slot::Dialing(dial)) if self.me > peer || dial.is_idle() => {}
            Some(Slot::Dialing(_)) => return true,
            _ => {
                if let Some(knock) = self.door.take(key) {
                    knock.answer(Verdict::Duplicate);
                }
                return true;
            }
        }
        if let Some(knock) = self.door.take(key) {
            self.welcome(peer, knock, inbound);
        }
        true
    }

    /// Time-outs of strangers and of dials, and the alarm for the next ones.
    fn timers<I: Inbound>(&mut self, now: Tick, inbound: &mut I) {
        if self.dialing.is_empty() && self.door.is_quiet() {
            return;
        }
        let mut next = self.door.expire(now);
        for i in (0..self.dialing.len()).rev() {
            let peer = self.dialing[i];
            let Slot::Dialing(dial) = &mut self.slots[peer.idx()] else {
                continue;
            };
            match dial.tick(now, &self.identity, &self.poller, &self.sources) {
                Ok(at) => next = next.min(at),
                Err(reason) => self.bury(peer, reason, inbound),
            }
        }
        // Without the alarm the rank still sees the time-out at its next poll.
        let _ = self.poller.set_alarm(next);
    }

    fn is_settled(&self) -> bool {
        self.dialing.is_empty() && self.door.is_quiet()
    }
}

impl Path for TcpPath {
    /// Measured on loopback with `examples/tcp_pingpong.rs`; a real network is slower to start and to move.
    fn caps(&self, _peer: Peer) -> Caps {
        let line = |t0, tb| CostLine { t0, tb };
        Caps {
            name: "tcp",
            stream: line(3_800.0, 0.12),
            copy: line(60.0, 0.06),
            control: line(3_700.0, 0.0),
            get: None,
            put: None,
        }
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn wants_address(&self, peer: Peer) -> bool {
        peer != self.me && matches!(self.slot(peer), Some(Slot::Unknown))
    }

    fn introduce(&mut self, peer: Peer, text: &str) -> Result<(), Down> {
        let addresses = address::from_text(text).map_err(|why| down(peer, why))?;
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
        if self.closed || link.bye {
            return Err(down(to, "goodbye has been said (MPI_Finalize)"));
        }
        let idle = link.outbox.is_empty();
        let sent = match link.send(head, body, cookie, &self.tuning) {
            Ok(sent) => sent,
            Err(e) => return Err(down(to, format!("sending failed ({e})"))),
        };
        if idle && !link.outbox.is_empty() {
            self.backlog.push(to);
        }
        Ok(sent)
    }

    fn poll<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        let mut moved = !self.backlog.is_empty() && self.flush(inbound);
        let few = self.live.len() <= self.tuning.few_links;
        if few {
            for i in (0..self.live.len()).rev() {
                // A pull may end a connection, and with it shorten the list.
                if let Some(&peer) = self.live.get(i) {
                    moved |= self.pull(peer, inbound);
                }
            }
            self.patience = self.patience.saturating_sub(1);
        }
        if !few || self.patience == 0 || !self.is_settled() {
            moved |= self.look(now, !few, inbound);
        }
        moved
    }

    #[inline]
    fn poll_from<I: Inbound>(&mut self, peer: Peer, now: Tick, inbound: &mut I) -> bool {
        if self.patience == 0 || !matches!(self.slot(peer), Some(Slot::Up(_))) {
            return self.poll(now, inbound);
        }
        self.patience -= 1;
        let moved = !self.backlog.is_empty() && self.flush(inbound);
        self.pull(peer, inbound) | moved
    }

    fn pending(&self) -> bool {
        let dialing =
            |&p: &Peer| matches!(self.slot(p), Some(Slot::Dialing(d)) if !d.outbox.is_empty());
        !self.backlog.is_empty() || self.dialing.iter().any(dialing)
    }

    fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        let bye = Header::bare(Kind::Bye);
        for i in 0..self.slots.len() {
            match &mut self.slots[i] {
                Slot::Up(link) => {
                    let idle = link.outbox.is_empty();
                    link.outbox.seal();
                    // A connection that is broken needs no goodbye.
                    let _ = link.send(&bye, Body::None, 0, &self.tuning);
                    match (idle, link.outbox.is_empty()) {
                        (true, false) => self.backlog.push(Peer(i as u32)),
                        (_, true) => link.sock.shut_write(),
                        _ => {}
                    }
                }
                Slot::Dialing(dial) if !dial.outbox.is_empty() => {
                    dial.outbox.seal();
                    dial.outbox.push(&bye, Body::None, 0, 0);
                }
                _ => {}
            }
        }
    }
}
