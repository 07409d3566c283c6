//! Allreduce on a shm region for long messages: each rank combines its part of every piece from all
//! shm buffers, and all read the parts together. The order of ranks is kept.

use super::reduce_shm_parts;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    reduce_shm_parts::combine(call, true, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    reduce_shm_parts::cost_at_all(call, at)
}
