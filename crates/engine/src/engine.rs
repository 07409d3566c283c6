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
//! | [`HostRanks`] | the CPU time of the ranks of this host | |
//!
//! [`Requests`] and [`OtherJobs`] are views of an engine with the operations on one matter.
//!
//! A part knows neither the engine nor a part that is not named beside it. Those that progress by
//! themselves implement [`Part`](crate::Part), and are driven in a loop. Consequences of a change
//! in one of them for another are handled here and in `progress`.

use crate::departed::Departed;
use crate::host_ranks::HostRanks;
use crate::locations::Locations;
use crate::messages::Messages;
use crate::other_jobs::OtherJobs;
use crate::part::Parts;
use crate::paths::{Paths, WithMemory, local};
use crate::requests::Requests;
use kw_base::Peer;
use kw_base::counters::Counters;
use kw_base::settings::{Id, Settings};
use kw_boot::{BootError, Job, Launcher};
use kw_path::Network;

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
    pub(crate) host_ranks: HostRanks,
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
            host_ranks: HostRanks::default(),
        }
    }

    /// Whether a rank runs on this host, and shares memory with this one.
    pub fn shares_memory(&self, peer: Peer) -> bool {
        let hosts = self.job.hosts();
        let same = hosts.get(peer.idx()) == hosts.get(self.job.me.idx());
        same && self.messages.paths.ranks().is_some()
    }

    /// The jobs that this rank has met, and the way to others.
    pub fn other_jobs(&mut self) -> OtherJobs<'_> {
        OtherJobs::of(self)
    }

    /// The requests of all operations.
    #[inline(always)]
    pub fn requests(&mut self) -> Requests<'_> {
        Requests::of(&mut self.messages, &mut self.parts.collectives)
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
