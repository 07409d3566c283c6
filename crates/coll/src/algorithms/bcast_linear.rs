//! Broadcast in which the root starts a send to every rank: every other rank wakes once; for few
//! processes (seeds/004).

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let data = call.output();
    if data.is_empty() {
        return;
    }
    if !call.is_root() {
        s.recv(call.root, data);
        return;
    }
    for v in 1..call.size {
        s.send(call.absolute(v), data);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    at.fan_out(f64::from(call.size) - 1.0, call.bytes as f64)
}
