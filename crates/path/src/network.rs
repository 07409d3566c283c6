//! A path over a network as the engine sees it: one object behind a trait, so that the engine names
//! no network. A rank has at most one.
//!
//! [`Path`] has the functions of every path, which the conformance suite tests. [`Network`] adds
//! those that only a network needs: sleeping until something comes, counters, and lines for people.
//! It passes incoming data to a `&mut dyn Inbound`: a virtual call for each frame costs little
//! compared with a system call. Shared memory is not a [`Network`]: the engine knows its type, and
//! its code is inlined.

use crate::cannot_open::CannotOpen;
use crate::contract::{Inbound, Path};
use crate::member::Member;
use kw_base::counters::{Counter, Way};
use kw_base::settings::{Id, Settings};
use kw_base::{Peer, Tick};
use kw_proto::handshake::Foreign;
use kw_proto::p2p::prices;
use std::fmt::Debug;
use std::ops::Range;
use std::os::fd::BorrowedFd;

/// The thread that is about to sleep until a network has something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asleep {
    /// A thread that waits: any incoming data may end its wait.
    Waiting,
    /// The progress thread, while the program computes: every wake-up interrupts the computation,
    /// so it sleeps until a segment of a long payload has arrived. The end of a send is reported
    /// only at the next call.
    Polling,
    /// The progress thread, while an operation is in progress whose next step may wait for the end
    /// of a send.
    Stepping,
}

/// Parameters that are the same for every rank that uses a network.
#[derive(Debug)]
pub struct About {
    /// Its word in `KW_PATHS`, under which the address of a rank is published, too.
    pub name: &'static str,
    /// The heading under which its messages are counted.
    pub way: Way,
    /// The setting that sets the largest eager message.
    pub eager: Id,
    /// [`Path::poll_from`] costs less than [`Path::poll`]. Otherwise a rank that waits for one peer
    /// polls all of them.
    pub looks_at_one: bool,
}

/// A path over a network.
pub trait Network: Path + Debug + Send {
    /// The common parameters.
    fn about(&self) -> &'static About;

    /// There are `size` ranks from now on: existing ranks keep their numbers, and new ones can be
    /// introduced. A smaller number than now changes nothing.
    fn grow(&mut self, size: u32);

    /// Another job has been met: its ranks are peers, and can be introduced. Not supported if the
    /// network reaches the ranks of one job only.
    fn join(&mut self, foreign: Foreign) -> Result<(), CannotOpen> {
        self.grow(foreign.first + foreign.size);
        Ok(())
    }

    /// Forgets all state of a job that has been met, whose ranks these peers are, so that others
    /// may get their numbers. Only if none of them can be reached any more, or none ever was;
    /// returns whether that is so.
    fn forget(&mut self, peers: Range<u32>) -> bool {
        let _ = peers;
        false
    }

    /// Polls after a sleep on [`Network::descriptor`]: only what made it readable has to be looked
    /// at.
    fn poll_ready(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        self.poll(now, inbound)
    }

    /// Polls, before a sleep, everything that would end that sleep at once or does not make
    /// [`Network::descriptor`] readable.
    fn poll_unwatched(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let _ = (now, inbound);
        false
    }

    /// Must be called before a thread sleeps on [`Network::descriptor`], which wakes it from now
    /// on.
    fn arm(&mut self, who: Asleep, now: Tick) {
        let _ = (who, now);
    }

    /// Becomes readable when something comes or is due; for use in another, level-triggered poller.
    /// `None`: nothing of this network ever wakes a thread.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether no sent data is in flight, as far as this side can tell. May query the system about
    /// each connection.
    fn is_quiet(&mut self) -> bool {
        !self.pending()
    }

    /// The time, if it is not the machine's.
    fn clock(&self) -> Option<Tick> {
        None
    }

    /// Measurements of the route to a peer that may be saved for the next job: zero if there are
    /// none.
    fn known_network(&self, peer: Peer) -> prices::Network {
        let _ = peer;
        prices::Network::default()
    }

    /// The addresses that the connections use, a line each, for people.
    fn network(&self) -> Vec<String> {
        Vec::new()
    }

    /// The value of a counter that this network keeps.
    fn counter(&self, counter: Counter) -> Option<u64> {
        let _ = counter;
        None
    }
}

/// Parameters to open a network.
#[derive(Clone)]
pub struct Opening<'a> {
    /// The network's word in `KW_PATHS`.
    pub name: &'static str,
    /// The rank that opens it.
    pub member: Member,
    /// The settings of this rank.
    pub settings: &'a Settings,
    /// Ranks share CPUs.
    pub oversubscribed: bool,
    /// Ranks that share memory with this one, including itself, whose processes it may watch: it
    /// may keep an open file for each.
    pub sharing: usize,
}

/// Function that opens a network.
pub type Open = fn(Opening<'_>) -> Result<Box<dyn Network>, CannotOpen>;
