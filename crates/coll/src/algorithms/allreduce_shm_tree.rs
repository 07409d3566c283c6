//! Allreduce in shared memory by a tree of given fan-out: a rank combines the data of its children
//! and publishes the result; all read it from the root. For short messages and many ranks, where
//! combining everything on every rank is too much work.

use super::reduce_shm_tree;
use crate::cost::StepCosts;
use crate::tree::Tree;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    s.use_short(ask.count);
    let all = reduce_shm_tree::fold_up(&Tree::first(ask), ask, s);
    s.copy(all, ask.shm_buffer(ask.rank, ask.count));
    s.raise(1);
    if ask.rank > 0 {
        s.watch(0, 1);
    }
    s.copy(ask.shm_buffer(0, ask.count), ask.output());
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, others) = (ask.bytes as f64, f64::from(ask.size) - 1.0);
    let root = at.memory.fold(b) + at.p.step;
    reduce_shm_tree::up(ask, at) + root + at.memory.see(others, b)
}
