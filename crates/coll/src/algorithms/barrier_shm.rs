//! Barrier in shared memory: every rank signals, and every rank waits for all others. One cache
//! line of each rank moves; when ranks share cores, each needs its core once.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.size < 2 {
        return;
    }
    s.use_short(0);
    s.raise(1);
    s.watch_all(1);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    at.p.step + at.memory.look_at_all(f64::from(call.size))
}
