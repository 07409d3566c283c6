//! Alltoall in which everything is started at once, each rank beginning with its successor; for any
//! blocks (v and w forms too).

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
