//! The paths of one rank: which one serves which peer, and the adapter between paths and the
//! protocol machine.

mod costs;
mod open;
mod port;
mod prices;
pub(crate) mod seen;

pub use costs::{Costs, UNROUTED};
pub(crate) use open::local;
pub(crate) use open::opening_for_others;
pub use open::{WithMemory, join};
pub(crate) use port::NO_REQUEST;
pub use port::Port;

use crate::sleeper::{Bell, Sleeper};
use kw_base::counters::{Counter, Way};
use kw_base::settings::Settings;
use kw_base::{Peer, Tick};
use kw_boot::{Job, Launcher};
use kw_path::selfpath::SelfPath;
use kw_path::shm::Ranks;
use kw_path::shm::ShmPath;
use kw_path::shm::region::ShmRegions;
use kw_path::{Asleep, Body, CannotOpen, Down, Inbound, Network, Path, Sent};
use kw_proto::handshake::Foreign;
use kw_proto::p2p::table::Choice;
use kw_proto::wire::{Header, RemoteRegion};
use kw_start::address_key;
use kw_sys::buf::Buf;
use prices::Prices;
use seen::Seen;
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

/// The path that serves a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Unknown,
    Myself,
    Shm,
    Net,
}

/// All paths of one rank.
#[derive(Debug)]
pub struct Paths {
    routes: Vec<Route>,
    me: Peer,
    prices: Prices,
    seen: Seen,
    myself: SelfPath,
    shm: Option<ShmPath>,
    /// The path to other hosts.
    net: Option<Box<dyn Network>>,
    /// Shm regions of this host; made when first asked for.
    shm_regions: Option<ShmRegions>,
    /// This rank, when it is alone on its host and shared memory is allowed.
    alone: Option<Peer>,
    /// Polls so far; the clock is read, and idle paths are polled, only now and then.
    polls: u32,
    now: Tick,
}

impl Paths {
    /// The paths of a rank that shares memory with no other.
    pub fn over(job: &Job, settings: &Settings, net: Option<Box<dyn Network>>) -> Paths {
        let eager = net.as_ref().map(|net| net.about().eager);
        Paths {
            routes: vec![Route::Unknown; job.size() as usize],
            me: job.me,
            prices: Prices::read(job.agreed().calibration(), settings, eager, job.size()),
            seen: Seen::new(job),
            myself: SelfPath::new(job.me),
            shm: None,
            net,
            shm_regions: None,
            alone: None,
            polls: 0,
            now: kw_sys::clock::now(),
        }
    }

    /// There are `size` peers from now on: existing peers keep their numbers and paths.
    pub(crate) fn grow(&mut self, size: u32, settings: &Settings) {
        self.routes.resize(size as usize, Route::Unknown);
        if let Some(net) = &mut self.net {
            net.grow(size);
        }
        self.set_settings(settings);
    }

    /// The network by which this rank is reached, and its address there.
    pub(crate) fn address(&self) -> Option<(&'static str, String)> {
        let net = self.net.as_deref()?;
        Some((net.about().name, net.address()))
    }

    /// Takes a network; there was none.
    pub(crate) fn set_network(&mut self, mut net: Box<dyn Network>, settings: &Settings) {
        net.grow(self.routes.len() as u32);
        self.net = Some(net);
        self.set_settings(settings);
    }

    /// Another job was met, whose ranks are peers already.
    pub(crate) fn join(&mut self, foreign: Foreign) -> Result<(), CannotOpen> {
        match &mut self.net {
            Some(net) => net.join(foreign),
            None => Ok(()),
        }
    }

    /// Forgets a job that has ended, so that others may get the numbers of its ranks; returns
    /// whether the network could.
    pub(crate) fn forget(&mut self, peers: Range<u32>) -> bool {
        if !self
            .net
            .as_mut()
            .is_some_and(|net| net.forget(peers.clone()))
        {
            return false;
        }
        for peer in peers {
            self.routes[peer as usize] = Route::Unknown;
        }
        true
    }

