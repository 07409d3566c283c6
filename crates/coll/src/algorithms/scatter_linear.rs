//! Scatter in which the root sends to all ranks at once, directly from place; also for unequal
//! blocks.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let mine = call.recv.block(0);
    if !call.is_root() {
        if !mine.is_empty() {
            s.recv(call.root, mine);
        }
        return;
    }
    for v in 1..call.size {
        let to = call.absolute(v);
        let out = call.send.block(to);
        if !out.is_empty() {
            s.send(to, out);
        }
    }
    if !call.in_place {
        s.copy(call.send.block(call.rank), mine);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    // The root sends long blocks after it has copied its own.
    let own = if at.is_long(b) {
        at.memory.copy(b)
    } else {
        0.0
    };
    own + at.fan_out(f64::from(call.size) - 1.0, b)
}
