//! Gather in which the root receives from all ranks at once, directly into place; also for unequal
//! blocks.

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let mine = ask.send.block(0);
    if !ask.is_root() {
        if !mine.is_empty() {
            s.send(ask.root, mine);
        }
        return;
    }
    for v in 1..ask.size {
        let from = ask.absolute(v);
        let into = ask.recv.block(from);
        if !into.is_empty() {
            s.recv(from, into);
        }
    }
    if !ask.in_place {
        s.copy(mine, ask.recv.block(ask.rank));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, others) = (ask.bytes as f64, f64::from(ask.size) - 1.0);
    // The root copies its own block while the first ones come.
    let first = at.far(1).one_way(b) - at.far(1).take(b);
    at.fan_in(others, b, 0.0) + (at.memory.copy(b) - first).max(0.0)
}
