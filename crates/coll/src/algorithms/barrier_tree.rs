//! Barrier by a tree of given fan-out: reports go up, the release comes down. Two messages a rank
//! and few wake-ups; best when ranks share cores.

use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    report(ask, s);
    release(ask, s);
}

fn children(ask: &Ask) -> std::ops::Range<u32> {
    ask.rank * ask.param + 1..(ask.rank * ask.param + ask.param + 1).min(ask.size.max(1))
}

/// Ends at rank 0 when all have come.
pub(super) fn report(ask: &Ask, s: &mut Schedule) {
    for child in children(ask) {
        s.recv(child, Slice::NOTHING);
    }
    s.fence();
    if ask.rank > 0 {
        s.send((ask.rank - 1) / ask.param, Slice::NOTHING);
    }
}

/// Rank 0 lets all go.
pub(super) fn release(ask: &Ask, s: &mut Schedule) {
    if ask.rank > 0 {
        s.recv((ask.rank - 1) / ask.param, Slice::NOTHING);
        s.fence();
    }
    for child in children(ask) {
        s.send(child, Slice::NOTHING);
    }
}
