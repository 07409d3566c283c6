//! Back-off of unsuccessful test calls (MPI_Test, MPI_Iprobe, ...): a program that calls them again
//! and again polls, and must not take the CPU from the rank that would complete its request.
//!
//! A *row* is a series of unsuccessful polls with no other call in between; any progress ends it,
//! and so does a program that computes between two polls. On shared CPUs a long row yields now and
//! then; when it has lasted as long as a blocking call polls, it also sleeps on the doorbell, in
//! total for as long as it was awake: a program that had other work after all loses at most half of
//! its time, and incoming data ends a sleep at once. If each rank has a CPU a row costs a count;
//! now and then it asks the system whether this thread had to wait for its CPU, and while it does
//! another program runs there, and the row does the same.
//!
//! Unsuccessful polls that continue as long as a long wait are checked like one: the ranks they
//! depend on are asked whether they have left. That applies whatever the program does between them:
//! on a slow CPU, or in a program that computes, they must not loop forever either.

use crate::Times;
use crate::constants::test_calls::*;
use crate::constants::wait::CHECKED_AFTER;
use kw_base::Tick;
use std::time::Duration;

/// Consecutive unsuccessful polls of all threads of this rank.
#[derive(Debug)]
pub struct PollBackoff {
    /// Calls of the program at the last poll.
    entries: u64,
    /// Unsuccessful polls until the row is timed again.
    left: u32,
    /// One in this many polls is timed.
    step: u32,
    row: Option<Row>,
    /// Time at which unsuccessful polls are checked, if they continue until then.
    check_at: Option<Tick>,
    rival: Rival,
}

/// A row that is timed.
#[derive(Clone, Copy, Debug)]
struct Row {
    since: Tick,
    /// When it last let others run.
    yielded: Tick,
    /// When its last timed poll ended.
    last: Tick,
    /// How long it has slept.
    slept: Duration,
}

impl Row {
    fn new(now: Tick) -> Row {
        Row {
            since: now,
            yielded: now,
            last: now,
            slept: Duration::ZERO,
        }
    }
}

impl Default for PollBackoff {
    fn default() -> PollBackoff {
        PollBackoff {
            entries: 0,
            left: ROW_SHARED,
            step: ROW_SHARED,
            row: None,
            check_at: None,
            rival: Rival::default(),
        }
    }
}

/// Whether another program runs on the CPU of the thread that polls.
#[derive(Debug, Default)]
struct Rival {
    /// When the system was asked last, and how long the thread had waited for a CPU until then.
    asked: Option<(Tick, Duration)>,
    is_there: bool,
}

impl PollBackoff {
    /// Whether the next poll is timed if it is unsuccessful.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.left == 1
    }

    /// Notes an unsuccessful poll; returns whether it is one of many, and to be timed.
    #[inline]
    pub fn note(&mut self, entries: u64, moved: bool) -> bool {
        let next = entries == self.entries + 1 && !moved;
        self.entries = entries;
        if !next {
            (self.left, self.row, self.check_at) = (self.step, None, None);
            return false;
        }
        self.left -= 1;
        self.left == 0
    }

    /// Times an unsuccessful poll that took from `began` to `now`; it assumes that others take as
    /// long. Returns whether the poll belongs to a row.
    fn time(&mut self, began: Tick, now: Tick) -> bool {
        self.left = self.step;
        self.check_at.get_or_insert(now + CHECKED_AFTER);
        let away = (AWAY + now.since(began)) * self.step;
        match &mut self.row {
            Some(row) if now.since(row.last) <= away => {
                row.last = now;
                true
            }
            row => {
                *row = Some(Row::new(now));
                false
            }
        }
    }

    /// Sets how many polls there are per timed one: on shared CPUs more polls are timed.
    fn set_step(&mut self, shared: bool) {
        self.step = if shared { ROW_SHARED } else { ROW_ALONE };
    }

    /// A timed poll, which took from `began` to `now`, found nothing. `times`: how long a blocking
    /// call polls; `waited`: how long this thread has waited for a CPU until now.
    pub fn found_nothing(
        &mut self,
        [began, now]: [Tick; 2],
        oversubscribed: bool,
        times: Times,
        waited: impl FnOnce() -> Duration,
    ) -> Decision {
        let in_row = self.time(began, now);
        if self.is_to_be_checked(now) {
            return Decision::CheckPeers;
        }
        if !oversubscribed {
            self.rival.ask(now, waited);
        }
        let shared = oversubscribed || self.rival.is_there;
        self.set_step(shared);
        match shared && in_row {
            true => self.next(now, times),
            false => Decision::Nothing,
        }
    }

    /// Action on a timed poll of a row.
    fn next(&self, now: Tick, times: Times) -> Decision {
        let Some(row) = self.row else {
            return Decision::Nothing;
        };
        let awake = now.since(row.since).saturating_sub(row.slept);
        let left = awake.saturating_sub(row.slept);
        if awake >= times.spin && left >= NAPS[0] {
            Decision::Sleep(left.min(NAPS[1]))
        } else if now.since(row.yielded) >= times.alone / YIELDS_OF_ALONE {
            Decision::Yield
        } else {
            Decision::Nothing
        }
    }

    /// Whether unsuccessful polls have continued so long that the ranks they depend on are to be
    /// asked.
    fn is_to_be_checked(&mut self, now: Tick) -> bool {
        let is = self.check_at.is_some_and(|at| now >= at);
        if is {
            self.check_at = Some(now + CHECKED_EVERY);
        }
        is
    }

    /// It has let others run for this time.
    pub fn gave_way(&mut self, from: Tick, now: Tick, asleep: bool) {
        if let Some(row) = &mut self.row {
            (row.yielded, row.last) = (now, now);
            if asleep {
                row.slept += now.since(from);
            }
        }
    }
}

