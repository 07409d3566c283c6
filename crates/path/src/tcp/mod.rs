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
//!     reliable: true,                 // the knob KW_RELIABLE
//!     host: "node1".to_string(),
//!     stripe: true,                   // the knob KW_STRIPE
//!     most: 1000,                     // connections at once
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
//!         send                    welcome (theirs or ours)              end after a goodbye, or not reliable
//! Idle ---------> Dialing ------------------------------> Up(Link) ------------------------------------> Gone
//!  |              ^   \--- nobody answers for 9 s (5 s), or all refuse -------------------------------->  ^
//!  |              \---------------- end without a goodbye: see `remake` -------/
//!  \------ a stranger proves to be this peer: welcome ---> Up
//! ```
//!
//! # Ends
//! `close` sends a Bye frame on every connection. A Bye that is received is told as `on_down(clean = true)`. After an end without one
//! another connection carries the link on, and nothing is lost, repeated or reordered (`KW_RELIABLE`, see `remake`); where
//! none can be made `on_down(clean = false)` says what happened. Bye frames are the path's own and are not handed on.

mod dial;
mod door;
mod limit;
mod link;
mod lists;
mod outbox;
mod remake;
mod strand;
mod strands;
mod stream;
mod stripe;
mod tune;

pub use tune::Tuning;

