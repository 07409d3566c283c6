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
//!     interfaces: "auto".to_string(), // the setting KW_INTERFACES
//!     ports: Ports::default(),        // the setting KW_PORTS
//!     single_host: true,              // all ranks of the job share this machine: listen on loopback only
//! };
//! let config = Config {
//!     member,
//!     reliable: true, // the setting KW_RELIABLE
//!     host: "node1".to_string(),
//!     stripe: true, // the setting KW_STRIPE
//!     most: 1000,   // connections at once
//! };
//! let path = TcpPath::new(config).unwrap();
//! let _publish = path.address();
//! ```
//! After that it is a [`Path`]: `introduce` every peer that `wants_address` says (before the first
//! send; never needed for a peer that has connected to us), `send`, `poll`. To sleep: call
//! [`TcpPath::arm`], `poll` once more, and if nothing moved wait until
//! [`TcpPath::as_fd`](std::os::fd::AsFd) (an epoll descriptor, for nesting in another,
//! level-triggered) is readable; time-outs of connection set-up make it readable as well. A thread
//! that only serves needs no second `poll`, and after its sleep [`TcpPath::poll_ready`] does.
//!
//! # Frames
//! A connection carries frames back to back: the 32-byte header of [`kw_proto::wire`], then the
//! body. Header and payload leave in one gathering call from where they are; what the socket does
//! not take is queued (payload as a clone of its [`Buf`](kw_sys::buf::Buf), anything small as a
//! copy). A frame whose body is in the read buffer goes to `on_frame`; a longer payload is received
//! straight into its [`Destination`](crate::Destination). Between hosts the payload of `Data` and
//! `Write` comes in segments, between which small frames pass (see `outbox`); on loopback it would
//! gain nothing. Reading and writing take turns with a budget, so that two ranks that send each
//! other large messages both move.
//!
//! # Making connections
//! All addresses of the peer are tried at once (see `dial`), and the first one that proves the
//! job's key (see [`kw_proto::handshake`]) is kept. When both ranks of a pair connect at the same
//! time, the connection that the lower rank made is kept: the higher rank welcomes it and drops its
//! own; the lower rank lets the higher one's wait, and welcomes it only if all of its own attempts
//! fail. Frames flow only on a welcomed connection, so none is lost or overtaken.
//!
//! The states of a peer are in `peers`.
//!
//! # Ends
//! `close` sends a Bye frame on every connection. A received Bye is reported as `on_down(clean =
//! true)`. After an end without one another connection carries the link on, and nothing is lost,
//! repeated or reordered (`KW_RELIABLE`, see `remake`); if none can be made `on_down(clean =
//! false)` reports what happened. Bye frames are the path's own and are not passed on.
//!
//! # Files
//! | file | what |
//! | --- | --- |
//! | `path`, `network`, `progress` | functions for the engine; a turn of reading and sending |
//! | `net` | the state that all parts share: `local` (this rank), `watcher` (the poller), `peers` with their `ready_lists`, `striping` |
//! | `link` (`sending`, `coalesce`), `stream` | a connection in use; what outlives it |
//! | `reader`, `inflow`, `outbox`, `unacked`, `bulk_detector` | of a link: incoming, waiting and unacknowledged data |
//! | `socket` | the functions of a socket that these use, and a socket for tests |
//! | `connector`, `dial`, `attempt` | calling a peer: all its addresses, one of them |
//! | `acceptor` | being called: connections that have not proven the key |
//! | `reconnect`, `disconnect`, `unacked_timeout` | connections that break, why, and those that are left because another link is there |
//! | `connection_limit` | more peers than connections |
//! | `ack_timer` | when kernels are asked for acknowledgements |
//! | `rails`, `rail`, `striping`, `stripe` | several links: how they are made, one of them, long payloads over them |
//! | `tuning` | the numbers |

mod acceptor;
mod ack_timer;
mod attempt;
mod bulk_detector;
mod connection_limit;
mod connector;
mod dial;
mod disconnect;
mod inflow;
mod link;
mod local;
mod net;
mod network;
mod outbox;
mod path;
mod peers;
mod progress;
mod quiet;
mod rail;
mod rails;
mod reader;
mod ready_lists;
mod reconnect;
mod socket;
mod stream;
mod stripe;
mod striping;
mod tuning;
mod unacked;
mod unacked_timeout;
mod watcher;

pub use network::open;
pub use tuning::Tuning;

use crate::address;
use crate::{CannotOpen, Cause, Lacking, Member};
use acceptor::Acceptor;
use ack_timer::AckTimer;
use connection_limit::ConnectionLimit;
use connector::Connector;
use kw_base::Peer;
use kw_proto::wire::Kind;
use kw_sys::poller::Poller;
use local::Local;
use net::Net;
use peers::Peers;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use striping::Striping;
use unacked_timeout::UnackedTimeout;
use watcher::Watcher;