    /// Tells the network where a peer of another job listens, which the launcher of this one does
    /// not know. Call it before the first message to the peer.
    pub(crate) fn introduce(&mut self, peer: Peer, address: &str) -> Result<(), Down> {
        match &mut self.net {
            Some(net) => net.introduce(peer, address),
            None => Err(nowhere(peer)),
        }
    }

    /// The time: the machine's, or that of a simulated network.
    #[inline]
    pub(crate) fn clock(&self) -> Tick {
        let clock = self.net.as_ref().and_then(|net| net.clock());
        clock.unwrap_or_else(kw_sys::clock::now)
    }

    /// Moves this thread to another CPU of the host if that spreads its ranks
    /// ([`ShmPath::spread`]); returns whether it did.
    #[inline]
    pub(crate) fn spread(&mut self, now: Tick) -> bool {
        self.shm.as_mut().is_some_and(|shm| shm.spread(now))
    }

    /// The ranks of this host that share memory with this one, if any do.
    #[inline]
    pub(crate) fn ranks(&self) -> Option<&Ranks> {
        self.shm.as_ref().map(|shm| &shm.ranks)
    }

    /// The shm regions of this host; `None` if its ranks share no memory.
    pub(crate) fn shm_regions(&mut self) -> Option<&ShmRegions> {
        if self.shm_regions.is_none() {
            self.shm_regions = match (&self.shm, self.alone) {
                (Some(shm), _) => Some(shm.shm_regions()),
                // Without memory for a shm region there is none.
                (None, Some(_)) => ShmRegions::alone().ok(),
                (None, None) => None,
            };
        }
        self.shm_regions.as_ref()
    }

    /// This host's number of a rank, if it is on this host.
    pub(crate) fn place(&self, peer: Peer) -> Option<u32> {
        match &self.shm {
            Some(shm) => shm.ranks.place(peer),
            None => (self.alone == Some(peer)).then_some(0),
        }
    }

    /// Object on which a thread of this rank sleeps.
    pub(crate) fn sleeper(&self) -> std::io::Result<Sleeper> {
        let bell = match &self.shm {
            Some(shm) => Bell::Shared(shm.doorbell()),
            None => Bell::own(),
        };
        let sockets = self.net.as_ref().and_then(|net| net.descriptor());
        let sockets = sockets.map(|fd| fd.try_clone_to_owned());
        let ends = self.shm.as_ref().map(|shm| shm.ends());
        let ends = ends.map(|ends| ends.as_fd().try_clone_to_owned());
        Sleeper::new(bell, sockets.transpose()?, ends.transpose()?)
    }

    /// Watches the processes of this host, and returns a peer that is down because its process has
    /// ended.
    pub(crate) fn poll_ended<I: Inbound>(&mut self, port: &mut I) -> bool {
        let Some(shm) = &mut self.shm else {
            return false;
        };
        self.now = kw_sys::clock::now();
        shm.watch_processes(self.now);
        shm.poll_ended(self.now, port)
    }

    /// How long until [`Paths::poll_ended`] has to be called, though nothing wakes this rank for
    /// it.
    pub(crate) fn until_end_reported(&self) -> Option<Duration> {
        self.shm.as_ref()?.until_report(kw_sys::clock::now())
    }

    /// Must be called before a thread sleeps.
    pub(crate) fn arm(&mut self, who: Asleep) {
        if let Some(net) = &mut self.net {
            self.now = kw_sys::clock::now();
            net.arm(who, self.now);
        }
    }

    /// The networks that the connections use.
    pub fn network(&self) -> Vec<String> {
        match (&self.net, &self.shm) {
            (Some(net), _) => net.network(),
            (None, Some(_)) => {
                vec!["no network is used: all ranks are on this host and share memory".into()]
            }
            (None, None) => vec!["no network is used: the job has one rank".into()],
        }
    }

    /// The value of a counter that a path keeps.
    pub(crate) fn counter(&self, c: Counter) -> Option<u64> {
        match c {
            Counter::Doorbells => Some(self.shm.as_ref().map_or(0, |s| s.rings())),
            _ => self.net.as_ref()?.counter(c),
        }
    }

