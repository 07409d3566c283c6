//! Barrier in shared memory by a tree of given fan-out: a rank signals when all its children have
//! signalled, and leaves when the root has signalled. For many ranks, where waiting for every other
//! rank would take too long.

use crate::cost::{StepCosts, children};
use crate::tree::Tree;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.size < 2 {
        return;
    }
    s.use_short(0);
    for child in Tree::first(ask).children(ask.rank) {
        s.watch(child, 1);
    }
    s.raise(1);
    if ask.rank > 0 {
        s.watch(0, 1);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let looks: u32 = children(ask.param, ask.size).sum();
    let rows = children(ask.param, ask.size).count() as f64;
    f64::from(looks) * at.memory.look()
        + (rows + 1.0) * at.p.step
        + at.memory.looks(f64::from(ask.size) - 1.0)
}
