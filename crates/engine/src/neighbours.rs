//! Learned behaviour of other processes on this rank's CPU that MPI does not know: other programs,
//! ranks of another job, ranks of emulated hosts.
//!
//! A wait that yields measures how long the others had the CPU. Long stretches are computations.
//! From then on waits yield from their first unsuccessful poll on, like ranks that are known to
//! share CPUs: a process that also waits yields back at once. If the other process is CPU-bound,
//! yielding is not enough: the scheduler runs it for several milliseconds. A thread woken from
//! sleep preempts it, so waits sleep at once there.
//!
//! Told by the thread that polls, with the lock held. The figures are starting values.

use kw_base::Tick;
use std::time::Duration;

/// Others that had the processor for so long, while a wait let them run, have computed and not
/// waited. The scheduler gives who computes at least 700 us (its base slice).
pub(crate) const COMPUTED: Duration = Duration::from_micros(500);
/// A CPU-bound process is recognised after this much computation.
const LEARNT: Duration = Duration::from_millis(2);
/// Others compute only where what they had in shorter stretches is less than this part.
const PART_SHORT: u32 = 16;
/// Older observations do not count.
const REMEMBERED: Duration = Duration::from_millis(100);
/// This many waits after a computation yield from the first poll on.
const WAITS_SHARED: u32 = 256;
/// How long waits next to a CPU-bound process sleep at once, at first and at most; then
/// one wait polls again and sees whether the other still computes, which costs a turn of the
/// scheduler (3 ms as a rule), so 1 % of the time in the long run.
const ASLEEP: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(320)];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// How long others had the processor lately, in stretches long enough for a computation.
    computed: Duration,
    /// Stretches that are shorter.
    short: Duration,
    /// Waits left that let others run from the beginning.
    shared: u32,
    /// Waits sleep at once, or did until a moment ago.
    asleep: bool,
    /// Until when they do or did.
    asleep_until: Option<Tick>,
    /// For how long they did the last time.
    asleep_for: Duration,
}

/// How a wait begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    /// It polls alone.
    Alone,
    /// It polls, and lets others run between two looks.
    Shared,
    /// It sleeps.
    Asleep,
}

impl Neighbours {
    /// A wait begins. The clock is read only where the last waits slept.
    #[inline]
    pub fn beginning(&mut self, now: impl FnOnce() -> Tick) -> Beginning {
        if self.asleep {
            self.asleep = self.asleep_until.is_some_and(|until| now() < until);
            if self.asleep {
                return Beginning::Asleep;
            }
        }
        if self.shared == 0 {
            return Beginning::Alone;
        }
        self.shared -= 1;
        Beginning::Shared
    }

    /// Whether there are others that compute and wait.
    #[inline]
    pub fn take_turns(&self) -> bool {
        self.shared > 0
    }

    /// A wait let others run until `now`, and they had the processor for so long. Returns whether it
    /// and those that follow sleep instead.
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
            false => (self.shared, self.asleep) = (WAITS_SHARED, false),
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
        (self.shared, self.asleep) = (0, true);
        self.asleep_until = Some(now + self.asleep_for);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_millis(3);
    const TURN: Duration = Duration::from_micros(2);
    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Start of this many waits, one a millisecond.
    fn beginnings(neighbours: &mut Neighbours, now: &mut Tick, waits: u32) -> Vec<Beginning> {
        let mut one = |_| {
            *now = *now + MILLISECOND;
            neighbours.beginning(|| *now)
        };
        (0..waits).map(&mut one).collect()
    }

    #[test]
    fn waits_beside_nobody_poll_alone() {
        let (mut neighbours, mut now) = (Neighbours::default(), Tick(1));
        assert!(!(0..1000).any(|_| neighbours.had_it(TURN, now)));
        let waits = beginnings(&mut neighbours, &mut now, 3);
        assert_eq!(waits, [Beginning::Alone; 3]);
    }

    #[test]
    fn waits_beside_who_only_computes_sleep_and_now_and_then_look_whether_it_still_does() {
        let (mut neighbours, mut now) = (Neighbours::default(), Tick(1));
        for asleep in [9, 19, 39, 79, 159, 319, 319] {
            assert!(neighbours.had_it(SLICE, now));
            let waits = beginnings(&mut neighbours, &mut now, asleep + 1);
            let (last, slept) = waits.split_last().unwrap();
            assert!(slept.iter().all(|b| *b == Beginning::Asleep), "{asleep}");
            assert_eq!(*last, Beginning::Alone, "{asleep}");
        }
        let read = || -> Tick { panic!("a wait that polls reads no clock") };
        assert_eq!(neighbours.beginning(read), Beginning::Alone);
        now = now + 2 * ASLEEP[1];
        assert!(neighbours.had_it(SLICE, now));
        let waits = beginnings(&mut neighbours, &mut now, 10);
        assert_eq!(waits.last(), Some(&Beginning::Alone), "as at first");
    }

    #[test]
    fn waits_beside_who_waits_too_take_turns() {
        let (mut neighbours, mut now) = (Neighbours::default(), Tick(1));
        for _ in 0..100 {
            assert!(!(0..150).any(|_| neighbours.had_it(TURN, now)));
            assert!(!neighbours.had_it(SLICE, now));
            assert_eq!(neighbours.beginning(|| now), Beginning::Shared);
        }
        let waits = beginnings(&mut neighbours, &mut now, WAITS_SHARED);
        assert_eq!(waits.last(), Some(&Beginning::Alone));
    }
}
