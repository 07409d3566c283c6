//! Allgather in which every rank sends its block to all others at once; for few processes.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let rank = call.rank;
    let own = if call.in_place {
        call.recv.block(rank)
    } else {
        call.send.block(0)
    };
    for by in 1..call.size {
        let into = call.recv.block(call.before(by));
        if !into.is_empty() {
            s.recv(call.before(by), into);
        }
    }
    for by in 1..call.size {
        if !own.is_empty() {
            s.send(call.after(by), own);
        }
    }
    if !call.in_place {
        s.copy(own, call.recv.block(rank));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    at.memory.copy(b) + at.storm(f64::from(call.size) - 1.0, b)
}
