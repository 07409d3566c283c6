//! Alltoall in `n-1` rounds of one message out and one in, so that nobody is flooded; for long
//! blocks.

use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    s.copy(ask.send.block(ask.rank), ask.recv.block(ask.rank));
    for by in 1..ask.size {
        let (into, out) = (
            ask.recv.block(ask.before(by)),
            ask.send.block(ask.after(by)),
        );
        if !into.is_empty() {
            s.recv(ask.before(by), into);
        }
        if !out.is_empty() {
            s.send(ask.after(by), out);
        }
        s.fence();
    }
}
