//! Broadcast by a binomial tree: `ceil(log2 n)` hops of the whole message; for short messages.

use crate::cost::{StepCosts, binomial_down};
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    spread(ask.relative(), ask, ask.output(), s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    binomial_down(at, ask.size, ask.bytes as f64)
}

/// Spreads `data` from the root to all; `v` is this rank counted from the root.
pub fn spread(v: u32, ask: &Ask, data: Slice, s: &mut Schedule) {
    if data.is_empty() {
        return;
    }
    let mut mask = 1;
    while mask < ask.size {
        if v & mask != 0 {
            s.receive(ask.absolute(v - mask), data);
            break;
        }
        mask *= 2;
    }
    while mask > 1 {
        mask /= 2;
        if v + mask < ask.size {
            s.send(ask.absolute(v + mask), data);
        }
    }
}