/// Parameters to open a path.
#[derive(Clone)]
pub struct Config {
    /// The rank that opens it.
    pub member: Member,
    /// A broken connection is re-established, and nothing is lost (`KW_RELIABLE`); all ranks must
    /// agree.
    pub reliable: bool,
    /// Long payloads go over all links that two hosts have (`KW_STRIPE`).
    pub stripe: bool,
    /// Name of this host, for messages of other ranks.
    pub host: String,
    /// Most connections that may be open at once; idle ones are closed before, and made again when
    /// they are needed. Without `reliable` there must be room for all peers.
    pub most: usize,
}

/// Kinds whose payload may be interrupted by small frames: the receive is matched, so the order is
/// not visible.
fn segmented(kind: Kind) -> bool {
    matches!(kind, Kind::Data | Kind::Write)
}

/// The TCP path of one rank.
#[derive(Debug)]
pub struct TcpPath {
    address: String,
    net: Net,
    connector: Connector,
    acks: AckTimer,
    timeout: UnackedTimeout,
}

impl AsFd for TcpPath {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.net.watcher.as_fd()
    }
}

fn cannot(why: impl Into<Cause>) -> CannotOpen {
    CannotOpen::new("tcp", why)
}

impl TcpPath {
    /// Listens, without connecting to any peer.
    pub fn new(config: Config) -> Result<TcpPath, CannotOpen> {
        let tuning = Tuning::for_size(config.member.size);
        TcpPath::tuned(config, tuning)
    }

    /// Like `new`, with other numbers than the measured ones.
    pub fn tuned(config: Config, tuning: Tuning) -> Result<TcpPath, CannotOpen> {
        let member = &config.member;
        let peers = member.size.saturating_sub(1) as usize;
        if !config.reliable && config.most < peers {
            let most = config.most;
            return Err(cannot(Lacking::Files { peers, most }));
        }
        let (all, chosen) = member.addresses().map_err(cannot)?;
        let poller = Poller::new()
            .map_err(Cause::io("epoll failed"))
            .map_err(cannot)?;
        let (acceptor, at) =
            Acceptor::open((&chosen, member.ports), member.size, &poller).map_err(cannot)?;
        let local = Local::new(
            (member.me, member.identity()),
            config.reliable,
            tuning,
            (all.clone(), at.iter().map(SocketAddr::ip).collect()),
        );
        let linked = local.has_links();
        let stripes = config.stripe && linked;
        let from = stripes.then_some(local.tuning.stripe_from);
        let limit = ConnectionLimit::new(config.reliable, config.most);
        Ok(TcpPath {
            address: address::with_host(&config.host, address::to_text_by_interface(&at, &all)),
            net: Net {
                local,
                watcher: Watcher::new(poller),
                peers: Peers::new(member.me, member.size),
                striping: Striping::new(member.size, from),
            },
            connector: Connector::new(acceptor, limit),
            acks: AckTimer::default(),
            timeout: UnackedTimeout::new(linked),
        })
    }

    /// Connections that were closed because they could not prove the key, or took too long to.
    pub fn connections_refused(&self) -> u64 {
        self.connector.acceptor().refused()
    }

    /// Connections that were left because nothing was answered over them while there was another
    /// link.
    pub fn silent_left(&self) -> u64 {
        self.timeout.left()
    }

    /// Number of current and imminent connections.
    pub fn connections(&self) -> usize {
        self.connector.connections(&self.net)
    }

    /// Traffic over further connections: payloads sent in pieces, their bytes that did not use the
    /// first one, and resent pieces.
    pub fn striped(&self) -> [u64; 3] {
        self.net.striping.counts()
    }

    /// The addresses used by the connections that this rank made (a peer may have closed its own
    /// since, because it has finished), and the results of the others.
    pub fn network(&self) -> Vec<String> {
        let lines = self.connector.made().iter().map(|made| {
            let (peer, (here, there)) = (made.peer, made.ends);
            let device = self.net.local.interface(here);
            let others = match made.others.is_empty() {
                true => String::new(),
                false => format!("; not {}", made.others),
            };
            format!("tcp to rank {peer}: {here} ({device}) to {there}{others}")
        });
        let rails = self.net.striping.rails();
        lines.chain(rails.network(&self.net.local)).collect()
    }

    /// Breaks the further connections of a peer. Returns whether there were any. For tests.
    pub fn cut_rails(&mut self, peer: Peer) -> bool {
        let rails = self.net.striping.rails().of(peer);
        rails.iter().for_each(|rail| rail.shut());
        !rails.is_empty()
    }

    /// Breaks the connection of a peer, as a bad network would. For tests.
    pub fn cut(&mut self, peer: Peer) {
        if let Some(link) = self.net.peers.link(peer) {
            link.shut();
        }
    }
}
