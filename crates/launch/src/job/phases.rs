//! Phase of a job: whether it runs, which rank or host is to blame when it does not, and how it is
//! ended.
//!
//! ```text
//! Gathering --every other host has its helper--> Running
//! Running --a rank failed--> Failing (others may still show the true cause)
//!    |                          --> Ending (SIGTERM) --> Killing (SIGKILL)
//!    \--all ranks ended--> done <--all ranks ended--/
//! ```
//! It touches no process: what must be done with the ranks is returned as an [`Action`].

use std::time::Duration;

use crate::verdict::{self, Ended, Verdict, Who};
use kw_base::Tick;
use kw_sys::signals;

/// How long others may show that they caused the end, not the rank that called MPI_Abort.
const FAILING: Duration = Duration::from_millis(20);
/// How long ranks have between SIGTERM and SIGKILL.
const ENDING: Duration = Duration::from_millis(400);
/// How long killed ranks may take to go before we give up on them.
const KILLING: Duration = Duration::from_secs(5);
/// A second SIGINT counts as one only after this long: `timeout` and terminals may send one twice.
const TWICE: Duration = Duration::from_millis(250);

/// Progress of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Gathering { until: Tick },
    Running,
    Failing { until: Tick },
    Ending { until: Tick },
    Killing { until: Tick },
}

/// Action on all living ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Send this signal.
    Signal(i32),
    /// Ask them to end: SIGTERM.
    End,
    /// Kill them, and all processes that they have left.
    Kill,
}

/// The state machine.
#[derive(Debug)]
pub(super) struct Phases {
    phase: Phase,
    verdict: Option<Verdict>,
    /// Ranks that have aborted the job with the status and the message of the first of them.
    aborted: Vec<u32>,
    /// The signal that asked us to end, and when.
    asked: Option<(i32, Tick)>,
}

impl Phases {
    /// Creates the state of a job whose ranks are all here.
    pub(super) fn new() -> Phases {
        Phases {
            phase: Phase::Running,
            verdict: None,
            aborted: Vec::new(),
            asked: None,
        }
    }

    /// Begins to reach other hosts; they must report by this time.
    pub(super) fn gather(&mut self, until: Tick) {
        self.phase = Phase::Gathering { until };
    }

    /// Notes that they are there.
    pub(super) fn run(&mut self) {
        self.phase = Phase::Running;
    }

    /// Notes that all ranks have ended; helpers must be gone by this time.
    pub(super) fn part(&mut self, until: Tick) {
        self.phase = Phase::Killing { until };
    }

    pub(super) fn is_gathering(&self) -> bool {
        matches!(self.phase, Phase::Gathering { .. })
    }

    /// Whether the job is being ended, or was.
    pub(super) fn has_failed(&self) -> bool {
        self.phase != Phase::Running
    }

    /// Whether the time for killed ranks to go is over.
    pub(super) fn gave_up(&self, now: Tick) -> bool {
        matches!(self.phase, Phase::Killing { until } if until <= now)
    }

    pub(super) fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    pub(super) fn take_verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    /// The signal that asked us to end.
    pub(super) fn asked(&self) -> Option<i32> {
        self.asked.map(|(number, _)| number)
    }

    /// When the phase ends by itself.
    pub(super) fn next(&self) -> Tick {
        match self.phase {
            Phase::Running => Tick::NEVER,
            Phase::Gathering { until }
            | Phase::Failing { until }
            | Phase::Ending { until }
            | Phase::Killing { until } => until,
        }
    }

    /// Handles a request to end.
    pub(super) fn on_signal(&mut self, number: i32, now: Tick) -> Option<Action> {
        if self.is_gathering() {
            self.remember(interrupted(number));
            return None;
        }
        match self.asked {
            Some((before, at)) if number == before => {
                if now.since(at) < TWICE {
                    return None;
                }
                self.fail(interrupted(number), now);
                Some(self.kill(now))
            }
            _ => {
                self.asked = Some((number, now));
                Some(Action::Signal(number))
            }
        }
    }

