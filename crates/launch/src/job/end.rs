//! Signals, deaths, and how a job ends.

use std::time::Duration;

use super::{ENDING, FAILING, Job, KILLING, Phase};
use crate::verdict::{self, Ended, Verdict, Who};
use kw_base::Tick;
use kw_start::helper::Order;
use kw_start::pmi::Stage;
use kw_sys::{clock, signals};

/// A second SIGINT counts as one only after this long: `timeout` and terminals may send one twice.
const TWICE: Duration = Duration::from_millis(250);

impl Job {
    fn who(&self, rank: u32) -> Who<'_> {
        let machine = self.plan.ranks[rank as usize].machine;
        Who {
            rank,
            host: &self.plan.machines[machine].name,
        }
    }

    /// Handles all signals that have come, and all deaths.
    pub(super) fn take_signals(&mut self) {
        while let Some(came) = self.signals.poll_signal() {
            match came.number {
                signals::CHLD => {}
                signals::TSTP => self.pause(),
                signals::CONT => self.signal_all(signals::CONT),
                signals::USR1 | signals::USR2 => self.signal_all(came.number),
                number => self.on_end_signal(number),
            }
        }
        self.reap();
    }

    fn pause(&mut self) {
        self.signal_all(signals::STOP);
        for remote in &mut self.away {
            remote.say(&self.epoll, &Order::Hold);
        }
        signals::stop_self();
        self.signal_all(signals::CONT);
    }

    fn on_end_signal(&mut self, number: i32) {
        let now = clock::now();
        if matches!(self.phase, Phase::Gathering { .. }) {
            return self.remember(interrupted(number));
        }
        match self.asked {
            Some((before, at)) if number == before => {
                if now.since(at) >= TWICE {
                    self.fail(interrupted(number));
                    self.kill(now);
                }
            }
            _ => {
                self.asked = Some((number, now));
                self.signal_all(number);
            }
        }
    }

    /// Sends a signal to all living ranks.
    fn signal_all(&mut self, number: i32) {
        self.here.signal_all(number);
        for remote in &mut self.away {
            remote.say(&self.epoll, &Order::Signal(number as u32));
        }
    }

    /// Kills what was started, without a word.
    pub(super) fn kill_all(&mut self) {
        self.signal_all(signals::KILL);
    }

    fn reap(&mut self) {
        while let Some((pid, rank, ended)) = self.here.reap() {
            if let Some(rank) = rank {
                self.on_wire(rank);
                self.on_ended(rank, ended);
            } else if let Some(at) = self.away.iter().position(|r| r.pid == pid) {
                // what it had to say still lies in its pipes
                let machine = self.away[at].machine;
                while self.away[at].has_words() {
                    self.on_helper(machine);
                }
                let why = self.away[at].why_ended();
                self.on_lost(at, &why);
            }
        }
    }

    /// A helper is lost, and its ranks with it.
    pub(super) fn on_lost(&mut self, at: usize, why: &str) {
        if self.away[at].is_gone() {
            return;
        }
        if self.away[at].is_parting() {
            return self.away[at].close();
        }
        let verdict = match self.phase {
            Phase::Gathering { .. } => self.away[at].unreached(why),
            _ => Verdict::new(1, format!("host {} is lost: {why}", self.away[at].name)),
        };
        self.away[at].close();
        let machine = self.away[at].machine as usize;
        let there: Vec<usize> = self.plan.on(machine).collect();
        for rank in there {
            self.ranks[rank].ended.get_or_insert(Ended::Lost);
        }
        match self.phase {
            Phase::Gathering { .. } => self.remember(verdict),
            _ => self.fail(verdict),
        }
    }

    /// A helper could not start its ranks, and has none left.
    pub(super) fn on_failed(&mut self, at: usize, status: u32, sentence: String) {
        let machine = self.away[at].machine as usize;
        let there: Vec<usize> = self.plan.on(machine).collect();
        for rank in there {
            self.ranks[rank].ended.get_or_insert(Ended::Lost);
        }
        self.fail(Verdict::new(status as u8, sentence));
    }

    /// A rank has ended, and all that it said before is known.
    pub(super) fn on_ended(&mut self, rank: u32, ended: Ended) {
        if self.ranks[rank as usize].ended.is_some() {
            return;
        }
        self.ranks[rank as usize].ended = Some(ended);
        self.doubt(rank);
        let stage = self.server.stage(rank);
        let open = matches!(stage, Stage::Speaking | Stage::Waiting);
        match (ended, self.asked) {
            (Ended::Signal(s, _), Some((asked, _))) if s == asked => self.fail(interrupted(s)),
            (Ended::Signal(s, core), _) => {
                self.keep_crash(rank);
                self.fail_for_sure(verdict::killed(self.who(rank), s, core))
            }
            (Ended::Exit(code), _) if open => {
                self.fail(verdict::exited(self.who(rank), code, true))
            }
            (Ended::Exit(0), _) => {}
            (Ended::Exit(code), _) => self.remember(verdict::exited(self.who(rank), code, false)),
            (Ended::Lost, _) => {}
        }
        self.server.left(rank, &mut self.effects);
        self.carry_out();
    }

    /// The first crash is the one to look at.
    fn keep_crash(&mut self, rank: u32) {
        if let (None, Some(crash)) = (&self.crash, self.here.crash(rank)) {
            self.crash = Some((rank, crash.clone()));
        }
    }

    /// A verdict that does not end the job.
    pub(super) fn remember(&mut self, verdict: Verdict) {
        self.verdict.get_or_insert(verdict);
    }

    /// A verdict that ends the job; the first one stands.
    fn fail(&mut self, verdict: Verdict) {
        if self.phase == Phase::Running {
            self.verdict = Some(verdict);
            self.phase = Phase::Failing {
                until: clock::now() + FAILING,
            };
        }
    }

    /// A rank was killed: that is a better cause than what others said just before, having lost it.
    fn fail_for_sure(&mut self, verdict: Verdict) {
        match self.phase {
            Phase::Running => self.fail(verdict),
            Phase::Failing { .. } if self.asked.is_none() => self.verdict = Some(verdict),
            _ => return,
        }
        self.move_phase(Tick::NEVER);
    }

    /// A rank ends the job. Others that do so right after it with the same words are named beside
    /// it.
    pub(super) fn on_abort(&mut self, rank: u32, status: i32, message: &str) {
        let sentence_with = |others: &[u32], job: &Job, first| {
            verdict::aborted(job.who(first), others, status, message)
        };
        match self.aborted.split_first() {
            Some((&first, others)) if matches!(self.phase, Phase::Failing { .. }) => {
                if self.verdict == Some(sentence_with(others, self, first)) {
                    self.aborted.push(rank);
                    self.verdict = Some(sentence_with(&self.aborted[1..], self, first));
                }
            }
            _ => {
                self.aborted = vec![rank];
                self.fail(sentence_with(&[], self, rank));
            }
        }
    }

    pub(super) fn on_stuck(&mut self, waiting: u32, missing: u32) {
        let ended = self.ranks[missing as usize].ended;
        self.fail(verdict::stuck(waiting, self.who(missing), ended));
    }

    pub(super) fn on_garbage(&mut self, rank: u32, error: &str) {
        let who = self.who(rank);
        self.fail(Verdict::new(
            1,
            format!("{who} cannot be understood: {error}"),
        ));
    }

    pub(super) fn check_sinks(&mut self) {
        for (sink, name) in [(0, "output"), (1, "error")] {
            if let Some(e) = self.sinks[sink].failure() {
                self.fail(unwritable(name, &e));
            }
        }
    }

    /// Goes to the next phase when its time has come.
    pub(super) fn move_phase(&mut self, now: Tick) {
        match self.phase {
            Phase::Failing { until } if until <= now => {
                self.signal_all(signals::TERM);
                self.signal_all(signals::CONT);
                self.phase = Phase::Ending {
                    until: clock::now() + ENDING,
                };
            }
            Phase::Ending { until } if until <= now => self.kill(now),
            _ => {}
        }
    }

    fn kill(&mut self, now: Tick) {
        self.kill_all();
        kw_sys::process::sweep(&self.tag);
        self.phase = Phase::Killing {
            until: now + KILLING,
        };
    }

    /// Whether there is nothing more to wait for.
    pub(super) fn is_over(&self) -> bool {
        let gave_up = match self.phase {
            Phase::Killing { until } => until <= clock::now(),
            _ => false,
        };
        gave_up || self.ranks.iter().all(|r| r.ended.is_some())
    }
}

fn interrupted(signal: i32) -> Verdict {
    let name = signals::name(signal);
    Verdict::new(128 + signal as u8, format!("the job was ended by {name}"))
}

pub(super) fn unwritable(name: &str, e: &std::io::Error) -> Verdict {
    Verdict::new(1, format!("cannot write standard {name}: {e}"))
}
