//! Allgather in which each rank fetches the others' blocks from their memory, where it may: one
//! copy, whatever cache the cores share. Otherwise it is `spread`; for any blocks.

use super::allgather_spread;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    s.fetched = true;
    allgather_spread::emit(ask, s);
}
