//! Gather in which the root receives from all ranks at once, directly into place; also for unequal
//! blocks.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let mine = call.send.block(0);
    if !call.is_root() {
        if !mine.is_empty() {
            s.send(call.root, mine);
        }
        return;
    }
    for v in 1..call.size {
        let from = call.absolute(v);
        let into = call.recv.block(from);
        if !into.is_empty() {
            s.recv(from, into);
        }
    }
    if !call.in_place {
        s.copy(mine, call.recv.block(call.rank));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, others) = (call.bytes as f64, f64::from(call.size) - 1.0);
    // The root copies its own block while the first ones come.
    let first = at.far(1).one_way(b) - at.far(1).take(b);
    at.fan_in(others, b, 0.0) + (at.memory.copy(b) - first).max(0.0)
}
