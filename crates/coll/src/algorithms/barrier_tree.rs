//! Barrier by a tree of given fan-out: reports go up, the release comes down. Two messages a rank
//! and few wake-ups; best when ranks share cores.

use crate::cost::StepCosts;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    report(call, s);
    release(call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (fan, size) = (u64::from(call.param.max(1)), u64::from(call.size));
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

fn children(call: &CallView) -> std::ops::Range<u32> {
    // No more than `size`, which is a u32.
    let rank = |r: u64| r.min(u64::from(call.size.max(1))) as u32;
    let before = u64::from(call.rank) * u64::from(call.param);
    rank(before + 1)..rank(before + u64::from(call.param) + 1)
}

/// Ends at rank 0 when all have reported.
pub(super) fn report(call: &CallView, s: &mut Schedule) {
    for child in children(call) {
        s.recv(child, Slice::NOTHING);
    }
    s.fence();
    if call.rank > 0 {
        s.send((call.rank - 1) / call.param, Slice::NOTHING);
    }
}

/// Rank 0 releases all.
pub(super) fn release(call: &CallView, s: &mut Schedule) {
    if call.rank > 0 {
        s.recv((call.rank - 1) / call.param, Slice::NOTHING);
        s.fence();
    }
    for child in children(call) {
        s.send(child, Slice::NOTHING);
    }
}
