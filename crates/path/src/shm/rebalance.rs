//! Ranks that share cores spread over them.
//!
//! Each rank notes in its rank info on which CPU it runs; [`kw_waiting::placement`] decides which
//! rank moves. The affinity is unchanged: bound ranks stay where they are, and the scheduler may
//! move any rank again.

use super::ShmPath;
use super::segment::Segment;
use kw_base::Tick;
use kw_sys::cpus;
use kw_waiting::constants::placement::FRESH;
use kw_waiting::placement::better;
use std::sync::atomic::Ordering;

/// Bits of a note that hold the CPU; the time is above.
const CPU_BITS: u32 = 16;

/// Compares where the ranks of `segment` run, and moves rank `me`, this one, if it should run
/// elsewhere.
#[cold]
fn look(segment: &Segment, me: usize, ranks: usize, now: Tick) -> bool {
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

impl ShmPath {
    /// Checks, when a comparison is due, whether this thread should run on another CPU, and moves
    /// it there. For a thread of the program, if ranks share cores. Returns whether it moved.
    #[inline]
    pub fn spread(&mut self, now: Tick) -> bool {
        if !self.comparisons.is_due(now) {
            return false;
        }
        self.comparisons.made(now);
        look(&self.segment, self.me, self.links.len(), now)
    }
}

fn note(segment: &Segment, me: usize, now: Tick, cpu: usize) {
    let cpu_slot = &segment.rank_info(me).cpu_slot;
    // It publishes nothing, and orders nothing.
    cpu_slot.store(noted(now, cpu), Ordering::Relaxed);
}

/// The CPU of every rank of the host; `None` while any rank's note is not fresh.
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

#[cfg(test)]
mod tests {
    use super::*;

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
