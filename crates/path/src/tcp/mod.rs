//! TCP: one connection per pair of ranks, opened on the first send.
//!
//! # Use
//! ```no_run
//! use kw_base::Peer;
//! use kw_path::tcp::{Config, TcpPath};
//! use kw_path::{Member, Path, Ports};
//! let member = Member {
//!     me: Peer(0),
//!     size: 2,
//!     job: "job-1".to_string(),
//!     key: [0; 32],
//!     interfaces: "auto".to_string(), // the knob KW_INTERFACES
//!     ports: Ports::default(),        // the knob KW_PORTS
//!     single_host: true,              // all ranks of the job share this machine: listen on loopback only
//! };
//! let config = Config {
//!     member,
//!     reliable: true, // the knob KW_RELIABLE
//!     host: "node1".to_string(),
//!     stripe: true, // the knob KW_STRIPE
//!     most: 1000,   // connections at once
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
//! A connection carries frames back to back: the 32-byte header of [`kw_proto::wire`], then the body. Header and payload
//! leave in one gathering call from where they lie; what the socket does not take is queued (payload as a clone of its
//! [`Buf`](kw_sys::buf::Buf), anything small as a copy). A frame whose body is in the read buffer goes to `on_frame`; a
//! longer payload is received straight into its [`Landing`](crate::Landing). Between hosts the payload of `Data` and `Write` comes in
//! segments, between which small frames pass (see `outbox`); on loopback it would gain nothing. Reading and writing take turns with a budget,
//! so that two ranks that send each other large messages both move.
//!
//! # Making connections
//! All addresses of the peer are tried at once (see `dial`), and the first one that proves the job's key (see
//! [`kw_proto::handshake`]) is kept. When both ranks of a pair connect at the same time, the connection that the lower rank
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
//!
//! # Where what is
//! | file | what |
//! | --- | --- |
//! | `path`, `turn`, `lists` | what the engine calls; a turn of reading and sending; whom it visits |
//! | `ahead` | short frames of a rank that does not wait are joined |
//! | `link` (`sending`, `owing`, `traffic`), `stream`, `outbox`, `end` | a connection in use; what of a link outlives it; what waits to be sent; why it ended |
//! | `connect`, `dial`, `attempt` | calling a peer: one connection, all its addresses, one of them |
//! | `callers`, `acceptor` | being called: who is taken, who stands at the acceptor |
//! | `remake`, `silence`, `limit` | connections that break; that are left because another link is there; more peers than connections |
//! | `rails`, `further`, `pieces`, `rail`, `stripe` | several links: what there is, how it is made, long payloads over it |
//! | `tune` | the numbers |

mod accept;
mod acceptor;
mod attempt;
mod coalesce;
mod connect;
mod connection_limit;
mod dial;
mod disconnect;
mod link;
mod outbox;
mod path;
mod pieces;
mod progress;
mod rail;
mod rail_setup;
mod rails;
mod ready_lists;
mod reconnect;
mod sending;
mod stream;
mod stripe;
mod traffic;
mod tuning;
mod unacked;
mod unacked_timeout;

pub use tuning::Tuning;

use crate::address::{self, Known};
use crate::contract::{Body, Caps, CostLine, Down, Inbound, Path, Sent};
use crate::member::{CannotOpen, Member};
use acceptor::Acceptor;
use dial::Dial;
use kw_base::{Peer, Tick};
use kw_proto::handshake::{Claim, Identity};
use kw_proto::wire::{Header, Kind};
use kw_sys::netif::Interface;
use kw_sys::poller::{Event, Interest, Poller};
use kw_sys::tcp::Sock;
use link::Link;
use rails::RailSet;
use ready_lists::{ReadyLists, note};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use stream::Stream;
use stripe::Stripes;
use unacked::Later;

/// What a path must know to open.
#[derive(Clone)]
pub struct Config {
    /// Who opens it.
    pub member: Member,
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

/// Who is about to sleep until a socket has something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asleep {
    /// A thread that waits: whatever comes may be what it waits for.
    Waiting,
    /// The event thread, while the program computes: every time that it wakes, the computation stands still, so it sleeps until a segment of
    /// a long payload has come. Nobody hears before the next call that a send has ended.
    Serving,
    /// The same, while an operation goes on whose next step may wait for the end of a send.
    Stepping,
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

impl Slot {
    /// The link, whatever its connection does.
    fn stream(&mut self) -> Option<&mut Stream> {
        match self {
            Slot::Idle(stream) => stream.as_deref_mut(),
            Slot::Dialing(dial) => Some(&mut dial.stream),
            Slot::Up(link) => Some(&mut link.stream),
            Slot::Gone(_) => None,
        }
    }

