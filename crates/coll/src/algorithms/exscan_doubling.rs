//! Exscan: every rank passes its data to the next rank, and the ranks from 1 on scan what they
//! received.

use super::scan_doubling;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 || call.size == 1 {
        return;
    }
    let mut own = call.input();
    if call.in_place && call.rank > 0 {
        let aside = s.elements(call.count);
        s.copy(own, aside);
        own = aside;
    }
    if call.rank > 0 {
        s.recv(call.rank - 1, call.output());
    }
    if call.rank + 1 < call.size {
        s.send(call.rank + 1, own);
    }
    s.fence();
    if call.rank > 0 {
        scan_doubling::prefix(1, call, call.output(), s);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    let passes = |at: &StepCosts| match call.size {
        0..=2 => at.one_way(b),
        _ => at.exchange(b),
    };
    scan_doubling::hop(1, b, at, passes) + scan_doubling::prefix_cost(call.size - 1, b, at)
}