    /// Handles a request to end after all ranks have ended.
    pub(super) fn on_last_signal(&mut self, number: i32, now: Tick) {
        self.asked = Some((number, now));
    }

    /// Notes a verdict that does not end the job.
    pub(super) fn remember(&mut self, verdict: Verdict) {
        self.verdict.get_or_insert(verdict);
    }

    /// Notes a verdict that ends the job; the first one counts.
    pub(super) fn fail(&mut self, verdict: Verdict, now: Tick) {
        if self.phase == Phase::Running {
            self.verdict = Some(verdict);
            self.phase = Phase::Failing {
                until: now + FAILING,
            };
        }
    }

    /// Handles a host that cannot be reached, or is lost.
    pub(super) fn on_lost(&mut self, verdict: Verdict, now: Tick) {
        match self.is_gathering() {
            true => self.remember(verdict),
            false => self.fail(verdict, now),
        }
    }

    /// Handles the end of a rank. `open`: it had not announced its end.
    pub(super) fn on_ended(
        &mut self,
        who: Who,
        ended: Ended,
        open: bool,
        now: Tick,
    ) -> Option<Action> {
        match ended {
            Ended::Signal(s, _) if self.asked() == Some(s) => self.fail(interrupted(s), now),
            Ended::Signal(s, core) => {
                return self.fail_for_sure(verdict::killed(who, s, core), now);
            }
            Ended::Exit(code) if open => self.fail(verdict::exited(who, code, true), now),
            Ended::Exit(0) | Ended::Lost => {}
            Ended::Exit(code) => self.remember(verdict::exited(who, code, false)),
        }
        None
    }

    /// Handles the death of a rank by a signal: this is a better cause than an abort of ranks that
    /// had just lost it.
    fn fail_for_sure(&mut self, verdict: Verdict, now: Tick) -> Option<Action> {
        match self.phase {
            Phase::Running => self.verdict = Some(verdict),
            Phase::Failing { .. } if self.asked.is_none() => self.verdict = Some(verdict),
            _ => return None,
        }
        Some(self.end(now))
    }

    /// Handles a rank that ends the job. Others that do so right after it with the same message are
    /// named, too. `verdict` makes the sentence of the first rank and the others.
    pub(super) fn on_abort(
        &mut self,
        rank: u32,
        verdict: impl Fn(u32, &[u32]) -> Verdict,
        now: Tick,
    ) {
        match self.aborted.split_first() {
            Some((&first, others)) if matches!(self.phase, Phase::Failing { .. }) => {
                if self.verdict == Some(verdict(first, others)) {
                    self.aborted.push(rank);
                    self.verdict = Some(verdict(first, &self.aborted[1..]));
                }
            }
            _ => {
                self.aborted = vec![rank];
                self.fail(verdict(rank, &[]), now);
            }
        }
    }

    /// Goes to the next phase when its time has come.
    pub(super) fn on_time(&mut self, now: Tick) -> Option<Action> {
        match self.phase {
            Phase::Failing { until } if until <= now => Some(self.end(now)),
            Phase::Ending { until } if until <= now => Some(self.kill(now)),
            _ => None,
        }
    }

    fn end(&mut self, now: Tick) -> Action {
        self.phase = Phase::Ending {
            until: now + ENDING,
        };
        Action::End
    }

    fn kill(&mut self, now: Tick) -> Action {
        self.phase = Phase::Killing {
            until: now + KILLING,
        };
        Action::Kill
    }
}

