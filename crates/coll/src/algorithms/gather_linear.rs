//! Gather in which the root receives from everybody at once, straight into place; also for unequal
//! blocks.

use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let mine = ask.send.block(0);
    if !ask.is_root() {
        if !mine.is_empty() {
            s.send(ask.root, mine);
        }
        return;
    }
    for v in 1..ask.size {
        let from = ask.absolute(v);
        let into = ask.recv.block(from);
        if !into.is_empty() {
            s.recv(from, into);
        }
    }
    if !ask.in_place {
        s.copy(mine, ask.recv.block(ask.rank));
    }
}
