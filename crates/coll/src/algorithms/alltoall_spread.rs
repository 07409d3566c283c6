//! Alltoall in which everything is started at once, each rank beginning with its successor; for any
//! blocks (v and w forms too).

use crate::cost::Place;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    for by in 1..ask.size {
        let into = ask.recv.block(ask.before(by));
        if !into.is_empty() {
            s.recv(ask.before(by), into);
        }
    }
    for by in 1..ask.size {
        let out = ask.send.block(ask.after(by));
        if !out.is_empty() {
            s.send(ask.after(by), out);
        }
    }
    s.copy(ask.send.block(ask.rank), ask.recv.block(ask.rank));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &Place) -> f64 {
    let b = ask.bytes as f64;
    at.memory.copy(b) + at.storm(f64::from(ask.size) - 1.0, b)
}
