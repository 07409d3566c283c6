//! Alltoall in which each rank fetches its blocks from the others' memory, where it may: one copy,
//! whatever cache the cores share. Otherwise it is `spread`; for any blocks.

use super::alltoall_spread;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    s.fetched = true;
    alltoall_spread::emit(call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    alltoall_spread::cost(call, &at.fetching())
}
