//! Barrier by a tree of given fan-out: reports go up, the release comes down. Two messages a rank and few wake-ups;
//! best when ranks share cores.

use crate::schedule::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let children = ask.rank * ask.fan + 1..(ask.rank * ask.fan + ask.fan + 1).min(ask.size.max(1));
    for child in children.clone() {
        s.recv(child, Slice::NOTHING);
    }
    s.fence();
    if ask.rank > 0 {
        let parent = (ask.rank - 1) / ask.fan;
        s.recv(parent, Slice::NOTHING);
        s.send(parent, Slice::NOTHING);
        s.fence();
    }
    for child in children {
        s.send(child, Slice::NOTHING);
    }
}
