//! Barrier in shared memory by a tree of given fan-out: a rank signals when all its children have
//! signalled, and leaves when the root has signalled. For many ranks, where waiting for every other
//! rank would take too long.

use crate::cost::{StepCosts, children};
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.size < 2 {
        return;
    }
    s.use_short(0);
    for child in Tree::first(call).children(call.rank) {
        s.watch(child, 1);
    }
    s.raise(1);
    if call.rank > 0 {
        s.watch(0, 1);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let looks: u32 = children(call.param, call.size).sum();
    let rows = children(call.param, call.size).count() as f64;
    f64::from(looks) * at.memory.look()
        + (rows + 1.0) * at.p.step
        + at.memory.looks(f64::from(call.size) - 1.0)
}
