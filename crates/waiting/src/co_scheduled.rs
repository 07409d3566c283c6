//! Learned behaviour of other processes on this rank's CPU that MPI does not know: other programs,
//! ranks of another job, ranks of emulated hosts.
//!
//! A wait that yields measures how long the others had the CPU. Long stretches are computations.
//! From then on waits yield from their first unsuccessful poll on, like ranks that are known to
//! share CPUs: a process that also waits yields back at once. If the other process is CPU-bound,
//! yielding is not enough: the scheduler runs it for several milliseconds. A thread woken from
//! sleep preempts it, so waits sleep at once there.
//!
//! A rank with a CPU of its own sleeps in some waits, then polls in one. While all ranks have their
//! slices at the same time, polling is faster by far, and messages of a stream gather in that wait.
//!
//! Ranks that share CPUs seldom run at the same time, and each yield gives away a slice. They sleep
//! for a time, however many waits that are, if they have sent something lately: others may wait for
//! what they do next. A rank that has only received is the end of a stream, and a wake-up for each
//! message would cost more than it gains: it only yields. Of what others had, only time counts that
//! the ranks of the host cannot have had themselves ([`crate::Policy::others_ran`]).
//!
//! Told by the thread that polls.

use crate::constants::co_scheduled::{
    ASLEEP, COMPUTED, LEARNT, PART_SHORT, REMEMBERED, WAITS_ASLEEP, WAITS_SHARED,
};
use kw_base::Tick;
use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub struct CoScheduled {
    /// How long others had the processor lately, in stretches long enough for a computation.
    computed: Duration,
    /// Stretches that are shorter.
    short: Duration,
    /// Waits left that let others run from the beginning.
    shared: u32,
    /// Waits left that sleep at once.
    asleep: u32,
    /// Waits after this rank has sent sleep at once, or did until a moment ago.
    sleeps: bool,
    /// Until when they do or did.
    asleep_until: Option<Tick>,
    /// For how long they did the last time.
    asleep_for: Duration,
}

/// How a wait begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// It polls alone.
    Alone,
    /// It polls, and lets others run between two looks.
    Shared,
    /// It sleeps.
    Asleep,
}

impl CoScheduled {
    /// Whether waits after this rank has sent sleep at once, or did until a moment ago.
    #[inline]
    pub fn sleeps(&self) -> bool {
        self.sleeps
    }

    /// A wait begins after this rank has sent something.
    pub fn beginning_after_send(&mut self, now: Tick) -> Beginning {
        self.sleeps = self.asleep_until.is_some_and(|until| now < until);
        match self.sleeps {
            true => Beginning::Asleep,
            false => Beginning::Alone,
        }
    }

    /// A wait begins.
    #[inline]
    pub fn beginning(&mut self) -> Beginning {
        let (left, beginning) = match (self.asleep, self.shared) {
            (0, 0) => return Beginning::Alone,
            (0, _) => (&mut self.shared, Beginning::Shared),
            _ => (&mut self.asleep, Beginning::Asleep),
        };
        *left -= 1;
        beginning
    }

    /// Whether there are others that compute and wait.
    #[inline]
    pub fn take_turns(&self) -> bool {
        self.shared > 0
    }

    /// A wait let others run until `now`, and they had the CPU for this long. Returns whether it and
    /// those that follow sleep instead.
    pub fn had_it(&mut self, lasted: Duration, now: Tick) -> bool {
        if self.computed + self.short > REMEMBERED {
            (self.computed, self.short) = (self.computed / 2, self.short / 2);
        }
        if lasted < COMPUTED {
            self.short += lasted;
            return false;
        }
        self.computed += lasted;
        let only_compute = self.computed >= LEARNT && self.short * PART_SHORT < self.computed;
        match only_compute {
            true => self.sleep_from(now),
            false => (self.shared, self.asleep, self.sleeps) = (WAITS_SHARED, 0, false),
        }
        only_compute
    }

    /// Waits sleep at once: for twice as long as before if they have polled for less than that since.
    fn sleep_from(&mut self, now: Tick) {
        let polled = self.asleep_until.map(|until| now.since(until));
        self.asleep_for = match polled.is_some_and(|polled| polled <= self.asleep_for) {
            true => ASLEEP[1].min(self.asleep_for * 2),
            false => ASLEEP[0],
        };
        (self.shared, self.asleep, self.sleeps) = (0, WAITS_ASLEEP, true);
        self.asleep_until = Some(now + self.asleep_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(3);
    const TURN: Duration = Duration::from_micros(2);
    const NOW: Tick = Tick(1);

    /// Start of waits after this many stretches of either kind.
    fn beginnings(others: &mut CoScheduled, waits: u32) -> Vec<Beginning> {
        (0..waits).map(|_| others.beginning()).collect()
    }

    #[test]
    fn waits_beside_nobody_poll_alone() {
        let mut others = CoScheduled::default();
        assert!(!(0..1000).any(|_| others.had_it(TURN, NOW)));
        assert_eq!(beginnings(&mut others, 3), [Beginning::Alone; 3]);
    }

    #[test]
    fn waits_beside_who_only_computes_sleep_and_now_and_then_look_whether_it_still_does() {
        let mut others = CoScheduled::default();
        assert!(others.had_it(SLICE, NOW));
        let waits = beginnings(&mut others, WAITS_ASLEEP + 1);
        assert!(waits.ends_with(&[Beginning::Asleep, Beginning::Alone]));
        assert!(others.had_it(SLICE, NOW));
        assert_eq!(others.beginning(), Beginning::Asleep);
    }

    #[test]
    fn waits_beside_who_waits_too_take_turns() {
        let mut others = CoScheduled::default();
        for _ in 0..100 {
            assert!(!(0..150).any(|_| others.had_it(TURN, NOW)));
            assert!(!others.had_it(SLICE, NOW));
            assert_eq!(others.beginning(), Beginning::Shared);
        }
        let waits = beginnings(&mut others, WAITS_SHARED);
        assert_eq!(waits.last(), Some(&Beginning::Alone));
    }

    #[test]
    fn waits_after_a_send_sleep_for_a_time_and_longer_while_the_other_computes() {
        let (mut others, mut now) = (CoScheduled::default(), NOW);
        for asleep in [20, 40, 80, 160, 320, 320] {
            assert!(others.had_it(SLICE, now));
            for _ in 1..asleep {
                now = now + Duration::from_millis(1);
                assert_eq!(
                    others.beginning_after_send(now),
                    Beginning::Asleep,
                    "{asleep}"
                );
            }
            now = now + Duration::from_millis(1);
            assert_eq!(
                others.beginning_after_send(now),
                Beginning::Alone,
                "{asleep}"
            );
            assert!(!others.sleeps());
        }
        now = now + 2 * ASLEEP[1];
        assert!(others.had_it(SLICE, now));
        now = now + ASLEEP[0];
        assert_eq!(
            others.beginning_after_send(now),
            Beginning::Alone,
            "as at first"
        );
    }
}