fn interrupted(signal: i32) -> Verdict {
    let name = signals::name(signal);
    Verdict::new(128 + signal as u8, format!("the job was ended by {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Tick = Tick(0);

    fn at(ms: u64) -> Tick {
        START + Duration::from_millis(ms)
    }

    fn who(rank: u32) -> Who<'static> {
        Who { rank, host: "h" }
    }

    fn status(phases: &Phases) -> Option<u8> {
        phases.verdict().map(|v| v.status)
    }

    #[test]
    fn a_failed_job_is_asked_to_end_and_then_killed_and_then_given_up() {
        let mut job = Phases::new();
        assert_eq!(job.on_ended(who(1), Ended::Exit(3), true, START), None);
        assert!(job.has_failed() && status(&job) == Some(3));
        assert_eq!(job.on_time(at(19)), None);
        assert_eq!(job.on_time(at(20)), Some(Action::End));
        assert_eq!(job.on_time(at(419)), None);
        assert_eq!(job.on_time(at(420)), Some(Action::Kill));
        assert_eq!((job.on_time(at(900)), job.gave_up(at(5419))), (None, false));
        assert!(job.gave_up(at(5420)));
    }

    #[test]
    fn a_status_that_a_rank_leaves_with_after_finalize_does_not_end_the_job() {
        let mut job = Phases::new();
        job.on_ended(who(1), Ended::Exit(3), false, START);
        job.on_ended(who(2), Ended::Exit(4), false, START);
        assert!(!job.has_failed());
        assert_eq!((status(&job), job.next()), (Some(3), Tick::NEVER));
    }

    #[test]
    fn who_was_killed_is_to_blame_before_who_lost_it() {
        let mut job = Phases::new();
        job.on_ended(who(1), Ended::Exit(1), true, START);
        let killed = job.on_ended(who(2), Ended::Signal(signals::KILL, false), true, at(5));
        assert_eq!(killed, Some(Action::End));
        assert_eq!(status(&job), Some(128 + signals::KILL as u8));
        // Now that all are told to end, ranks that die of it are not to blame.
        job.on_ended(who(3), Ended::Signal(signals::TERM, false), true, at(6));
        assert_eq!(status(&job), Some(128 + signals::KILL as u8));
    }

    #[test]
    fn ranks_that_abort_with_the_same_words_are_named_together() {
        let mut job = Phases::new();
        let words = |text: &'static str| {
            move |first: u32, others: &[u32]| Verdict::new(9, format!("{first}{others:?}{text}"))
        };
        job.on_abort(2, words("x"), START);
        job.on_abort(0, words("x"), at(1));
        job.on_abort(1, words("y"), at(2));
        assert_eq!(job.verdict().unwrap().sentence, "2[0]x");
        job.on_time(at(30));
        job.on_abort(3, words("x"), at(31));
        assert_eq!(job.verdict().unwrap().sentence, "2[0]x");
    }

    #[test]
    fn a_signal_is_passed_on_and_counts_as_a_second_one_only_after_a_while() {
        let mut job = Phases::new();
        let int = signals::INT;
        assert_eq!(job.on_signal(int, START), Some(Action::Signal(int)));
        assert_eq!(job.on_signal(int, at(249)), None);
        assert!(!job.has_failed());
        assert_eq!(job.on_signal(int, at(250)), Some(Action::Kill));
        assert_eq!(status(&job), Some(128 + int as u8));
        // A signal that kills ranks is reported, whatever process sent it.
        let mut job = Phases::new();
        job.on_signal(int, START);
        let ended = job.on_ended(who(1), Ended::Signal(int, false), true, at(1));
        assert_eq!((ended, status(&job)), (None, Some(128 + int as u8)));
    }

    #[test]
    fn while_hosts_are_reached_nothing_is_ended_and_the_first_cause_is_kept() {
        let mut job = Phases::new();
        job.gather(at(100));
        assert_eq!(job.on_signal(signals::INT, START), None);
        job.on_lost(Verdict::new(7, "lost"), START);
        assert_eq!(job.take_verdict().map(|v| v.status), Some(130));
        assert_eq!((job.on_time(at(200)), job.next()), (None, at(100)));
        job.run();
        job.on_lost(Verdict::new(7, "lost"), at(200));
        assert_eq!((status(&job), job.next()), (Some(7), at(220)));
    }
}
