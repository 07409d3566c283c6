//! Allreduce on a shm region for long messages: each rank combines its part of every piece from all
//! shm buffers, and all read the parts together. The order of ranks is kept.

use super::reduce_shm_parts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    reduce_shm_parts::combine(call, true, s);
}