    /// Whether the peer's path is chosen.
    #[inline]
    pub fn is_routed(&self, peer: Peer) -> bool {
        self.routes[peer.idx()] != Route::Unknown
    }

    /// The peers whose path is chosen.
    pub(crate) fn routed(&self) -> Vec<Peer> {
        let all = (0..self.routes.len() as u32).map(Peer);
        all.filter(|&peer| self.is_routed(peer)).collect()
    }

    /// Chooses the path of a peer, and returns where its protocols cross.
    pub fn route(
        &mut self,
        peer: Peer,
        launcher: &mut dyn Launcher,
    ) -> Result<(Way, Choice), Down> {
        let (route, way) = if peer == self.me {
            (Route::Myself, Way::Own)
        } else if self.shm.as_ref().is_some_and(|p| p.ranks.has(peer)) {
            (Route::Shm, Way::Shm)
        } else if let Some(net) = &mut self.net {
            introduce(net.as_mut(), peer, launcher)?;
            (Route::Net, net.about().way)
        } else {
            return Err(nowhere(peer));
        };
        self.routes[peer.idx()] = route;
        Ok((way, self.costs().choice(peer)))
    }

    /// A peer's connection broke, and its address was never given.
    pub fn locate(&mut self, peer: Peer, launcher: &mut dyn Launcher) -> Result<(), Down> {
        match &mut self.net {
            Some(net) => introduce(net.as_mut(), peer, launcher),
            None => Ok(()),
        }
    }

