//! A blocking call of the thread that polls for all: how often it polls, when it yields, when it
//! sleeps.
//!
//! ```text
//! loop { poll; something came -> progressed(), or the end
//!              nothing        -> found_nothing() -> yield? -> read the clock? -> on_time() -> sleep? -> slept() }
//! ```
//!
//! It polls alone for a short time, yields between polls for longer, then sleeps. Where CPUs are
//! shared it yields from the first poll on; next to a process that only computes it sleeps at once
//! ([`crate::CoScheduled`]).

use crate::Beginning;
use crate::constants::co_scheduled::WAITS_ASLEEP;
use crate::constants::wait::*;
use kw_base::Tick;
use std::time::Duration;

/// How long waits poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// Time before they let others run between two polls.
    pub alone: Duration,
    /// Time before they sleep.
    pub spin: Duration,
}

impl Times {
    /// Durations on a host where waking a thread takes `wake`; `spin_setting`: the value of
    /// `KW_SPIN`.
    pub fn of(wake: Duration, spin_setting: Option<Duration>) -> Times {
        let times = |n: u32| (wake * n).min(LONGEST_POLLING);
        Times {
            alone: times(WAKES_ALONE),
            spin: spin_setting.unwrap_or(times(WAKES)),
        }
    }
}

/// Action between two polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Round {
    /// Others may run now.
    pub yields: bool,
    /// Parked threads whose requests have ended must be woken.
    pub wakes_parked: bool,
    /// The clock must be read ([`Wait::on_time`]).
    pub reads_clock: bool,
    /// The CPU must be told that this is a spin loop.
    pub hints: bool,
}

/// Action after a reading of the clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// The ranks that this wait depends on must be asked whether they have left.
    pub checks_peers: bool,
    /// The thread must sleep.
    pub sleeps: Option<Sleeps>,
}

/// How long a wait sleeps at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleeps {
    /// [`CHECKED_AFTER`]: until the check whether peers have left.
    UntilChecked,
    /// The check is done; it sleeps as long as reports about long waits allow.
    Long,
}

/// One wait.
#[derive(Debug)]
pub struct Wait {
    /// How long a wait that starts again polls before it sleeps; not at all next to an unrelated
    /// computation.
    full: Duration,
    /// The same without that computation.
    usual: Duration,
    /// How often it has slept at once.
    asleep: u32,
    /// How long it polls now.
    spin: Duration,
    /// Others may run between two polls: they are known to want to, or it has polled long enough.
    shares: bool,
    /// Whether they may from the first poll on.
    shares_at_once: bool,
    /// It has slept, and something else woke it.
    woken: bool,
    /// Consecutive unsuccessful polls.
    idle: u32,
    /// So many of them do not let others run: more is likely to come at once.
    alone: u32,
    /// Since when nothing has come, and since when it has waited, as far as the clock was read.
    since: Option<Tick>,
    began: Option<Tick>,
    /// When it has to be checked again.
    check_at: Option<Tick>,
    /// When the clock was read, if only polls have been made since.
    read_at: Option<Tick>,
}

impl Wait {
    #[inline]
    pub(crate) fn new(spin: Duration, beginning: Beginning) -> Wait {
        let full = match beginning {
            Beginning::Asleep => Duration::ZERO,
            Beginning::Alone | Beginning::Shared => spin,
        };
        let shares_at_once = beginning == Beginning::Shared;
        Wait {
            full,
            usual: spin,
            asleep: 0,
            spin: full,
            shares: shares_at_once,
            shares_at_once,
            woken: false,
            idle: 0,
            alone: 0,
            since: None,
            began: None,
            check_at: None,
            read_at: None,
        }
    }

    /// Whether the next poll is of all paths, and not only of where this wait can end.
    #[inline]
    pub fn polls_all(&self) -> bool {
        self.idle % ROUNDS_OF_ONE == ROUNDS_OF_ONE - 1
    }

    /// Something has come, but not what this waits for.
    #[inline]
    pub fn progressed(&mut self) {
        self.alone = ROUNDS_AFTER_DATA;
        (self.idle, self.since, self.shares) = (0, None, self.shares_at_once);
        self.read_at = None;
        // Data that follows at once after the data that woke it is a stream of pieces.
        if !std::mem::take(&mut self.woken) {
            self.spin = self.full;
        }
    }

