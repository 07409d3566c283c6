//! A job of whole MPI values over the simulated network.

use crate::turns::{Stopped, Turns};
use kw_base::Peer;
use kw_base::settings::{Id, Settings};
use kw_base::sync::{Arc, thread};
use kw_engine::simulated;
use kw_mpi::built;
use kw_objects::Mpi;
use kw_objects::handle::CommH;
use kw_path::sim::{Rng, SimNet, SimOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Turns after which a run counts as one that never ends.
const MOST_TURNS: u64 = 3_000_000;

/// Options of a job.
#[derive(Clone)]
pub struct Job {
    seed: u64,
    options: SimOptions,
    hosts: Vec<u32>,
    settings: Settings,
    most_turns: u64,
}

/// One rank of a running job.
pub struct Rank {
    pub mpi: Mpi,
    pub me: i32,
    pub size: i32,
    pub net: SimNet,
}

impl Job {
    /// `n` ranks of one host; messages of more than 512 bytes are sent by rendezvous.
    pub fn new(n: usize, seed: u64) -> Job {
        let mut settings = Settings::defaults();
        for (id, text) in [
            (Id::Paths, "self"),
            (Id::EagerShm, "512"),
            (Id::EventThread, "no"),
            // Nothing can wake a sleeping thread, so all of them poll forever.
            (Id::Spin, "1000000000000"),
        ] {
            settings.set(id, text).expect("the setting takes it");
        }
        Job {
            seed,
            options: SimOptions::default(),
            hosts: vec![0; n],
            settings,
            most_turns: MOST_TURNS,
        }
    }

    /// Sets the number of turns after which the run counts as one that never ends.
    pub fn most_turns(mut self, turns: u64) -> Job {
        self.most_turns = turns;
        self
    }

    /// Distributes the ranks over this many hosts, in blocks.
    pub fn hosts(mut self, hosts: usize) -> Job {
        let n = self.hosts.len();
        self.hosts = (0..n).map(|r| (r * hosts / n) as u32).collect();
        self
    }

    /// A network with these options.
    pub fn net(mut self, options: SimOptions) -> Job {
        self.options = options;
        self
    }

    /// Sets a setting.
    pub fn setting(mut self, id: Id, text: &str) -> Job {
        self.settings.set(id, text).expect("the setting takes it");
        self
    }

    /// Runs `body` on all ranks, between MPI_Init and MPI_Finalize.
    pub fn run(self, body: impl Fn(&Rank) + Sync) {
        self.run_to_the_end(|rank| {
            body(rank);
            built::finalize(&rank.mpi).expect("MPI_Finalize");
        });
    }

    /// Runs `body` after MPI_Init; it finalizes, or leaves MPI up.
    pub fn run_to_the_end(self, body: impl Fn(&Rank) + Sync) {
        let n = self.hosts.len();
        let (net, paths) = SimNet::new(n as u32, self.seed, self.options.clone());
        let turns = Arc::new(Turns::new(net.clone(), n, self.seed, self.most_turns));
        thread::scope(|scope| {
            for (me, mut path) in paths.into_iter().enumerate() {
                let others = turns.clone();
                path.take_turns(move || others.pass(me));
                let (rank, settings) = (path.me(), self.settings.clone());
                let engine = simulated::engine(Box::new(path), rank, &self.hosts, settings);
                let rank = Rank {
                    mpi: Mpi::over(engine.expect("an engine")),
                    me: me as i32,
                    size: n as i32,
                    net: net.clone(),
                };
                let (turns, body) = (&turns, &body);
                thread::Builder::new()
                    .name(format!("rank {me}"))
                    .spawn_scoped(scope, move || lead(&rank, turns, body))
                    .expect("a thread");
            }
        });
        if let Some(what) = turns.failure() {
            panic!("seed {}, {n} ranks: {what}", self.seed);
        }
    }
}

/// The life of one rank.
fn lead(rank: &Rank, turns: &Turns, body: &(impl Fn(&Rank) + Sync)) {
    let me = rank.me as usize;
    let life = catch_unwind(AssertUnwindSafe(|| {
        turns.begin(me);
        built::init(&rank.mpi, 0, 0).expect("MPI_Init");
        body(rank);
    }));
    match life {
        Ok(()) => turns.end(me),
        Err(why) if why.is::<Stopped>() => {}
        Err(why) => {
            let text = why.downcast_ref::<String>().cloned();
            let text = text.or_else(|| why.downcast_ref::<&str>().map(|s| s.to_string()));
            turns.fail(format!("rank {me}: {}", text.unwrap_or_default()));
        }
    }
}

impl Rank {
    /// Cuts the connection to another rank of the job.
    pub fn cut(&self, other: i32) {
        self.net.cut(Peer(self.me as u32), Peer(other as u32));
    }

    /// MPI_COMM_WORLD, as this rank sees it.
    pub fn world(&self) -> crate::calls::Comm<'_> {
        crate::calls::Comm::of(self, CommH::WORLD)
    }

    /// Dice of this rank, the same in each run of a seed.
    pub fn dice(&self, seed: u64) -> Rng {
        Rng::new(seed * 1009 + self.me as u64)
    }
}
