//! Allgather round a ring, straight into place: `n-1` steps, each rank exchanges data with its
//! neighbours only; for long or unequal blocks.

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (rank, n) = (ask.rank, ask.size);
    if !ask.in_place {
        s.copy(ask.send.block(0), ask.recv.block(rank));
    }
    for round in 1..n {
        let out = ask.recv.block(ask.before(round - 1));
        let into = ask.recv.block(ask.before(round));
        if !into.is_empty() {
            s.recv(ask.before(1), into);
        }
        if !out.is_empty() {
            s.send(ask.after(1), out);
        }
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    let round = at.round(ask.size, |at| at.exchange(b), |at| at.relay(b, b));
    at.memory.copy(b) + (f64::from(ask.size) - 1.0) * round
}
