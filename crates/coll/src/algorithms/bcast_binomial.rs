//! Broadcast by a binomial tree: `ceil(log2 n)` hops of the whole message; for short messages.

use crate::cost::{StepCosts, binomial_down};
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    spread(call.relative(), call, call.output(), s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    binomial_down(at, call.size, call.bytes as f64)
}

/// Spreads `data` from the root to all; `v` is this rank counted from the root.
pub fn spread(v: u32, call: &CallView, data: Slice, s: &mut Schedule) {
    if data.is_empty() {
        return;
    }
    let mut mask = 1;
    while mask < call.size {
        if v & mask != 0 {
            s.receive(call.absolute(v - mask), data);
            break;
        }
        mask *= 2;
    }
    while mask > 1 {
        mask /= 2;
        if v + mask < call.size {
            s.send(call.absolute(v + mask), data);
        }
    }
}