    /// What the chosen paths cost.
    #[inline]
    pub fn costs(&self) -> Costs<'_> {
        Costs::of(self)
    }

    /// Settings that decide choices have changed; the new values apply from now on.
    pub(crate) fn set_settings(&mut self, settings: &Settings) {
        let eager = self.net.as_ref().map(|net| net.about().eager);
        let ranks = self.routes.len() as u32;
        self.prices = Prices::read(&self.prices.host, settings, eager, ranks);
    }

    /// Sends a frame to a peer whose route is known.
    #[inline]
    pub fn send(
        &mut self,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        let route = self.routes[to.idx()];
        if let (Route::Shm, Some(p)) = (route, &mut self.shm) {
            return p.send(to, head, body, cookie);
        }
        self.send_elsewhere(route, to, head, body, cookie)
    }

    /// Out of line: its stack and registers should not burden a message over shared memory.
    #[inline(never)]
    fn send_elsewhere(
        &mut self,
        route: Route,
        to: Peer,
        head: &Header,
        body: Body<'_>,
        cookie: u64,
    ) -> Result<Sent, Down> {
        match (route, &mut self.net) {
            (Route::Net, Some(p)) => p.send(to, head, body, cookie),
            (Route::Myself, _) => self.myself.send(to, head, body, cookie),
            _ => Err(nowhere(to)),
        }
    }

    /// Fetches memory of a peer; `false` when the path refuses.
    pub fn get(&mut self, from: Peer, region: RemoteRegion, into: &Buf, len: u64) -> bool {
        let got = match (self.routes[from.idx()], &mut self.shm, &mut self.net) {
            (Route::Shm, Some(p), _) => p.get(from, region, into, 0, len),
            (Route::Myself, ..) => self.myself.get(from, region, into, 0, len),
            (Route::Net, _, Some(p)) => p.get(from, region, into, 0, len),
            _ => return false,
        };
        got.is_ok()
    }

    #[inline]
    fn tick(&mut self) -> Tick {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(64) {
            self.now = kw_sys::clock::now();
        }
        self.now
    }

    /// Polls every path.
    #[inline]
    pub fn poll<I: Inbound>(&mut self, port: &mut I) -> bool {
        let now = self.tick();
        let moved = self.poll_memory(now, port);
        match &mut self.net {
            Some(net) => net.poll(now, port) | moved,
            None => moved,
        }
    }

    /// After a sleep: polls every path, sockets only if the system names them.
    pub(crate) fn poll_ready<I: Inbound>(&mut self, port: &mut I) -> bool {
        self.now = kw_sys::clock::now();
        let mut moved = self.poll_memory(self.now, port);
        if let Some(shm) = &mut self.shm {
            moved |= shm.poll_ended(self.now, port);
        }
        if let Some(net) = &mut self.net {
            moved |= net.poll_ready(self.now, port);
        }
        moved
    }

    /// Before a sleep: polls the paths that the system does not watch. It watches sockets.
    pub(crate) fn poll_unwatched<I: Inbound>(&mut self, port: &mut I) -> bool {
        let now = self.tick();
        let moved = self.poll_memory(now, port);
        match &mut self.net {
            Some(net) => net.poll_unwatched(now, port) | moved,
            None => moved,
        }
    }

    #[inline]
    fn poll_memory<I: Inbound>(&mut self, now: Tick, port: &mut I) -> bool {
        let mut moved = self.myself.poll(now, port);
        if let Some(p) = &mut self.shm {
            moved |= p.poll(now, port);
        }
        moved
    }

    /// Polls the paths that serve one peer.
    #[inline]
    pub fn poll_from<I: Inbound>(&mut self, peer: Peer, port: &mut I) -> bool {
        let now = self.tick();
        match (self.routes[peer.idx()], &mut self.shm) {
            (Route::Shm, Some(p)) => p.poll_from(peer, now, port),
            (route, _) => self.poll_from_elsewhere(route, peer, now, port),
        }
    }

    /// The path to the ranks of this host.
    #[inline(always)]
    pub(crate) fn memory(&mut self) -> Option<&mut ShmPath> {
        self.shm.as_mut()
    }

    /// The path to a peer with shared memory.
    #[inline(always)]
    pub fn memory_to(&mut self, peer: Peer) -> Option<&mut ShmPath> {
        self.shm
            .as_mut()
            .filter(|_| self.routes[peer.idx()] == Route::Shm)
    }

    /// Out of line, like [`Paths::send_elsewhere`].
    #[inline(never)]
    fn poll_from_elsewhere<I: Inbound>(
        &mut self,
        route: Route,
        peer: Peer,
        now: Tick,
        port: &mut I,
    ) -> bool {
        match (route, &mut self.net) {
            (Route::Net, Some(p)) if p.about().looks_at_one => p.poll_from(peer, now, port),
            _ => self.poll(port),
        }
    }

    /// Whether some path has something left to send.
    #[inline]
    pub fn pending(&self) -> bool {
        self.myself.pending()
            || self.shm.as_ref().is_some_and(|p| p.pending())
            || self.net.as_ref().is_some_and(|p| p.pending())
    }

    /// Whether no sent data is in flight, as far as this side can tell: its peers have all, or need
    /// only poll.
    #[cold]
    pub(crate) fn is_quiet(&mut self) -> bool {
        !self.pending() && self.net.as_mut().is_none_or(|net| net.is_quiet())
    }

    /// Says goodbye everywhere.
    pub fn close(&mut self) {
        self.myself.close();
        if let Some(p) = &mut self.shm {
            p.close();
        }
        if let Some(p) = &mut self.net {
            p.close();
        }
    }
}

/// Tells a network where a peer listens, if it has to know.
fn introduce(net: &mut dyn Network, peer: Peer, launcher: &mut dyn Launcher) -> Result<(), Down> {
    if !net.wants_address(peer) {
        return Ok(());
    }
    let path = net.about().name;
    let failed = |reason: String| Down { path, peer, reason };
    match launcher.get(peer.0, &address_key(path, peer.0)) {
        Ok(Some(address)) => net.introduce(peer, &address),
        Ok(None) => Err(failed(format!("rank {peer} has not published an address"))),
        Err(e) => Err(failed(e.to_string())),
    }
}

#[cold]
fn nowhere(peer: Peer) -> Down {
    Down {
        path: "none",
        peer,
        reason: "no path leads there (see KW_PATHS)".into(),
    }
}
