//! Ranks that share CPUs spread over them.
//!
//! Ranks that wait for each other in short turns yield and hardly ever sleep. The scheduler then
//! leaves them where the last wake-ups put them: it balances busy CPUs seldom, and takes each rank
//! for one whose cache is warm. Four ranks on two cores were seen to run three on one and one on
//! the other for 130 ms and more, a collective taking 1.5 times as long.
//!
//! So a rank that polls without success, or ends a collective, notes on which CPU it runs. While the
//! notes of all ranks of the host are fresh, so that none computes or sleeps for long, and a CPU has
//! at least two ranks more than another one, the last of its ranks moves there.

use crate::constants::collectives::{LONG_CALL, SHORT_CALLS};
use crate::constants::placement::EVERY;
use kw_base::Tick;

/// When a rank compares the placement of the ranks.
#[derive(Debug, Default)]
pub struct Comparisons {
    next: Tick,
}

impl Comparisons {
    /// Whether a comparison is due.
    #[inline]
    pub fn is_due(&self, now: Tick) -> bool {
        now >= self.next
    }

    /// Notes that a comparison is made.
    pub fn made(&mut self, now: Tick) {
        self.next = now + EVERY;
    }
}

/// The CPU to which rank `me` should move, if all run on these CPUs.
pub fn better(
    me: usize,
    running_on: &[usize],
    allowed: impl FnOnce() -> Vec<usize>,
) -> Option<usize> {
    let on = |cpu| running_on.iter().filter(|s| **s == cpu).count();
    let here = running_on[me];
    // One at a time: the last of a CPU's ranks.
    if on(here) < 2 || running_on[me + 1..].contains(&here) {
        return None;
    }
    let there = allowed().into_iter().min_by_key(|c| on(*c))?;
    (on(there) + 2 <= on(here)).then_some(there)
}

/// Blocking collectives since the last comparison: a rank for which the others always wait never
/// polls without success.
#[derive(Debug, Default)]
pub struct Calls {
    ended: u32,
}

impl Calls {
    /// A call that moved this many bytes has ended. Returns whether the rank has to compare.
    #[inline]
    pub fn ended(&mut self, bytes: u64) -> bool {
        self.ended += 1;
        let compares = self.ended >= SHORT_CALLS || bytes >= LONG_CALL;
        if compares {
            self.ended = 0;
        }
        compares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets all ranks compare in turn until none moves any more.
    fn settle(mut running_on: Vec<usize>, cpus: &[usize]) -> Vec<usize> {
        for _ in 0..running_on.len() {
            for me in 0..running_on.len() {
                if let Some(cpu) = better(me, &running_on, || cpus.to_vec()) {
                    running_on[me] = cpu;
                }
            }
        }
        running_on
    }

    #[test]
    fn the_last_of_a_crowd_moves_to_the_emptiest_processor() {
        let to = |me, running_on: &[usize]| better(me, running_on, || vec![0, 1]);
        assert_eq!(to(2, &[0, 0, 0, 1]), Some(1));
        assert_eq!(to(0, &[0, 0, 0, 1]), None, "one at a time");
        assert_eq!(to(3, &[0, 0, 0, 1]), None, "alone");
        assert_eq!(to(3, &[0, 1, 0, 1]), None, "even");
        assert_eq!(to(2, &[0, 1, 0]), None, "as even as can be");
        assert_eq!(better(2, &[0, 0, 0], || vec![0]), None, "bound");
    }

    #[test]
    fn ranks_end_up_even_wherever_they_were() {
        for n in 2..20 {
            for cpus in [&[0, 1][..], &[3, 5, 9], &[0, 1, 2, 3]] {
                let running_on = settle(vec![cpus[0]; n], cpus);
                let on = |c| running_on.iter().filter(|s| **s == c).count();
                let counts: Vec<usize> = cpus.iter().map(|c| on(*c)).collect();
                let (least, most) = (counts.iter().min(), counts.iter().max());
                assert!(most <= least.map(|l| l + 1).as_ref(), "{counts:?}");
            }
        }
    }

    #[test]
    fn long_calls_compare_at_once_and_short_ones_now_and_then() {
        let mut calls = Calls::default();
        let compared = (0..10 * SHORT_CALLS).filter(|_| calls.ended(8)).count();
        assert_eq!(compared, 10);
        assert!(calls.ended(LONG_CALL));
    }
}
