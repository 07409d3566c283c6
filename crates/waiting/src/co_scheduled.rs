//! Learned behaviour of processes on this rank's CPU that are unknown to MPI: other programs, ranks
//! of another job, ranks of emulated hosts.
//!
//! A wait that yields measures how long the others had the CPU. Long stretches are computations.
//! From then on waits yield from their first unsuccessful poll on, like ranks that are known to
//! share CPUs: a process that also waits yields back at once. If the other process is CPU-bound,
//! yielding is not enough: the scheduler runs it for several milliseconds. A thread woken from
//! sleep preempts it, so waits sleep at once there: some of them, then one polls. While all ranks have
//! their slices at the same time, polling is faster by far, and messages of a stream gather in that
//! wait.
//!
//! For a rank with a CPU of its own; [`crate::other_programs`] is for ranks that share CPUs.
//!
//! Called by the thread that polls.

use crate::constants::co_scheduled::{
    COMPUTED, LEARNT, PART_SHORT, REMEMBERED, WAITS_ASLEEP, WAITS_SHARED,
};
use std::time::Duration;

/// See the module.
#[derive(Debug, Default)]
pub struct CoScheduled {
    /// How long others had the CPU lately, in stretches long enough for a computation.
    computed: Duration,
    /// Stretches that are shorter.
    short: Duration,
    /// Waits left that let others run from the first poll on.
    shared: u32,
    /// Waits left that sleep at once.
    asleep: u32,
}

/// How a wait begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// It polls alone.
    Alone,
    /// It polls, and lets others run between two polls.
    Shared,
    /// It sleeps.
    Asleep,
}

impl CoScheduled {
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

    /// A wait let others run, and they had the CPU for this long. Returns whether it and
    /// those that follow sleep instead.
    pub fn had_it(&mut self, lasted: Duration) -> bool {
        if self.computed + self.short > REMEMBERED {
            (self.computed, self.short) = (self.computed / 2, self.short / 2);
        }
        if lasted < COMPUTED {
            self.short += lasted;
            return false;
        }
        self.computed += lasted;
        let only_compute = self.computed >= LEARNT && self.short * PART_SHORT < self.computed;
        (self.shared, self.asleep) = match only_compute {
            true => (0, WAITS_ASLEEP),
            false => (WAITS_SHARED, 0),
        };
        only_compute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(3);
    const TURN: Duration = Duration::from_micros(2);

    /// Start of waits after this many stretches of either kind.
    fn beginnings(others: &mut CoScheduled, waits: u32) -> Vec<Beginning> {
        (0..waits).map(|_| others.beginning()).collect()
    }

    #[test]
    fn waits_beside_nobody_poll_alone() {
        let mut others = CoScheduled::default();
        assert!(!(0..1000).any(|_| others.had_it(TURN)));
        assert_eq!(beginnings(&mut others, 3), [Beginning::Alone; 3]);
    }

    #[test]
    fn waits_beside_who_only_computes_sleep_and_now_and_then_look_whether_it_still_does() {
        let mut others = CoScheduled::default();
        assert!(others.had_it(SLICE));
        let waits = beginnings(&mut others, WAITS_ASLEEP + 1);
        assert!(waits.ends_with(&[Beginning::Asleep, Beginning::Alone]));
        assert!(others.had_it(SLICE));
        assert_eq!(others.beginning(), Beginning::Asleep);
    }

    #[test]
    fn waits_beside_who_waits_too_take_turns() {
        let mut others = CoScheduled::default();
        for _ in 0..100 {
            assert!(!(0..150).any(|_| others.had_it(TURN)));
            assert!(!others.had_it(SLICE));
            assert_eq!(others.beginning(), Beginning::Shared);
        }
        let waits = beginnings(&mut others, WAITS_SHARED);
        assert_eq!(waits.last(), Some(&Beginning::Alone));
    }
}
