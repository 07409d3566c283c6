//! Barrier by a tree of given fan-out: reports go up, the release comes down. Two messages a rank
//! and few wake-ups; best when ranks share cores.

use crate::cost::StepCosts;
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    report(ask, s);
    release(ask, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (fan, size) = (u64::from(ask.param.max(1)), u64::from(ask.size));
    let both = |k: f64| at.fan_in(k, 0.0, 0.0) + at.fan_out(k, 0.0);
    let (mut rank, mut path, mut most) = (0, 0.0, 0.0f64);
    // Along the first child of every rank, which leads the deepest subtree. Children without
    // children report before the others and are released after them.
    loop {
        let first = rank * fan + 1;
        if first >= size {
            return most;
        }
        let children = fan.min(size - first);
        let leads = |c: &u64| (first + c) * fan + 1 < size;
        let deep = (0..children).take_while(leads).count() as f64;
        most = most.max(path + both(children as f64));
        path += both(deep);
        rank = first;
    }
}

fn children(ask: &Ask) -> std::ops::Range<u32> {
    // No more than `size`, which is a u32.
    let rank = |r: u64| r.min(u64::from(ask.size.max(1))) as u32;
    let before = u64::from(ask.rank) * u64::from(ask.param);
    rank(before + 1)..rank(before + u64::from(ask.param) + 1)
}

/// Ends at rank 0 when all have reported.
pub(super) fn report(ask: &Ask, s: &mut Schedule) {
    for child in children(ask) {
        s.recv(child, Slice::NOTHING);
    }
    s.fence();
    if ask.rank > 0 {
        s.send((ask.rank - 1) / ask.param, Slice::NOTHING);
    }
}

/// Rank 0 releases all.
pub(super) fn release(ask: &Ask, s: &mut Schedule) {
    if ask.rank > 0 {
        s.recv((ask.rank - 1) / ask.param, Slice::NOTHING);
        s.fence();
    }
    for child in children(ask) {
        s.send(child, Slice::NOTHING);
    }
}
