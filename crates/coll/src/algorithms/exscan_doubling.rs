//! Exscan: every rank passes its data to the next rank, and the ranks from 1 on scan what they
//! received.

use super::scan_doubling;
use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 || ask.size == 1 {
        return;
    }
    let mut own = ask.input();
    if ask.in_place && ask.rank > 0 {
        let aside = s.elements(ask.count);
        s.copy(own, aside);
        own = aside;
    }
    if ask.rank > 0 {
        s.recv(ask.rank - 1, ask.output());
    }
    if ask.rank + 1 < ask.size {
        s.send(ask.rank + 1, own);
    }
    s.fence();
    if ask.rank > 0 {
        scan_doubling::prefix(1, ask, ask.output(), s);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    let passes = |at: &StepCosts| match ask.size {
        0..=2 => at.one_way(b),
        _ => at.exchange(b),
    };
    scan_doubling::hop(1, b, at, passes) + scan_doubling::prefix_cost(ask.size - 1, b, at)
}
