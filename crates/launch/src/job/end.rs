//! Signals, deaths, and how a job ends.

use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};

use super::{ENDING, FAILING, Job, KILLING, Phase};
use crate::verdict::{self, Ended, Verdict, Who};
use kw_base::Tick;
use kw_core::pmi::Stage;
use kw_sys::{clock, signals};

/// A second SIGINT counts as one only after this long: `timeout` and terminals may send one twice.
const TWICE: Duration = Duration::from_millis(250);

impl Job {
    fn who(&self, rank: u32) -> Who<'_> {
        Who {
            rank,
            host: &self.host,
        }
    }

    /// Handles all signals that have come, and all deaths.
    pub(super) fn take_signals(&mut self) {
        while let Some(came) = self.signals.poll_signal() {
            match came.number {
                signals::CHLD => {}
                signals::TSTP => self.pause(),
                signals::CONT => self.to_all(signals::CONT),
                signals::USR1 | signals::USR2 => self.to_all(came.number),
                number => self.on_end_signal(number),
            }
        }
        self.reap();
    }

    fn pause(&mut self) {
        self.to_all(signals::STOP);
        signals::stop_self();
        self.to_all(signals::CONT);
    }

    fn on_end_signal(&mut self, number: i32) {
        let now = clock::now();
        match self.asked {
            Some((before, at)) if number == before => {
                if now.since(at) >= TWICE {
                    self.fail(interrupted(number));
                    self.kill(now);
                }
            }
            _ => {
                self.asked = Some((number, now));
                self.to_all(number);
            }
        }
    }

    /// Sends a signal to the process groups of all living ranks.
    fn to_all(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        for rank in self.ranks.iter().filter(|r| r.ended.is_none()) {
            if let Some(pid) = Pid::from_raw(rank.pid as i32) {
                let _ = kill_process_group(pid, signal);
            }
        }
    }

    /// Kills what was started, without a word.
    pub(super) fn kill_all(&self) {
        self.to_all(signals::KILL);
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let ended = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ended::Exit(code),
                (_, Some(signal)) => Ended::Signal(signal, core_dumped(status.as_raw())),
                _ => continue,
            };
            let pid = pid.as_raw_nonzero().get() as u32;
            if let Some(rank) = self.pids.remove(&pid) {
                self.on_ended(rank, ended);
            }
        }
    }

    fn on_ended(&mut self, rank: u32, ended: Ended) {
        self.on_wire(rank);
        self.ranks[rank as usize].ended = Some(ended);
        let stage = self.server.stage(rank);
        let open = matches!(stage, Stage::Speaking | Stage::Waiting);
        match (ended, self.asked) {
            (Ended::Signal(s, _), Some((asked, _))) if s == asked => self.fail(interrupted(s)),
            (Ended::Signal(s, core), _) => {
                self.fail_for_sure(verdict::killed(self.who(rank), s, core))
            }
            (Ended::Exit(code), _) if open => {
                self.fail(verdict::exited(self.who(rank), code, true))
            }
            (Ended::Exit(0), _) => {}
            (Ended::Exit(code), _) => self.remember(verdict::exited(self.who(rank), code, false)),
        }
        self.server.left(rank, &mut self.effects);
        self.carry_out();
    }

    /// A verdict that does not end the job.
    fn remember(&mut self, verdict: Verdict) {
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

    pub(super) fn on_abort(&mut self, rank: u32, status: i32, message: &str) {
        self.fail(verdict::aborted(self.who(rank), status, message));
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
                self.to_all(signals::TERM);
                self.to_all(signals::CONT);
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

    /// Writes out what is left, removes what is left, and gives the verdict.
    pub(super) fn finish(mut self) -> Option<Verdict> {
        if self.phase != Phase::Running {
            kw_sys::process::sweep(&self.tag);
        }
        self.drain();
        for (sink, name) in [(0, "output"), (1, "error")] {
            if let Some(e) = self.sinks[sink].finish() {
                self.remember(unwritable(name, &e));
            }
        }
        self.guard.dismiss();
        self.verdict
    }

    /// Reads what ended ranks have left in their pipes.
    fn drain(&mut self) {
        for rank in 0..self.ranks.len() {
            for which in 0..2 {
                while self.readable(rank, which) {
                    self.on_output(rank as u32, which);
                }
            }
        }
        self.flush_unfinished();
    }

    fn readable(&self, rank: usize, which: usize) -> bool {
        let Some(pipe) = &self.ranks[rank].pipes[which] else {
            return false;
        };
        rustix::io::ioctl_fionread(&pipe.fd).is_ok_and(|n| n > 0)
    }
}

/// The core flag of a wait status.
fn core_dumped(raw: i32) -> bool {
    raw & 0x80 != 0
}

fn interrupted(signal: i32) -> Verdict {
    let name = signals::name(signal);
    Verdict::new(128 + signal as u8, format!("the job was ended by {name}"))
}

fn unwritable(name: &str, e: &std::io::Error) -> Verdict {
    Verdict::new(1, format!("cannot write standard {name}: {e}"))
}
