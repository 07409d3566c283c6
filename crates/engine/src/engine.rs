//! The engine: the operations of the owner of the lock. It joins the parts, each of which owns one
//! matter:
//!
//! | part | its matter | what it borrows |
//! | --- | --- | --- |
//! | [`Messages`] | sends, receives, probes, requests: machine and paths | |
//! | [`Collectives`](crate::Collectives) | schedules that run, plans that are kept, shm regions |
//! messages |
//! | [`Partitioned`](crate::Partitioned) | transfers in pieces | messages |
//! | [`Departed`] | which ranks waits depend on, and which have left | messages, collectives |
//! | [`Locations`] | where ranks run | |
//!
//! A part knows neither the engine nor a part that is not named beside it. Those that progress by
//! themselves implement [`Part`](crate::Part), and are driven in a loop. Consequences of a change
//! in one of them for another are handled here and in `progress`.

use crate::collective::Failure;
use crate::departed::Departed;
use crate::locations::Locations;
use crate::messages::{Messages, ReqId};
use crate::part::Parts;
use crate::paths::{Paths, WithMemory, local};
use kw_base::Peer;
use kw_base::counters::Counters;
use kw_base::settings::{Id, Settings};
use kw_boot::{Agreed, BootError, Job, Launcher};
use kw_path::{CannotOpen, Down, Network, Opening};
use kw_sys::siblings::Siblings;
use kw_waiting::constants::other_programs::MOST_RANKS;
use std::cell::OnceCell;
use std::time::Duration;

/// One rank's engine.
pub struct Engine {
    /// Its messages.
    pub messages: Messages,
    /// The parts that progress by themselves.
    pub parts: Parts,
    /// Ranks that its waits depend on.
    pub departed: Departed,
    /// The job that it is a rank of.
    pub job: Job,
    pub(crate) settings: Settings,
    /// Counters of the lock (waits, take-overs), in addition to those of the parts.
    pub(crate) counters: Counters,
    pub(crate) locations: Locations,
    /// The ranks of this host, once they were searched; none if they cannot be told from others.
    host_ranks: OnceCell<Option<Siblings>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("me", &self.job.me)
            .field("size", &self.job.size())
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Joins the job: shares memory if the settings allow it and publishes how other ranks reach
    /// this one, over the network that [`WithMemory::network`] asks for. Returns when every rank
    /// has come here.
    pub fn start(
        mut launcher: Box<dyn Launcher>,
        joined: WithMemory,
        net: Option<Box<dyn Network>>,
        settings: Settings,
    ) -> Result<Engine, BootError> {
        // Otherwise the first reduction of the program does.
        kw_sys::cpus::ask_abilities();
        let (paths, job) = Paths::open(launcher.as_mut(), joined, net, &settings)?;
        let share = || kw_sys::mem::share_kept(local(job.me, job.hosts()).peers.len());
        kw_sys::mem::keep_freed(settings.number(Id::KeepFreed).unwrap_or_else(share));
        introduce(&job);
        Ok(Engine::over(paths, launcher, job, settings))
    }

    /// An engine over paths that are there already (tests: over the simulated network).
    pub fn over(paths: Paths, launcher: Box<dyn Launcher>, job: Job, settings: Settings) -> Engine {
        Engine {
            messages: Messages::new(paths, launcher, &job, &settings),
            parts: Parts::new(&job),
            departed: Departed::new(&job),
            job,
            settings,
            counters: Counters::default(),
            locations: Locations::default(),
            host_ranks: OnceCell::new(),
        }
    }

    /// Total CPU time of the ranks of this host, if there are few and it can be read.
    pub(crate) fn used_by_host_ranks(&self) -> Option<Duration> {
        let found = self.host_ranks.get_or_init(|| {
            let ranks = local(self.job.me, self.job.hosts()).peers.len();
            (ranks <= MOST_RANKS).then(|| Siblings::find(ranks))?
        });
        found.as_ref()?.used()
    }

