//! How the ranks ended, and why the job does.

use super::hosts::Hosts;
use super::phases::{Action, Phases};
use crate::crash::Crash;
use crate::plan::Plan;
use crate::remote::{HelperFailure, Remote};
use crate::verdict::{self, Ended, Verdict, Who};
use kw_sys::clock;
use std::fmt::Display;

/// Name of a rank, for sentences.
fn who(plan: &Plan, rank: u32) -> Who<'_> {
    let machine = plan.ranks[rank as usize].machine;
    Who {
        rank,
        host: &plan.machines[machine].name,
    }
}

/// Ends of ranks and helpers, and the phase of the job.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) phases: Phases,
    /// How each ended rank ended.
    ended: Vec<Option<Ended>>,
    /// Crash report of the first rank here that a signal killed.
    crash: Option<(u32, Crash)>,
}

impl Ending {
    /// State of a job with this many ranks.
    pub(super) fn new(ranks: usize) -> Ending {
        Ending {
            phases: Phases::new(),
            ended: vec![None; ranks],
            crash: None,
        }
    }

    /// Whether a rank has ended.
    pub(super) fn has_ended(&self, rank: u32) -> bool {
        self.ended[rank as usize].is_some()
    }

    /// Whether there is such a rank.
    pub(super) fn is_known(&self, rank: u32) -> bool {
        (rank as usize) < self.ended.len()
    }

    /// Handles the loss of a helper, and of its ranks.
    pub(super) fn on_lost(&mut self, plan: &Plan, remote: &mut Remote, why: &HelperFailure) {
        let gathering = self.phases.is_gathering();
        if remote.is_gone() {
            return;
        }
        if remote.is_parting() {
            return remote.close();
        }
        let verdict = match gathering {
            true => remote.unreached(why),
            false => Verdict::new(1, format!("host {} is lost: {why}", remote.name)),
        };
        remote.close();
        self.lose_ranks(plan, remote.machine);
        self.phases.on_lost(verdict, clock::now());
    }

    /// Handles a helper that could not start its ranks, and has none left.
    pub(super) fn on_failed(&mut self, plan: &Plan, machine: u32, status: u32, sentence: String) {
        self.lose_ranks(plan, machine);
        let verdict = Verdict::new(status as u8, sentence);
        self.phases.fail(verdict, clock::now());
    }

    /// Notes that the ends of this helper's ranks will not be reported.
    fn lose_ranks(&mut self, plan: &Plan, machine: u32) {
        for rank in plan.on(machine as usize) {
            self.ended[rank].get_or_insert(Ended::Lost);
        }
    }

    /// Notes how a rank has ended, and the crash of one that was killed.
    pub(super) fn note_end(&mut self, rank: u32, ended: Ended, hosts: &Hosts) {
        self.ended[rank as usize] = Some(ended);
        if matches!(ended, Ended::Signal(s, _) if self.phases.asked() != Some(s)) {
            self.keep_crash(rank, hosts);
        }
    }

    /// Handles a crash; the first one is the one to look at.
    fn keep_crash(&mut self, rank: u32, hosts: &Hosts) {
        if let (None, Some(crash)) = (&self.crash, hosts.here.crash(rank)) {
            self.crash = Some((rank, crash.clone()));
        }
    }

    /// Text about the crash, if there was one.
    pub(super) fn take_crash(&mut self) -> Option<String> {
        let (rank, crash) = self.crash.take()?;
        Some(crash.text(rank))
    }

    /// Handles the end of a rank. `open`: it had not announced its end.
    pub(super) fn on_ended(
        &mut self,
        plan: &Plan,
        rank: u32,
        ended: Ended,
        open: bool,
    ) -> Option<Action> {
        let who = who(plan, rank);
        self.phases.on_ended(who, ended, open, clock::now())
    }

    pub(super) fn on_abort(&mut self, plan: &Plan, rank: u32, status: i32, message: &str) {
        let verdict =
            |first, others: &[u32]| verdict::aborted(who(plan, first), others, status, message);
        self.phases.on_abort(rank, verdict, clock::now());
    }

    pub(super) fn on_broken_fence(&mut self, plan: &Plan, waiting: u32, missing: u32) {
        let ended = self.ended[missing as usize];
        let verdict = verdict::stuck(waiting, who(plan, missing), ended);
        self.phases.fail(verdict, clock::now());
    }

    pub(super) fn on_garbage(&mut self, plan: &Plan, rank: u32, error: &dyn Display) {
        let who = who(plan, rank);
        let verdict = Verdict::new(
            1,
            format!("protocol error: invalid message from {who} ({error})"),
        );
        self.phases.fail(verdict, clock::now());
    }

    /// Whether there is nothing left to wait for.
    pub(super) fn is_over(&self) -> bool {
        self.phases.gave_up(clock::now()) || self.ended.iter().all(Option::is_some)
    }
}
