//! Allreduce on a shm region of a host with several domains: as `shm_tree` within each domain and
//! then between their heads; the heads read the result from the root and show it to their own. For
//! short messages.

use super::barrier_shm_levels::wait_for_head;
use super::{reduce_shm_levels, reduce_shm_tree};
use crate::cost::StepCosts;
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    s.use_short(call.count);
    let tree = Tree::first(call).by_levels(call);
    let here = call.shm_buffer(call.rank, call.count);
    let all = reduce_shm_tree::fold_up(&tree, call, s);
    s.copy(all, here);
    s.raise(1);
    wait_for_head(&tree, call, s);
    let from = call.shm_buffer(tree.head(call.rank), call.count);
    if tree.releases(call.rank) {
        s.copy(from, here);
        s.raise(2);
    }
    s.copy(from, call.output());
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    let readers = |k| f64::from(k) - 1.0;
    let shows = |at: &StepCosts| at.memory.show(b) + at.p.step;
    let see = |k, at: &StepCosts| shows(at) + at.memory.see(readers(k), b);
    // The root combines while the others copy.
    reduce_shm_levels::up(call, at) + at.memory.fold(b) + at.p.step - shows(at)
        + at.release(b, readers, see)
}