    /// Whether a rank runs on this host, and shares memory with this one.
    pub fn shares_memory(&self, peer: Peer) -> bool {
        let hosts = self.job.hosts();
        let same = hosts.get(peer.idx()) == hosts.get(self.job.me.idx());
        same && self.messages.paths.has_memory()
    }

    /// A request that its owner ends with [`Engine::end_request`]: no message does.
    pub fn open_request(&mut self) -> ReqId {
        self.messages.open()
    }

    /// Ends such a request, which has moved this many bytes.
    pub fn end_request(&mut self, req: ReqId, len: u64, failure: Option<Failure>) {
        self.parts
            .collectives
            .end_with(&mut self.messages, req, len, failure);
    }

    /// This rank has met another job, with this foreign key and name and these agreed settings: its
    /// ranks are peers from now on. Returns the first of them. Messages that are in flight
    /// continue.
    pub fn join(
        &mut self,
        foreign_key: [u8; 32],
        name: &str,
        agreed: Agreed,
    ) -> Result<Peer, CannotOpen> {
        if let Some(world) = self.job.worlds.known(&foreign_key) {
            return Ok(world.first);
        }
        let world = self.job.worlds.join(foreign_key, name, agreed).clone();
        let foreign = self.job.worlds.foreign(&world);
        let (first, peers) = (world.first, self.job.worlds.peers());
        self.messages.grow(peers, &self.settings);
        self.messages.paths.join(foreign)?;
        tracing::info!(
            "met job {name}: its ranks are {first} to {}",
            world.peers().end - 1
        );
        Ok(first)
    }

    /// Forgets jobs that this rank has met and whose ranks have all ended, if none is in use: their
    /// numbers are free for the next.
    pub fn forget_ended(&mut self, in_use: impl Fn(Peer) -> bool) {
        self.progress();
        let joined = self.job.worlds.iter().skip(1);
        let all: Vec<_> = joined.map(|world| world.peers()).collect();
        for peers in all {
            let used = peers.clone().any(|p| in_use(Peer(p)));
            if !used && self.messages.forget(peers.clone()) {
                self.job.worlds.forget(Peer(peers.start));
            }
        }
    }

    /// Sets where a rank of another job listens, which the launcher of this one does not know. Call
    /// it before the first message to that rank.
    pub fn introduce(&mut self, peer: Peer, address: &str) -> Result<(), Down> {
        self.messages.paths.introduce(peer, address)
    }

    /// The network by which this rank is reached, and its address there.
    pub fn address(&self) -> Option<(&'static str, String)> {
        self.messages.paths.address()
    }

    /// Parameters of the network that this rank opens to meet other jobs; `None` if it has one.
    pub fn needs_network(&mut self) -> Option<Result<Opening<'_>, BootError>> {
        if self.address().is_some() {
            return None;
        }
        let name = self.messages.outlet.launcher.job().to_string();
        Some(crate::paths::opening_for_others(
            &name,
            &self.job,
            &self.settings,
        ))
    }

    /// The addresses on which this rank can wait for processes of other jobs.
    pub fn addresses(&self) -> Result<Vec<std::net::IpAddr>, kw_path::Cause> {
        kw_path::addresses_for_others(self.settings.text(Id::Interfaces))
    }

    /// The settings this rank was started with, with later changes.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The launcher.
    pub fn launcher(&mut self) -> &mut dyn Launcher {
        self.messages.outlet.launcher.as_mut()
    }

    /// The conversation with the launcher, when all else is over.
    pub fn into_launcher(self) -> Box<dyn Launcher> {
        self.messages.outlet.launcher
    }
}

fn introduce(job: &Job) {
    let hosts = job.hosts().iter().max().map_or(1, |h| h + 1);
    let each = match job.oversubscribed() {
        true => "oversubscribed",
        false => "a CPU for each rank",
    };
    let size = job.size();
    tracing::info!("joined a job of {size} on {hosts} host(s), {each} here");
}