    /// What of it is under way in pieces.
    fn stripes(&mut self) -> Option<&mut Stripes> {
        self.stream()?.stripes.as_deref_mut()
    }
}

/// Kinds whose payload may be interrupted by small frames: the receive is matched, so nobody can see the order.
fn segmented(kind: Kind) -> bool {
    matches!(kind, Kind::Data | Kind::Write)
}

/// Numbers in the poller: what kind of thing in the top byte, which one below.
mod tag {
    pub const ACCEPTOR: u64 = 0;
    pub const PENDING: u64 = 1 << 56;
    pub const DIAL: u64 = 2 << 56;
    pub const LINK: u64 = 3 << 56;
    pub const RAIL: u64 = 4 << 56;
    pub const RAIL_DIAL: u64 = 5 << 56;
    pub const KINDS: u64 = 0xff << 56;

    /// Number of a rail.
    pub fn rail(peer: kw_base::Peer, id: kw_proto::stripe::Carrier) -> u64 {
        RAIL | (id as u64) << 32 | peer.0 as u64
    }
}

/// The TCP path of one rank.
#[derive(Debug)]
pub struct TcpPath {
    me: Peer,
    identity: Identity,
    tuning: Tuning,
    address: String,
    poller: Poller,
    acceptor: Acceptor,
    slots: Vec<Slot>,
    /// Where each peer listens, as far as that was asked.
    known: Vec<Known>,
    /// Long payloads go over all links (see `rails`).
    stripes: bool,
    /// From so many bytes on, if there are several.
    stripe_from: u64,
    /// Further connections, by peer.
    bundles: Vec<Option<Box<RailSet>>>,
    /// Peers with which something is under way in pieces.
    striping: Vec<Peer>,
    /// Peers to which a further connection is to be made.
    wanting: Vec<Peer>,
    striped_payloads: u64,
    /// Bytes and pieces of rails that are no more.
    striped_bytes: u64,
    striped_again: u64,
    /// Our host has several interfaces that the ranks may use.
    linked: bool,
    /// When kernels are asked next what is unanswered, and whether anything was (see `silence`).
    listen_at: Tick,
    waiting: bool,
    silent_left: u64,
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
    lists: ReadyLists,
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

fn cannot(why: String) -> CannotOpen {
    CannotOpen { path: "tcp", why }
}

impl TcpPath {
    /// Listens, and connects to nobody yet.
    pub fn new(config: Config) -> Result<TcpPath, CannotOpen> {
        let tuning = Tuning::for_size(config.member.size);
        TcpPath::tuned(config, tuning)
    }

    /// As `new`, with other numbers than the measured ones.
    pub fn tuned(config: Config, tuning: Tuning) -> Result<TcpPath, CannotOpen> {
        let member = &config.member;
        let peers = member.size.saturating_sub(1) as usize;
        if !config.reliable && config.most < peers {
            return Err(cannot(format!(
                "with KW_RELIABLE=no a rank needs room for connections to all {peers} others, but it may open only {}; raise \
                 the limit of open files (ulimit -n), or leave KW_RELIABLE=yes",
                config.most
            )));
        }
        let (all, chosen) = member.addresses().map_err(cannot)?;
        let poller = Poller::new().map_err(|e| cannot(format!("epoll failed ({e})")))?;
        let (acceptor, at) =
            Acceptor::open((&chosen, member.ports), member.size, &poller).map_err(cannot)?;
        let mut path = TcpPath {
            me: member.me,
            identity: member.identity(),
            tuning,
            address: address::with_host(&config.host, address::to_text_by_interface(&at, &all)),
            poller,
            acceptor,
            slots: (0..member.size).map(|_| Slot::Idle(None)).collect(),
            known: vec![Known::default(); member.size as usize],
            stripes: config.stripe,
            stripe_from: u64::MAX,
            bundles: (0..member.size).map(|_| None).collect(),
            striping: Vec::new(),
            wanting: Vec::new(),
            striped_payloads: 0,
            striped_bytes: 0,
            striped_again: 0,
            linked: false,
            listen_at: Tick(0),
            waiting: false,
            silent_left: 0,
            reliable: config.reliable,
            later: Later::default(),
            next: Tick::NEVER,
            most: if config.reliable {
                config.most.max(connection_limit::LEAST)
            } else {
                usize::MAX
            },
            told: Vec::new(),
            lists: ReadyLists::default(),
            patience: 0,
            events: Vec::new(),
            closed: false,
            sources: at.iter().map(SocketAddr::ip).collect(),
            own: all,
            made: Vec::new(),
        };
        path.linked = path.has_links();
        path.stripes &= path.linked;
        if path.stripes {
            path.stripe_from = path.tuning.stripe_from;
        }
        Ok(path)
    }

    /// Connections that were closed because they could not prove the key, or took too long to.
    pub fn strangers_refused(&self) -> u64 {
        self.acceptor.refused()
    }

    /// Connections that were left because nothing was answered over them while there was another link.
    pub fn silent_left(&self) -> u64 {
        self.silent_left
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
        lines.chain(self.network_of_rails()).collect()
    }

    /// Breaks the further connections of a peer. Whether there were any. For tests.
    pub fn cut_rails(&mut self, peer: Peer) -> bool {
        let rails = self.bundles[peer.idx()].iter().flat_map(|b| &b.rails);
        rails.map(|s| s.sock.shut()).count() > 0
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
}
