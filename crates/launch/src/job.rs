//! The event loop that runs a job: starts the ranks, serves PMI-1, passes output and signals on,
//! and ends the job. Independent parts decide what each event means: [`phases`] (with the verdict),
//! [`printing`] (output), [`hosts`] (where ranks are), the PMI server. The job passes data from one
//! to the other.
//!
//! One thread; the two writers of [`crate::output`] are the only others.

mod choices;
mod end;
mod events;
mod hang;
mod hosts;
mod late;
mod parent;
mod part;
mod phases;
mod printing;
mod profile;
mod start;
mod trace;

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::calibrate;
use crate::crash::Crash;
use crate::inquiry::Inquiry;
use crate::plan::Plan;
use crate::sites::Sites;
use crate::stdin::Relay;
use crate::verdict::{Ended, Verdict};
use kw_base::sync::Arc;
use kw_start::pmi::{Effect, Server};
use kw_sys::clock;
use kw_sys::process::Guard;
use kw_sys::signals::Signals;

use hang::Hang;
use hosts::Hosts;
use late::Late;
use parent::Parent;
use phases::Phases;
use printing::Printing;
use profile::Profile;
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
    name: String,
    plan: Plan,
    server: Server,
    effects: Vec<Effect>,
    signals: Signals,
    /// How each ended rank ended.
    ended: Vec<Option<Ended>>,
    hosts: Hosts,
    phases: Phases,
    printing: Printing,
    /// Signals that a closed output is written out.
    written: Arc<OwnedFd>,
    relay: Relay,
    /// Crash report of the first rank here that a signal killed.
    crash: Option<(u32, Crash)>,
    late: Late,
    /// The ranks' wait reports, and the conclusions from them.
    inquiry: Inquiry,
    hang: Hang,
    /// MPI calls of the ranks, if they are recorded.
    profile: Profile,
    /// The trace, if one is recorded.
    trace: Trace,
    sites: Sites,
    guard: Guard,
    parent: Parent,
}

/// Runs a job to its end; returns the status to exit with. All messages have been printed then, as
/// far as a reader takes them. `usable` is the CPU time that we may use, in processors.
pub fn run(plan: Plan, usable: usize) -> Result<u8, Verdict> {
    let (begin, ranks_here) = (clock::now(), !plan.here().is_empty());
    let mut job = start::launch(plan, usable)?;
    while !job.is_over() {
        job.turn()?;
    }
    job.end_traces()?;
    let status = job.finish();
    if status == 0 && ranks_here {
        calibrate::after_job(clock::now().since(begin));
    }
    Ok(status)
}
