//! Broadcast in which the root starts a send to every rank: every other rank wakes once; for few
//! processes (seeds/004).

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let data = ask.output();
    if data.is_empty() {
        return;
    }
    if !ask.is_root() {
        s.recv(ask.root, data);
        return;
    }
    for v in 1..ask.size {
        s.send(ask.absolute(v), data);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    at.fan_out(f64::from(ask.size) - 1.0, ask.bytes as f64)
}
