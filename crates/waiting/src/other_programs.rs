//! Other programs next to ranks that share CPUs with each other.
//!
//! Such ranks seldom run at the same time. Each yield next to a process that computes gives away a
//! slice of the scheduler, so waits sleep for a time: a thread woken from sleep goes first. Then one
//! polls again, and shows whether the other program still computes.
//!
//! Only waits soon after this rank has sent something do so: others may wait for what it does next. A
//! rank that only receives is the end of a stream; a wake-up for each message would cost more than it
//! gains.
//!
//! A rank that computes looks like another program to a rank on its CPU. The total CPU time of all
//! ranks of the host since an earlier reading bounds what they used while this rank let others run;
//! only the rest counts.
//!
//! Called by the thread that polls.

use crate::Beginning;
use crate::constants::other_programs::{ASLEEP, COMPUTED, LEARNT, WAITS_AFTER_SEND};
use kw_base::Tick;
use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub struct OtherPrograms {
    /// CPU time that the ranks of this host had used at the last reading.
    ours: Option<Duration>,
    /// How long other programs have computed while this rank waited.
    computed: Duration,
    /// Waits after this rank has sent sleep at once, or did until a moment ago.
    sleeps: bool,
    /// Until when they do or did.
    asleep_until: Option<Tick>,
    /// For how long they did the last time.
    asleep_for: Duration,
    /// Messages that this rank had sent when its last wait began.
    sent: u64,
    /// Waits left that count as waits after that.
    after_send: u32,
}

impl OtherPrograms {
    /// A wait begins; see [`crate::Policy::begin_wait`].
    pub fn beginning(&mut self, sent: u64, meets: bool, now: impl FnOnce() -> Tick) -> Beginning {
        self.after_send = match sent != self.sent || meets {
            true => WAITS_AFTER_SEND,
            false => self.after_send.saturating_sub(1),
        };
        self.sent = sent;
        if self.after_send == 0 || !self.sleeps {
            return Beginning::Alone;
        }
        self.sleeps = self.asleep_until.is_some_and(|until| now() < until);
        match self.sleeps {
            true => Beginning::Asleep,
            false => Beginning::Alone,
        }
    }

    /// A wait let others run until `now`, and they had the CPU for this long. Returns whether it sleeps
    /// instead; see [`crate::Policy::others_ran`].
    pub fn had_it(
        &mut self,
        lasted: Duration,
        now: Tick,
        ours: impl FnOnce() -> Option<Duration>,
    ) -> bool {
        if lasted < COMPUTED || !self.left_to_others(lasted, ours()) {
            return false;
        }
        self.computed += lasted;
        if self.computed < LEARNT {
            return false;
        }
        self.sleep_from(now);
        self.after_send > 0
    }

    /// Whether most of this time certainly went to other programs: not after the first stretch, nor
    /// when the last reading is so old that the ranks of the host may have had it.
    fn left_to_others(&mut self, lasted: Duration, ours: Option<Duration>) -> bool {
        let before = std::mem::replace(&mut self.ours, ours);
        let since = before
            .zip(ours)
            .and_then(|(before, now)| now.checked_sub(before));
        since.is_some_and(|since| since < lasted / 2)
    }

    /// Waits sleep at once: for twice as long as before if they have polled for less than that since.
    fn sleep_from(&mut self, now: Tick) {
        let polled = self.asleep_until.map(|until| now.since(until));
        self.asleep_for = match polled.is_some_and(|polled| polled <= self.asleep_for) {
            true => ASLEEP[1].min(self.asleep_for * 2),
            false => ASLEEP[0],
        };
        self.sleeps = true;
        self.asleep_until = Some(now + self.asleep_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SLICE: Duration = Duration::from_millis(3);

    #[test]
    fn computation_of_ranks_is_never_taken_for_that_of_others() {
        let mut programs = OtherPrograms::default();
        for used in 1..100 {
            assert!(!programs.left_to_others(2 * MS, Some(used * MS)));
        }
    }

    #[test]
    fn two_stretches_in_a_row_in_which_the_ranks_wait_belong_to_others() {
        let mut programs = OtherPrograms::default();
        assert!(!programs.left_to_others(SLICE, Some(100 * MS)));
        assert!(programs.left_to_others(SLICE, Some(101 * MS)));
        // The ranks have computed since.
        assert!(!programs.left_to_others(SLICE, Some(150 * MS)));
        assert!(programs.left_to_others(SLICE, Some(150 * MS)));
    }

    #[test]
    fn what_is_not_known_proves_nothing() {
        let mut programs = OtherPrograms::default();
        for ours in [None, Some(MS), None, Some(2 * MS), Some(MS)] {
            assert!(!programs.left_to_others(SLICE, ours));
        }
    }

    /// Others have computed until now; whether the wait sleeps.
    fn others_compute(programs: &mut OtherPrograms, now: Tick) -> bool {
        programs.had_it(SLICE, now, || Some(MS))
    }

    #[test]
    fn waits_after_a_send_sleep_for_a_time_and_longer_while_the_other_computes() {
        let (mut programs, mut now) = (OtherPrograms::default(), Tick(1));
        let begins = |programs: &mut OtherPrograms, now| programs.beginning(0, true, || now);
        assert_eq!(begins(&mut programs, now), Beginning::Alone);
        assert!(!others_compute(&mut programs, now), "the first reading");
        for asleep in [20, 40, 80, 160, 320, 320] {
            assert!(others_compute(&mut programs, now));
            for _ in 1..asleep {
                now = now + MS;
                assert_eq!(begins(&mut programs, now), Beginning::Asleep, "{asleep}");
            }
            now = now + MS;
            assert_eq!(begins(&mut programs, now), Beginning::Alone, "{asleep}");
            assert!(!programs.sleeps);
        }
        now = now + 2 * ASLEEP[1];
        assert!(others_compute(&mut programs, now));
        now = now + ASLEEP[0];
        assert_eq!(begins(&mut programs, now), Beginning::Alone, "as at first");
    }

    #[test]
    fn waits_of_a_rank_that_only_receives_do_not_sleep() {
        let (mut programs, now) = (OtherPrograms::default(), Tick(1));
        programs.beginning(1, false, || now);
        for _ in 0..2 {
            others_compute(&mut programs, now);
        }
        let waits = (0..WAITS_AFTER_SEND).map(|_| programs.beginning(1, false, || now));
        let waits: Vec<_> = waits.collect();
        assert!(waits.starts_with(&[Beginning::Asleep]) && waits.ends_with(&[Beginning::Alone]));
        assert!(!others_compute(&mut programs, now));
        assert_eq!(programs.beginning(2, false, || now), Beginning::Asleep);
    }
}