/// Action on an unsuccessful poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Return.
    Nothing,
    /// Ask the ranks that the request depends on whether they have left, and poll again.
    CheckPeers,
    /// Let others run, and poll again.
    Yield,
    /// Sleep on the doorbell for this long at most, and poll again.
    Sleep(Duration),
}

impl Rival {
    /// Asks the system, now and then.
    fn ask(&mut self, now: Tick, waited: impl FnOnce() -> Duration) {
        let last = self.asked.map(|a| a.0);
        if last.is_some_and(|last| now.since(last) < ASK_EVERY) {
            return;
        }
        let waited = waited();
        if let Some((last, before)) = self.asked {
            self.is_there = waited.saturating_sub(before) > now.since(last) / PART_TAKEN;
        }
        self.asked = Some((now, waited));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(60);
    const ALONE: Duration = Duration::from_micros(60);
    const TIMES: Times = Times {
        alone: ALONE,
        spin: SPIN,
    };

    /// A program whose polls all find nothing; it is `away` before each of this many polls, which
    /// take `look`. Returns how long it was awake, how often it yielded, how long it slept.
    fn poll([away, look]: [Duration; 2], looks: u32) -> (Duration, u32, Duration) {
        let mut polls = PollBackoff::default();
        polls.set_step(true);
        let (mut now, mut yields, mut slept) = (Tick(1), 0, Duration::ZERO);
        for entry in 0..looks {
            let began = now + away;
            now = began + look;
            if !polls.note(entry as u64, false) || !polls.time(began, now) {
                continue;
            }
            let next = polls.next(now, TIMES);
            let from = now;
            match next {
                Decision::Nothing | Decision::CheckPeers => continue,
                Decision::Yield => yields += 1,
                Decision::Sleep(most) => {
                    assert!(most <= NAPS[1]);
                    slept += most;
                    now = now + most;
                }
            }
            polls.gave_way(from, now, matches!(next, Decision::Sleep(_)));
        }
        ((away + look) * looks, yields, slept)
    }

    /// A program that polls: it gives way, and sleeps half of its time.
    fn gives_way(away: u64, look: u64, looks: u32) {
        let (awake, yields, slept) = poll([away, look].map(Duration::from_nanos), looks);
        let most = (awake.as_micros() / (ALONE / YIELDS_OF_ALONE).as_micros()) as u32;
        assert!((most / 2..=most).contains(&yields), "{yields} of {most}");
        assert!(
            slept <= awake && slept > awake / 2,
            "{slept:?} of {awake:?}"
        );
    }

    #[test]
    fn a_program_that_polls_gives_way_and_sleeps_half_of_its_time() {
        gives_way(50, 50, 200_000);
    }

    #[test]
    fn so_does_one_whose_looks_take_long_by_themselves() {
        gives_way(50, 2_000, 10_000);
    }

    #[test]
    fn a_program_that_computes_between_looks_is_left_alone() {
        let times = [3_000, 100].map(Duration::from_nanos);
        let (_, yields, slept) = poll(times, 10_000);
        assert_eq!((yields, slept), (0, Duration::ZERO));
    }

    #[test]
    fn other_calls_and_whatever_moves_end_a_row() {
        let mut polls = PollBackoff::default();
        let found = |polls: &mut PollBackoff, moved| {
            let looks = (1..1000u64).map(|n| polls.note(if moved { n } else { 2 * n }, moved));
            looks.filter(|long| *long).count()
        };
        assert_eq!(found(&mut polls, false), 0);
        assert_eq!(found(&mut polls, true), 0);
    }

    #[test]
    fn with_a_processor_for_each_rank_a_look_only_counts() {
        let mut polls = PollBackoff::default();
        polls.set_step(false);
        let looks = (1..=10 * ROW_ALONE as u64)
            .filter(|n| polls.note(*n, false) && polls.time(Tick(*n), Tick(*n)));
        assert!((8..=10).contains(&looks.count()));
    }

    /// How often unsuccessful polls of this duration are checked.
    fn checks(look: Duration, looks: u32, shared: bool) -> usize {
        let mut polls = PollBackoff::default();
        polls.set_step(shared);
        let mut now = Tick(1);
        let mut checked = |n| {
            now = now + look;
            let timed = polls.note(n as u64, false);
            if timed {
                polls.time(now, now);
            }
            timed && polls.is_to_be_checked(now)
        };
        (0..looks).filter(|n| checked(*n)).count()
    }

    #[test]
    fn looks_that_go_on_are_checked_whatever_is_between_them() {
        for shared in [false, true] {
            for (look, in_90_ms) in [(100, 900_000), (3000, 30_000)] {
                let look = Duration::from_nanos(look);
                assert_eq!(checks(look, in_90_ms, shared), 0);
                let times = checks(look, 2 * in_90_ms + in_90_ms / 5, shared);
                assert!((8..=11).contains(&times), "{look:?}: {times}");
            }
        }
    }
}
