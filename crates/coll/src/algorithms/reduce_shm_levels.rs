//! Reduce on a shm region of a host with several domains: as `shm_tree` within each domain, and
//! then between the heads of the domains. For short messages.

use super::reduce_shm_tree::{fold_cost, short};
use crate::cost::StepCosts;
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    short(&Tree::first(call).by_levels(call), call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    at.memory.copy(call.bytes as f64) + up(call, at)
}

/// Time until rank 0 has everything.
pub(super) fn up(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    let fold = |(k, at): (u32, StepCosts)| fold_cost(k, call, &at);
    // Heads pass on the result of their domain.
    let passed_on = |(_, at): (u32, StepCosts)| at.memory.read(b) + at.p.step;
    at.memory.show(b)
        + at.p.step
        + at.levels().map(fold).sum::<f64>()
        + at.levels().skip(1).map(passed_on).sum::<f64>()
}