use crate::address::{self, Known};
use crate::contract::{Body, Caps, CostLine, Down, Inbound, Path, Sent};
use dial::{Dial, Dialled};
use door::{Door, Ring};
use kw_base::{Peer, Tick};
use kw_core::handshake::{Claim, Identity};
use kw_core::wire::{Header, Kind};
use kw_sys::netif::Interface;
use kw_sys::poller::{Event, Interest, Poller};
use kw_sys::tcp::Sock;
use link::{End, Link, Watch};
use lists::{Lists, note};
use remake::Later;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use strands::Bundle;
use stream::Stream;

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
    /// A connection that breaks is made anew, and nothing is lost (`KW_RELIABLE`); all ranks must agree.
    pub reliable: bool,
    /// Long payloads go over all links that two hosts have (`KW_STRIPE`).
    pub stripe: bool,
    /// Name of this host, for what others say of us.
    pub host: String,
    /// Connections that may be open at once; idle ones are closed before, and made again when they are wanted. Without `reliable`
    /// there must be room for all peers.
    pub most: usize,
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
    /// No connection; perhaps there was one, and its link is to go on.
    Idle(Option<Box<Stream>>),
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
    pub const STRAND: u64 = 4 << 56;
    pub const STRAND_DIAL: u64 = 5 << 56;
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
    /// Where each peer listens, as far as that was asked.
    known: Vec<Known>,
    /// Long payloads go over all links (see `strands`).
    stripes: bool,
    /// From so many bytes on, if there are several.
    stripe_from: u64,
    /// Further connections, by peer.
    bundles: Vec<Option<Box<Bundle>>>,
    /// Peers with which something is under way in pieces.
    striping: Vec<Peer>,
    /// Peers to which a further connection is to be made.
    wanting: Vec<Peer>,
    striped_payloads: u64,
    /// Bytes and pieces of strands that are no more.
    striped_bytes: u64,
    striped_again: u64,
    /// Links end with their connections no sooner than their ranks.
    reliable: bool,
    /// When the event thread looks for acknowledgements.
    later: Later,
    /// When strangers and dials want to be looked at.
    next: Tick,
    /// Connections that may be open at once (see `limit`).
    most: usize,
    /// Who can have their payload back, and does not know.
    told: Vec<(Peer, u64)>,
    lists: Lists,
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
        let peers = config.size.saturating_sub(1) as usize;
        if !config.reliable && config.most < peers {
            return Err(CannotOpen(format!(
                "with KW_RELIABLE=no a rank needs room for connections to all {peers} others, but it may open only {}; raise \
                 the limit of open files (ulimit -n), or leave KW_RELIABLE=yes",
                config.most
            )));
        }
        let all = kw_sys::netif::interfaces()
            .map_err(|e| CannotOpen(format!("the interfaces cannot be listed ({e})")))?;
        let chosen =
            address::choose(&config.interfaces, config.single_host, &all).map_err(CannotOpen)?;
        let poller = Poller::new().map_err(|e| CannotOpen(format!("epoll failed ({e})")))?;
        let (door, at) = Door::open(&chosen, config.size).map_err(CannotOpen)?;
        poller
            .add(&door, tag::DOOR, Interest::Read)
            .map_err(|e| CannotOpen(format!("epoll failed ({e})")))?;
        let mut path = TcpPath {
            me: config.me,
            identity: Identity::new(config.key, &config.job, config.me.0, config.size),
            tuning,
            address: address::with_host(&config.host, address::to_text_by_interface(&at, &all)),
            poller,
            door,
            slots: (0..config.size).map(|_| Slot::Idle(None)).collect(),
            known: vec![Known::default(); config.size as usize],
            stripes: config.stripe,
            stripe_from: u64::MAX,
            bundles: (0..config.size).map(|_| None).collect(),
            striping: Vec::new(),
            wanting: Vec::new(),
            striped_payloads: 0,
            striped_bytes: 0,
            striped_again: 0,
            reliable: config.reliable,
            later: Later::default(),
            next: Tick::NEVER,
            most: if config.reliable {
                config.most.max(limit::LEAST)
            } else {
                usize::MAX
            },
            told: Vec::new(),
            lists: Lists::default(),
            patience: 0,
            events: Vec::new(),
            closed: false,
            sources: at.iter().map(SocketAddr::ip).collect(),
            own: all,
            made: Vec::new(),
        };
        path.stripes &= path.has_links();
        if path.stripes {
            path.stripe_from = path.tuning.stripe_from;
        }
        Ok(path)
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
            let device = self.interface(here);
            let others = match others.is_empty() {
                true => String::new(),
                false => format!("; not {others}"),
            };
            Some(format!(
                "tcp to rank {peer}: {here} ({device}) to {there}{others}"
            ))
        });
        lines.chain(self.network_of_strands()).collect()
    }

    /// To be called before sleeping on the descriptor: asks to be woken when a full socket has room again, and makes the
    /// next `poll` look at everything.
    pub fn arm(&mut self, who: Asleep, now: Tick) {
        self.patience = 0;
        let batch = match who {
            Asleep::Waiting => 0,
            Asleep::Serving => self.tuning.batch,
        };
        let how = self.way_to_watch();
        for &peer in &self.lists.live {
            if let Slot::Up(link) = &mut self.slots[peer.idx()] {
                link.wake_for(batch);
                let interest = match link.stream.is_flushed() {
                    true => Interest::Read,
                    false => Interest::Both,
                };
                let number = tag::LINK | peer.0 as u64;
                // Where the system refuses, the alarm or the next poll still finds what comes.
                let _ = link.be_watched(&self.poller, number, how(interest));
            }
        }
        if !self.striping.is_empty() {
            self.arm_strands(batch);
        }
        match who {
            _ if self.lists.owing.is_empty() => self.later = Later::default(),
            Asleep::Waiting => self.own_all(),
            Asleep::Serving => self.look_later(now),
        }
    }

    /// Where few connections are read directly the poller watches them for the next sleep only.
    fn way_to_watch(&self) -> fn(Interest) -> Watch {
        match self.lists.live.len() <= self.tuning.few_links {
            true => Watch::Once,
            false => Watch::Always,
        }
    }

    /// There are more connections than are read directly: the poller tells of each from now on.
    #[cold]
    fn watch_all(&mut self) -> std::io::Result<()> {
        for &peer in &self.lists.live {
            if let Slot::Up(link) = &mut self.slots[peer.idx()] {
                let number = tag::LINK | peer.0 as u64;
                link.be_watched(&self.poller, number, Watch::Always(Interest::Read))?;
            }
        }
        Ok(())
    }

    /// After a sleep on the descriptor: serves what made it readable, without asking the other connections.
    pub fn poll_ready<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        let moved = !self.lists.owing.is_empty() && self.settle(inbound);
        let moved = self.look(now, inbound) | moved;
        moved | (!self.striping.is_empty() && self.serve_striping(inbound))
    }

    /// Breaks the further connections of a peer. Whether there were any. For tests.
    pub fn cut_strands(&mut self, peer: Peer) -> bool {
        let strands = self.bundles[peer.idx()].iter().flat_map(|b| &b.strands);
        strands.map(|s| s.sock.shut()).count() > 0
    }

    /// Breaks the connection of a peer, as a bad network would. For tests.
    pub fn cut(&mut self, peer: Peer) {
        if let Some(Slot::Up(link)) = self.slot(peer) {
            link.sock.shut();
        }
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
        let known = !self.known[to.idx()].is_empty();
        if let Slot::Idle(stream) = &mut self.slots[to.idx()]
            && known
        {
            let stream = stream.take().map(|s| *s);
            self.dial(to, stream.unwrap_or_else(|| Stream::new(self.reliable)));
        }
        match &mut self.slots[to.idx()] {
            Slot::Dialing(dial) => {
                let sent = dial.stream.outbox.push(head, body, 0, cookie);
                self.start_dial(to);
                Ok(sent)
            }
            // It was there, and where it listens is being asked.
            Slot::Idle(Some(stream)) => Ok(stream.outbox.push(head, body, 0, cookie)),
            Slot::Gone(why) => Err(down(to, why.clone())),
            _ => Err(down(to, "its address is not known yet")),
        }
    }

    /// Begins to connect to a peer whose addresses are known.
    fn dial(&mut self, to: Peer, mut stream: Stream) {
        while stream.number == 0 {
            // Without random numbers no handshake begins either; the attempts say so.
            let bytes = kw_sys::random::key().unwrap_or([1; 32]);
            stream.number = u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[1; 8]));
        }
        let addresses = self.known[to.idx()].addresses().collect();
        let dial = self.new_dial(to, tag::DIAL, addresses, stream);
        self.slots[to.idx()] = Slot::Dialing(Box::new(dial));
        self.lists.dialing.push(to);
        self.patience = 0;
    }

    /// A dial that has not begun, of some addresses of a peer.
    fn new_dial(&self, to: Peer, kind: u64, at: Vec<SocketAddr>, stream: Stream) -> Dial {
        let own: Vec<IpAddr> = self.own.iter().map(|i| i.addr).collect();
        let host = &self.known[to.idx()].host;
        Dial::new(to, kind | to.0 as u64, at, &own, stream).of_host(host)
    }

    /// Takes an authenticated connection into use.
    fn adopt(&mut self, peer: Peer, sock: Sock, stream: Stream) -> std::io::Result<()> {
        if let Some(bytes) = self.tuning.socket_buffer {
            sock.set_buffers(bytes)?;
        }
        if !stream.is_flushed() {
            note(&mut self.lists.backlog, peer);
        }
        note(&mut self.lists.live, peer);
        self.lists.dialing.retain(|&p| p != peer);
        let mut link = Link::new(sock, stream, &self.tuning);
        let number = tag::LINK | peer.0 as u64;
        link.be_watched(&self.poller, number, self.way_to_watch()(Interest::Read))?;
        self.lists.note_owing(peer, &link);
        self.slots[peer.idx()] = Slot::Up(Box::new(link));
        if self.lists.live.len() == self.tuning.few_links + 1 {
            self.watch_all()?;
        }
        Ok(())
    }

    /// The end of a peer: tells it, unless a goodbye was told already.
    fn bury<I: Inbound>(&mut self, peer: Peer, reason: String, inbound: &mut I) {
        let old = std::mem::replace(&mut self.slots[peer.idx()], Slot::Gone(reason.clone()));
        self.lists.forget(peer);
        self.bundles[peer.idx()] = None;
        self.striping.retain(|&p| p != peer);
        let told = matches!(&old, Slot::Up(link) if link.stream.bye);
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
            Ok(false) => false,
            Ok(true) => {
                self.lists.used(link);
                let striping = link.stream.is_striping();
                if link.stream.unwanted {
                    self.give_way(peer, inbound);
                }
                if striping {
                    self.note_striping(peer);
                }
                true
            }
            Err(end) => self.ended(peer, end, inbound),
        }
    }

    /// Sends what is queued.
    fn flush<I: Inbound>(&mut self, inbound: &mut I) -> bool {
        let mut moved = false;
        let mut i = 0;
        while i < self.lists.backlog.len() {
            let (sent, left) = self.push(self.lists.backlog[i], inbound);
            moved |= sent;
            if left {
                i += 1;
            } else {
                self.lists.backlog.swap_remove(i);
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
            if link.stream.kept.is_none() {
                link.stream.outbox.clear();
            }
            false
        });
        self.lists.note_owing(peer, link);
        if link.stream.is_flushed() && link.stream.is_striping() {
            self.share(peer);
        }
        let Slot::Up(link) = &self.slots[peer.idx()] else {
            return (sent, false);
        };
        let left = !link.stream.is_flushed();
        if !left && self.closed {
            link.sock.shut_write();
        }
        (sent, left)
    }

    /// There is room to send to this peer.
    fn push_ready<I: Inbound>(&mut self, peer: Peer, inbound: &mut I) -> bool {
        if !self.lists.backlog.contains(&peer) {
            return false;
        }
        let (sent, left) = self.push(peer, inbound);
        if !left {
            self.lists.backlog.retain(|&p| p != peer);
        }
        sent
    }

    /// The poller has told of a connection. What is told once counts as something that moved, so that nobody sleeps before it is
    /// watched again.
    fn told_of<I: Inbound>(&mut self, peer: Peer, event: &Event, inbound: &mut I) -> bool {
        let once = match &mut self.slots[peer.idx()] {
            Slot::Up(link) => link.was_told(),
            _ => false,
        };
        once | (event.read && self.pull(peer, inbound))
            | (event.write && self.push_ready(peer, inbound))
    }

    /// Asks the poller and serves what it names.
    fn look<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        self.patience = self.tuning.look_every;
        let mut events = std::mem::take(&mut self.events);
        // An epoll that fails leaves the direct reads; there is nobody to tell.
        let _ = self.poller.wait(Some(Duration::ZERO), &mut events);
        let mut moved = false;
        for e in &events {
            let low = e.data & !tag::KINDS;
            moved |= match e.data & tag::KINDS {
                tag::LINK => self.told_of(Peer(low as u32), e, inbound),
                tag::STRAND => self.strand_ready(low, inbound),
                tag::STRAND_DIAL => self.advance_strand(Peer(low as u32), now),
                tag::DIAL => self.advance_dial(Peer(low as u32), now, inbound),
                _ => self.answer_door(now, inbound),
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
            Dialled::Connected(sock, claim, others) => {
                let stream = std::mem::take(&mut dial.stream);
                self.made.retain(|(p, _)| *p != peer);
                self.made.push((peer, others));
                self.connected(peer, sock, stream, claim, inbound);
                true
            }
            Dialled::Exhausted => self.fall_back(peer, inbound),
        }
    }

    /// Hears who stands at the door, and leaves it alone for a while when strangers are about.
    fn answer_door<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        let mut moved = false;
        for ring in self.door.rings(now) {
            moved |= match ring {
                Ring::Says(key) => self.advance_knock(key, inbound),
                Ring::Waits(listener) => self.let_in(listener, now),
            };
        }
        let rests = self.door.rest(now);
        self.mute_door(rests);
        moved
    }

    /// Whether our poller tells of the door.
    fn mute_door(&mut self, mute: bool) {
        let interest = if mute { Interest::End } else { Interest::Read };
        if mute != self.door.muted && self.poller.change(&self.door, tag::DOOR, interest).is_ok() {
            self.door.muted = mute;
        }
    }

    /// Time-outs of strangers and of dials, and the alarm for the next ones.
    fn timers<I: Inbound>(&mut self, now: Tick, inbound: &mut I) {
        if self.is_settled() {
            self.next = Tick::NEVER;
            return;
        }
        if self.door.muted && self.door.rests(now).is_none() {
            self.answer_door(now, inbound);
        }
        let mut next = self.door.expire(now).min(self.limits(now, inbound));
        if self.door.muted {
            next = next.min(self.door.rests(now).unwrap_or(now));
        }
        next = next.min(self.dial_strands(now, inbound));
        for i in (0..self.lists.dialing.len()).rev() {
            let peer = self.lists.dialing[i];
            let Slot::Dialing(dial) = &mut self.slots[peer.idx()] else {
                continue;
            };
            if !dial.begun {
                continue;
            }
            match dial.tick(now, &self.identity, &self.poller, &self.sources) {
                Ok(at) => next = next.min(at),
                Err(reason) => self.bury(peer, reason, inbound),
            }
        }
        self.next = next;
        // Without the alarm the rank still sees the time-out at its next poll.
        let _ = self.poller.set_alarm(next);
    }

    fn is_settled(&self) -> bool {
        !self.is_connecting() && self.door.is_quiet()
    }

    /// Whether connections of ours are being made or given up.
    fn is_connecting(&self) -> bool {
        !self.lists.dialing.is_empty()
            || !self.wanting.is_empty()
            || !self.lists.yielding.is_empty()
    }

    /// Whether the poller is asked at every turn.
    fn is_urgent(&self, now: Tick) -> bool {
        self.is_connecting() || self.door.is_urgent(now)
    }
}

