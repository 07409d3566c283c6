//! Allgather round a ring, straight into place: `n-1` steps, each rank exchanges data with its
//! neighbours only; for long or unequal blocks.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, n) = (call.rank, call.size);
    if !call.in_place {
        s.copy(call.send.block(0), call.recv.block(rank));
    }
    for round in 1..n {
        let out = call.recv.block(call.before(round - 1));
        let into = call.recv.block(call.before(round));
        if !into.is_empty() {
            s.recv(call.before(1), into);
        }
        if !out.is_empty() {
            s.send(call.after(1), out);
        }
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    let round = at.round(call.size, |at| at.exchange(b), |at| at.relay(b, b));
    at.memory.copy(b) + (f64::from(call.size) - 1.0) * round
}
