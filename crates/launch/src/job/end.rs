//! Signals, deaths of processes, and their consequences for the job.

use super::Job;
use crate::ask::{QUESTION, Question};
use crate::plan::Plan;
use crate::remote::HelperFailure;
use crate::verdict::{self, Ended, Verdict, Who};
use kw_start::pmi::Stage;
use kw_sys::{clock, signals};
use std::fmt::Display;

/// Name of a rank, for sentences.
fn who(plan: &Plan, rank: u32) -> Who<'_> {
    let machine = plan.ranks[rank as usize].machine;
    Who {
        rank,
        host: &plan.machines[machine].name,
    }
}

impl Job {
    /// Handles all signals that have arrived, and all deaths.
    pub(super) fn take_signals(&mut self) {
        while let Some(came) = self.signals.poll_signal() {
            match came.number {
                signals::CHLD => {}
                signals::TSTP => self.hosts.pause(),
                signals::CONT | signals::USR1 | signals::USR2 => self.hosts.signal_all(came.number),
                QUESTION if came.value == Question::Choices as i32 => self.tell_choices(),
                number if self.is_question(number, clock::now()) => {}
                number => {
                    if let Some(action) = self.phases.on_signal(number, clock::now()) {
                        self.hosts.carry_out(action);
                    }
                }
            }
        }
        self.reap();
    }

    fn reap(&mut self) {
        while let Some((pid, rank, ended)) = self.hosts.here.reap() {
            if let Some(rank) = rank {
                self.on_wire(rank);
                self.on_ended(rank, ended);
            } else if let Some(at) = self.hosts.helper_of(pid) {
                // its last messages are still in its pipes
                let machine = self.hosts.away[at].machine;
                while self.hosts.away[at].has_words() {
                    self.on_helper(machine);
                }
                let why = self.hosts.away[at].why_ended();
                self.on_lost(at, &why);
            }
        }
    }

    /// Handles the loss of a helper, and of its ranks.
    pub(super) fn on_lost(&mut self, at: usize, why: &HelperFailure) {
        let gathering = self.phases.is_gathering();
        let remote = &mut self.hosts.away[at];
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
        self.lose_ranks(at);
        self.phases.on_lost(verdict, clock::now());
    }

    /// Handles a helper that could not start its ranks, and has none left.
    pub(super) fn on_failed(&mut self, at: usize, status: u32, sentence: String) {
        self.lose_ranks(at);
        let verdict = Verdict::new(status as u8, sentence);
        self.phases.fail(verdict, clock::now());
    }

    /// Notes that the ends of this helper's ranks will not be reported.
    fn lose_ranks(&mut self, at: usize) {
        let machine = self.hosts.away[at].machine as usize;
        for rank in self.plan.on(machine) {
            self.ended[rank].get_or_insert(Ended::Lost);
        }
    }

    /// Handles the end of a rank, when all its messages are known.
    pub(super) fn on_ended(&mut self, rank: u32, ended: Ended) {
        if self.ended[rank as usize].is_some() {
            return;
        }
        self.ended[rank as usize] = Some(ended);
        if self.plan.debug && rank as usize == self.plan.reader {
            kw_sys::process::take_foreground();
        }
        self.keep_calls(rank);
        self.keep_trace(rank);
        if matches!(ended, Ended::Signal(s, _) if self.phases.asked() != Some(s)) {
            self.keep_crash(rank);
        }
        let stage = self.server.stage(rank);
        let open = matches!(stage, Stage::Speaking | Stage::Waiting);
        let who = who(&self.plan, rank);
        if let Some(action) = self.phases.on_ended(who, ended, open, clock::now()) {
            self.hosts.carry_out(action);
        }
        self.server.left(rank, &mut self.effects);
        self.carry_out();
    }

    /// Handles a crash; the first one is the one to look at.
    fn keep_crash(&mut self, rank: u32) {
        if let (None, Some(crash)) = (&self.crash, self.hosts.here.crash(rank)) {
            self.crash = Some((rank, crash.clone()));
        }
    }

    pub(super) fn on_abort(&mut self, rank: u32, status: i32, message: &str) {
        let plan = &self.plan;
        let verdict =
            |first, others: &[u32]| verdict::aborted(who(plan, first), others, status, message);
        self.phases.on_abort(rank, verdict, clock::now());
    }

    pub(super) fn on_broken_fence(&mut self, waiting: u32, missing: u32) {
        let ended = self.ended[missing as usize];
        let verdict = verdict::stuck(waiting, who(&self.plan, missing), ended);
        self.phases.fail(verdict, clock::now());
    }

    pub(super) fn on_garbage(&mut self, rank: u32, error: &dyn Display) {
        let who = who(&self.plan, rank);
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
