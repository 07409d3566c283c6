//! Ranks that share cores spread over them.
//!
//! Ranks that wait for each other in short turns yield and hardly ever sleep. The scheduler then
//! leaves them where the last wake-ups put them: it balances busy CPUs seldom, and takes each rank
//! for one whose cache is warm. Four ranks on two cores were seen to run three on one and one on
//! the other for 130 ms and more, a collective taking 1.5 times as long.
//!
//! So a rank that polls without success, or ends a collective, notes in its rank info, every
//! [`EVERY`], on which CPU it runs. While the notes of all ranks of the host are fresh, so that
//! none computes or sleeps for long, and a CPU has at least two ranks more than another one, the
//! last of its ranks moves there. Its affinity is unchanged: bound ranks stay where they are, and
//! the scheduler may move any rank again.

use super::ShmPath;
use super::segment::Segment;
use kw_base::Tick;
use kw_sys::cpus;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time between two looks of a rank.
const EVERY: Duration = Duration::from_millis(2);
/// Notes are fresh for so long, in units of 2^20 ns.
const FRESH: u64 = 32;
/// Bits of a note that hold the CPU; the moment is above.
const CPU_BITS: u32 = 16;

/// When this rank looks how ranks are on CPUs.
#[derive(Debug, Default)]
pub(super) struct Rebalance {
    next_look: Tick,
}

impl Rebalance {
    /// Whether it is time to look.
    #[inline]
    fn is_due(&self, now: Tick) -> bool {
        now >= self.next_look
    }

    /// Looks how the ranks of `segment` lie, and moves rank `me`, this one, where it had better be.
    #[cold]
    fn look(&mut self, segment: &Segment, me: usize, ranks: usize, now: Tick) -> bool {
        self.next_look = now + EVERY;
        note(segment, me, now, cpus::current());
        let Some(running_on) = processors(segment, ranks, now) else {
            return false;
        };
        let Some(cpu) = better(me, &running_on, cpus::allowed) else {
            return false;
        };
        let moved = cpus::move_to(cpu);
        if moved {
            note(segment, me, now, cpu);
        }
        moved
    }
}

impl ShmPath {
    /// Looks, when it is time to, whether this thread had better run on another CPU, and moves
    /// there. For a thread of the program, where ranks share cores. Says whether it moved.
    #[inline]
    pub fn spread(&mut self, now: Tick) -> bool {
        let (rebalance, ranks) = (&mut self.rebalance, self.links.len());
        rebalance.is_due(now) && rebalance.look(&self.segment, self.me, ranks, now)
    }
}

fn note(segment: &Segment, me: usize, now: Tick, cpu: usize) {
    let cpu_slot = &segment.rank_info(me).cpu_slot;
    // It publishes nothing, and orders nothing.
    cpu_slot.store(noted(now, cpu), Ordering::Relaxed);
}

/// The CPU of every rank of the host; `None` while some rank's note is not fresh.
fn processors(segment: &Segment, ranks: usize, now: Tick) -> Option<Vec<usize>> {
    let cpu_slot = |i| segment.rank_info(i).cpu_slot.load(Ordering::Relaxed);
    (0..ranks).map(|i| read(cpu_slot(i), now)).collect()
}

fn noted(now: Tick, cpu: usize) -> u64 {
    (now.0 >> 20) << CPU_BITS | (cpu as u64 & ((1 << CPU_BITS) - 1))
}

/// The CPU of a note that is fresh.
fn read(note: u64, now: Tick) -> Option<usize> {
    let age = (now.0 >> 20).saturating_sub(note >> CPU_BITS);
    (age <= FRESH).then_some((note & ((1 << CPU_BITS) - 1)) as usize)
}

/// Where rank `me` had better go, when all run on these CPUs.
fn better(me: usize, running_on: &[usize], allowed: impl FnOnce() -> Vec<usize>) -> Option<usize> {
    let on = |cpu| running_on.iter().filter(|s| **s == cpu).count();
    let here = running_on[me];
    // One at a time: the last of a CPU's ranks.
    if on(here) < 2 || running_on[me + 1..].contains(&here) {
        return None;
    }
    let there = allowed().into_iter().min_by_key(|c| on(*c))?;
    (on(there) + 2 <= on(here)).then_some(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets all ranks look in turn until none moves any more.
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
    fn notes_are_read_while_they_are_fresh() {
        let at = |ms: u64| Tick(ms << 20);
        assert_eq!(read(noted(at(700), 5), at(700 + FRESH)), Some(5));
        assert_eq!(read(noted(at(700), 5), at(701 + FRESH)), None);
        assert_eq!(
            read(noted(at(700), 5), at(690)),
            Some(5),
            "another's clock was read later"
        );
        assert_eq!(read(0, at(700)), None, "never noted");
    }
}
