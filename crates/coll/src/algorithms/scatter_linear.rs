//! Scatter in which the root sends to all ranks at once, directly from place; also for unequal
//! blocks.

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let mine = ask.recv.block(0);
    if !ask.is_root() {
        if !mine.is_empty() {
            s.recv(ask.root, mine);
        }
        return;
    }
    for v in 1..ask.size {
        let to = ask.absolute(v);
        let out = ask.send.block(to);
        if !out.is_empty() {
            s.send(to, out);
        }
    }
    if !ask.in_place {
        s.copy(ask.send.block(ask.rank), mine);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    // The root sends long blocks after it has copied its own.
    let own = if at.is_long(b) {
        at.memory.copy(b)
    } else {
        0.0
    };
    own + at.fan_out(f64::from(ask.size) - 1.0, b)
}
