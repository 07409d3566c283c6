//! Allgather in which every rank sends its block to all others at once; for few processes.

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let rank = ask.rank;
    let own = if ask.in_place {
        ask.recv.block(rank)
    } else {
        ask.send.block(0)
    };
    for by in 1..ask.size {
        let into = ask.recv.block(ask.before(by));
        if !into.is_empty() {
            s.recv(ask.before(by), into);
        }
    }
    for by in 1..ask.size {
        if !own.is_empty() {
            s.send(ask.after(by), own);
        }
    }
    if !ask.in_place {
        s.copy(own, ask.recv.block(rank));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    at.memory.copy(b) + at.storm(f64::from(ask.size) - 1.0, b)
}
