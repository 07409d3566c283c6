//! The event loop that runs a job: starts the ranks, serves PMI-1, passes output and signals on, and ends the job.
//!
//! ```text
//! Gathering --every other host has its helper--> Running
//! Running --a rank failed--> Failing (others may still show the true cause) --> Ending (SIGTERM) --> Killing (SIGKILL)
//!    \--all ranks ended--> done <--all ranks ended---------------------------------/
//! ```
//! One thread; the two writers of [`crate::output`] are the only others.

mod end;
mod events;
mod late;
mod outsiders;
mod part;
mod start;

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::crash::Crash;
use crate::figures;
use crate::output::{Sink, Splitter};
use crate::plan::Plan;
use crate::ranks::Ranks;
use crate::remote::Remote;
use crate::stdin::Relay;
use crate::verdict::{Ended, Verdict};
use kw_base::Tick;
use kw_base::sync::Arc;
use kw_start::pmi::{Effect, Server};
use kw_sys::clock;
use kw_sys::neighbours::Turn;
use kw_sys::process::Guard;
use kw_sys::signals::Signals;

/// How long others may show that they, not the rank that called MPI_Abort, were the cause.
const FAILING: Duration = Duration::from_millis(20);
/// How long ranks have between SIGTERM and SIGKILL.
const ENDING: Duration = Duration::from_millis(400);
/// How long killed ranks may take to go before we give up on them.
const KILLING: Duration = Duration::from_secs(5);
/// How long other hosts may take to say that they are there.
const GATHERING: Duration = Duration::from_secs(30);
/// How long they may take to end, once all their ranks have.
const PARTING: Duration = Duration::from_secs(2);
/// How long a reader of our output may read nothing before we end without it, once we were asked to end or cannot say why.
const READING: Duration = Duration::from_secs(3);
/// How long an unfinished line may stay unfinished before it is passed on.
const UNFINISHED: Duration = Duration::from_millis(50);
/// Output that may wait for a slow reader before ranks have to wait too.
const BACKLOG: usize = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering { until: Tick },
    Running,
    Failing { until: Tick },
    Ending { until: Tick },
    Killing { until: Tick },
}

/// A running job.
struct Job {
    plan: Plan,
    /// `MPIEXEC_MARK=...`, which every process of the job on this machine carries in its environment.
    tag: String,
    server: Server,
    epoll: OwnedFd,
    signals: Signals,
    /// What is known of each rank.
    ranks: Vec<Rank>,
    /// Those on this machine.
    here: Ranks,
    /// The other machines.
    away: Vec<Remote>,
    sinks: [Sink; 2],
    /// Rings when a sink that was closed is written out.
    written: Arc<OwnedFd>,
    relay: Option<Relay>,
    relay_watched: bool,
    phase: Phase,
    verdict: Option<Verdict>,
    /// Whether a rank has ever spoken to the PMI server, and whether we have asked why none has.
    joined: bool,
    doubted: bool,
    /// What the first rank here that a signal killed said then.
    crash: Option<(u32, Crash)>,
    /// Ranks that have aborted the job with the status and the words of the first of them.
    aborted: Vec<u32>,
    /// The signal that we were asked to end by, and when.
    asked: Option<(i32, Tick)>,
    guard: Guard,
    effects: Vec<Effect>,
    out_blocked: bool,
    flush_at: Option<Tick>,
    late: late::Late,
}

/// One rank.
struct Rank {
    splitters: [Splitter; 2],
    ended: Option<Ended>,
}

/// Runs a job to its end; the status to exit with. All that had to be said has been said, as far as somebody listens.
/// `turn` is given back when the ranks have their processors.
pub fn run(plan: Plan, usable: usize, turn: Option<Turn>) -> Result<u8, Verdict> {
    let (begin, ranks_here) = (clock::now(), !plan.here().is_empty());
    let mut job = start::launch(plan, usable)?;
    drop(turn);
    while !job.is_over() {
        job.turn()?;
    }
    let status = job.finish();
    if status == 0 && ranks_here {
        figures::after_job(clock::now().since(begin));
    }
    Ok(status)
}
