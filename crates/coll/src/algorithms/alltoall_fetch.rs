//! Alltoall in which each rank fetches its blocks from the others' memory, where it may: one copy,
//! whatever cache the cores share. Otherwise it is `spread`; for any blocks.

use super::alltoall_spread;
use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    s.fetched = true;
    alltoall_spread::emit(ask, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    alltoall_spread::cost(ask, &at.fetching())
}
