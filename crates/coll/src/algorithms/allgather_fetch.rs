//! Allgather in which each rank fetches the others' blocks from their memory, where it may: one
//! copy, whatever cache the cores share. Otherwise it is `spread`; for any blocks.

use super::allgather_spread;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    s.fetched = true;
    allgather_spread::emit(call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    allgather_spread::cost(call, &at.fetching())
}