impl Path for TcpPath {
    /// Measured on loopback with `examples/tcp_pingpong.rs`; a real network is slower to start and to move.
    fn caps(&self, _peer: Peer) -> Caps {
        let line = |t0, tb| CostLine { t0, tb };
        Caps {
            name: "tcp",
            stream: line(4_200.0, 0.12),
            copy: line(60.0, 0.06),
            control: line(4_200.0, 0.0),
            get: None,
            put: None,
        }
    }

    fn address(&self) -> String {
        self.address.clone()
    }

    fn wants_address(&self, peer: Peer) -> bool {
        let idle = matches!(self.slot(peer), Some(Slot::Idle(_)));
        peer != self.me && idle && self.known[peer.idx()].is_empty()
    }

    fn introduce(&mut self, peer: Peer, text: &str) -> Result<(), Down> {
        let told = Known::read(text).map_err(|why| down(peer, why))?;
        let Some(known) = self.known.get_mut(peer.idx()) else {
            return Err(down(peer, "there is no such rank"));
        };
        if known.is_empty() {
            *known = told;
        }
        self.go_on(peer);
        Ok(())
    }

    #[inline]
    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        debug_assert_eq!(body.len(), head.body_len(), "body of {head:?}");
        if body.len() >= self.stripe_from
            && let Some(sent) = self.send_striped(to, head, body, cookie)?
        {
            return Ok(sent);
        }
        let Some(Slot::Up(link)) = self.slots.get_mut(to.idx()) else {
            return self.send_unconnected(to, head, body, cookie);
        };
        if self.closed || link.stream.bye {
            return Err(down(to, "goodbye has been said (MPI_Finalize)"));
        }
        let sent = self
            .lists
            .send(link, to, (head, body), cookie, &self.tuning);
        sent.map_err(|e| {
            let end = End::Failed(e);
            let what = end.what(self.me, to, &link.way());
            down(to, format!("{what}; {}", end.advice(to)))
        })
    }

    fn poll<I: Inbound>(&mut self, now: Tick, inbound: &mut I) -> bool {
        let mut moved = !self.lists.backlog.is_empty() && self.flush(inbound);
        moved |= !self.lists.owing.is_empty() && self.settle(inbound);
        let few = self.lists.live.len() <= self.tuning.few_links;
        if few {
            for i in (0..self.lists.live.len()).rev() {
                // A pull may end a connection, and with it shorten the list.
                if let Some(&peer) = self.lists.live.get(i) {
                    moved |= self.pull(peer, inbound);
                }
            }
            self.patience = self.patience.saturating_sub(1);
        }
        if !few || self.patience == 0 || self.is_urgent(now) {
            moved |= self.look(now, inbound);
        }
        if !self.striping.is_empty() {
            moved |= self.serve_striping(inbound);
        }
        moved
    }

    #[inline]
    fn poll_from<I: Inbound>(&mut self, peer: Peer, now: Tick, inbound: &mut I) -> bool {
        if self.patience == 0 || !matches!(self.slot(peer), Some(Slot::Up(_))) {
            return self.poll(now, inbound);
        }
        self.patience -= 1;
        let mut moved = !self.lists.backlog.is_empty() && self.flush(inbound);
        moved |= !self.lists.owing.is_empty() && self.settle(inbound);
        moved |= self.pull(peer, inbound);
        if !self.striping.is_empty() {
            moved |= self.serve_striping(inbound);
        }
        moved
    }

    fn pending(&self) -> bool {
        let dialing =
            |&p: &Peer| matches!(self.slot(p), Some(Slot::Dialing(d)) if !d.stream.is_flushed());
        !self.lists.backlog.is_empty() || self.lists.dialing.iter().any(dialing)
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
                    link.stream.outbox.seal();
                    let to = Peer(i as u32);
                    // A connection that is broken needs no goodbye.
                    let _ = self
                        .lists
                        .send(link, to, (&bye, Body::None), 0, &self.tuning);
                    if link.stream.is_flushed() {
                        link.sock.shut_write();
                    }
                }
                Slot::Dialing(dial) if !dial.stream.is_flushed() => {
                    dial.stream.outbox.seal();
                    dial.stream.outbox.push(&bye, Body::None, 0, 0);
                }
                _ => {}
            }
        }
    }
}
