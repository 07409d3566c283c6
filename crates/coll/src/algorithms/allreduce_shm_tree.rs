//! Allreduce in shared memory by a tree of given fan-out: a rank combines the data of its children
//! and publishes the result; all read it from the root. For short messages and many ranks, where
//! combining everything on every rank is too much work.

use super::reduce_shm_tree;
use crate::cost::StepCosts;
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    s.use_short(call.count);
    let all = reduce_shm_tree::fold_up(&Tree::first(call), call, s);
    s.copy(all, call.shm_buffer(call.rank, call.count));
    s.raise(1);
    if call.rank > 0 {
        s.watch(0, 1);
    }
    s.copy(call.shm_buffer(0, call.count), call.output());
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, others) = (call.bytes as f64, f64::from(call.size) - 1.0);
    let root = at.memory.fold(b) + at.p.step;
    reduce_shm_tree::up(call, at) + root + at.memory.see(others, b)
}
