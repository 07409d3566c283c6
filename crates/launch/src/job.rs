//! The event loop that runs a job: starts the ranks, serves PMI-1, passes output and signals on,
//! and ends the job. [`Job`] passes events to its parts. Those that the others use are in
//! [`Common`]: [`ending`] (with [`phases`] and the verdict), [`streams`] (output and input),
//! [`hosts`] (where ranks are), [`identity`] (the job's name and parent), the PMI server. [`hang`],
//! [`profile`] and [`trace`] take it as an argument and do not know each other.
//!
//! One thread; the two writers of [`crate::output`] are the only others.

mod children;
mod choices;
mod ending;
mod events;
mod hang;
mod hosts;
mod identity;
mod late;
mod part;
mod phases;
mod printing;
mod profile;
mod start;
mod streams;
mod trace;

use std::time::Duration;

use crate::calibrate;
use crate::plan::Plan;
use crate::remote::HelperFailure;
use crate::sites::Sites;
use crate::verdict::Verdict;
use kw_base::Tick;
use kw_start::pmi::{Effect, Server};
use kw_sys::clock;
use kw_sys::process::Guard;
use kw_sys::signals::Signals;

use ending::Ending;
use hang::Hang;
use hosts::Hosts;
use identity::Identity;
use late::Late;
use profile::Profile;
use streams::Streams;
use trace::Trace;

/// How long other hosts may take to report that they are there.
const GATHERING: Duration = Duration::from_secs(30);
/// How long they may take to end, once all their ranks have.
const PARTING: Duration = Duration::from_secs(2);
/// How long a reader of our output may read nothing before we exit without it, once we were asked
/// to end or cannot print the reason.
const READING: Duration = Duration::from_secs(3);

/// A running job.
struct Job {
    common: Common,
    effects: Vec<Effect>,
    signals: Signals,
    late: Late,
    /// Reports about waits, and the conclusions from them.
    hang: Hang,
    /// MPI calls of the ranks, if they are recorded.
    profile: Profile,
    /// The trace, if one is recorded.
    trace: Trace,
    guard: Guard,
}

/// What all parts of a job use.
struct Common {
    identity: Identity,
    plan: Plan,
    hosts: Hosts,
    server: Server,
    ending: Ending,
    streams: Streams,
    sites: Sites,
}

impl Common {
    /// Prints a message on standard error.
    fn say(&self, text: impl Into<Vec<u8>>) {
        self.streams.printing.say(text);
    }

    /// Ends the job with a verdict; the first one counts.
    fn fail(&mut self, verdict: Verdict, now: Tick) {
        self.ending.phases.fail(verdict, now);
    }

    /// The machine of a rank.
    fn machine(&self, rank: u32) -> u32 {
        self.plan.ranks[rank as usize].machine as u32
    }

    /// Sends PMI bytes to a rank.
    fn tell(&mut self, rank: u32, bytes: Vec<u8>) {
        let machine = self.machine(rank);
        self.hosts.tell(machine, rank, bytes);
    }

    /// Handles the loss of a helper, and of its ranks.
    fn on_lost(&mut self, at: usize, why: &HelperFailure) {
        self.ending
            .on_lost(&self.plan, &mut self.hosts.away[at], why);
    }
}

/// Runs a job to its end; returns the status to exit with. All messages have been printed then, as
/// far as a reader takes them. `usable` is the CPU time that we may use, in processors.
pub fn run(plan: Plan, usable: usize) -> Result<u8, Verdict> {
    let (begin, ranks_here) = (clock::now(), !plan.here().is_empty());
    let mut job = start::launch(plan, usable)?;
    while !job.common.ending.is_over() {
        job.turn()?;
    }
    job.end_traces()?;
    let status = job.finish();
    if status == 0 && ranks_here {
        calibrate::after_job(clock::now().since(begin));
    }
    Ok(status)
}