    /// A poll found nothing.
    #[inline]
    pub fn found_nothing(&mut self, oversubscribed: bool) -> Round {
        self.idle += 1;
        let shares = oversubscribed || self.shares && self.idle > self.alone;
        Round {
            yields: shares && !self.full.is_zero(),
            wakes_parked: self.idle.is_multiple_of(ROUNDS_FOR_OTHERS),
            reads_clock: shares
                || self.spin.is_zero() && self.idle > self.alone
                || self.idle.is_multiple_of(LOOKS_PER_CLOCK),
            hints: self.idle > ROUNDS_AT_FULL_SPEED,
        }
    }

    /// Others on this CPU only compute.
    pub(crate) fn sleep_at_once(&mut self) {
        (self.full, self.spin) = (Duration::ZERO, Duration::ZERO);
    }

    /// The clock was read. `fetch`: the longest time until a peer has read the data that it was
    /// offered.
    #[inline]
    pub fn on_time(
        &mut self,
        now: Tick,
        policy: (bool, Times),
        fetch: impl FnOnce() -> Duration,
    ) -> Timed {
        self.read_at = Some(now);
        let tired = self.is_tired(now, policy, fetch);
        let lasts = now.since(*self.began.get_or_insert(now)) >= CHECKED_AFTER;
        let checks_peers = lasts && (tired || self.check_at.is_none_or(|at| now >= at));
        if checks_peers {
            self.check_at = Some(now + CHECKED_AFTER);
        }
        Timed {
            checks_peers,
            sleeps: tired.then_some(if lasts {
                Sleeps::Long
            } else {
                Sleeps::UntilChecked
            }),
        }
    }

    /// When the clock was read, if only polls have been made since: others begin to run then.
    pub fn read_at(&self) -> Option<Tick> {
        self.read_at
    }

    /// Since when it has waited, once the clock was read.
    pub fn began(&self) -> Option<Tick> {
        self.began
    }

    /// Whether it has polled for as long as it may.
    #[inline]
    fn is_tired(
        &mut self,
        now: Tick,
        (oversubscribed, times): (bool, Times),
        fetch: impl FnOnce() -> Duration,
    ) -> bool {
        let waited = now.since(*self.since.get_or_insert(now));
        self.shares = self.shares_at_once || waited >= times.alone;
        // The first time only: the peer may not have posted its receive.
        let longer = match oversubscribed || self.woken || self.spin.is_zero() {
            true => Duration::ZERO,
            false => fetch(),
        };
        waited >= self.spin + longer
    }

    /// It has slept and woken for something else, after a long time: the next row of polls need not
    /// be as long. A wait that slept at once polls again after [`WAITS_ASLEEP`] sleeps, as later
    /// waits would: it may be one that serves others for long, and the computation may have ended.
    pub fn slept(&mut self) {
        self.alone = 0;
        if self.full.is_zero() {
            self.asleep += 1;
        }
        if self.asleep == WAITS_ASLEEP {
            (self.full, self.asleep) = (self.usual, 0);
        }
        (self.spin, self.woken) = (self.full / AFTER_SLEEP, true);
        (self.idle, self.since, self.shares) = (0, None, self.shares_at_once);
        self.read_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_that_others_wake_for_long_polls_again_after_a_row_of_sleeps() {
        let times = Times::of(Duration::from_micros(7), None);
        let mut wait = Wait::new(times.spin, Beginning::Alone);
        let sleeps = |wait: &mut Wait| {
            wait.found_nothing(false);
            let timed = wait.on_time(Tick::default(), (false, times), || Duration::ZERO);
            timed.sleeps.is_some()
        };
        assert!(!sleeps(&mut wait));
        wait.sleep_at_once();
        for _ in 0..WAITS_ASLEEP {
            assert!(sleeps(&mut wait));
            wait.slept();
        }
        assert!(!sleeps(&mut wait));
    }

    #[test]
    fn more_is_waited_for_alone_after_something_has_come() {
        let times = Times::of(Duration::from_micros(7), None);
        for beginning in [Beginning::Shared, Beginning::Asleep] {
            let mut wait = Wait::new(times.spin, beginning);
            let at_once = wait.found_nothing(false);
            assert!(at_once.yields || at_once.reads_clock);
            wait.progressed();
            for _ in 1..ROUNDS_AFTER_DATA {
                let round = wait.found_nothing(false);
                assert!(!round.yields && !round.reads_clock);
            }
            assert!(wait.found_nothing(true).reads_clock);
        }
    }
}
