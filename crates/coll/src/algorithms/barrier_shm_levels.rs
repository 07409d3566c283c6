//! Barrier on a shm region of a host with several domains: by a tree within each domain and
//! between the heads of the domains; the root releases the other heads, and each of those releases
//! its own ranks.

use crate::cost::{StepCosts, children};
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.size < 2 {
        return;
    }
    s.use_short(0);
    let tree = Tree::first(call).by_levels(call);
    for child in tree.children(call.rank) {
        s.watch(child, 1);
    }
    s.raise(1);
    wait_for_head(&tree, call, s);
    if tree.releases(call.rank) {
        s.raise(2);
    }
}

/// Waits until this rank's head knows that the root has raised 1; every other head raises 2 then.
pub(super) fn wait_for_head(tree: &Tree, call: &CallView, s: &mut Schedule) {
    let head = tree.head(call.rank);
    if head != call.rank {
        s.watch(head, if tree.head(head) == head { 1 } else { 2 });
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let up = |(k, at): (u32, StepCosts)| {
        let looks: u32 = children(call.param, k).sum();
        let rows = children(call.param, k).count() as f64;
        f64::from(looks) * at.memory.look() + (rows + 1.0) * at.p.step
    };
    let others = |k| f64::from(k) - 1.0;
    at.levels().map(up).sum::<f64>() + at.release(0.0, others, |k, at| at.memory.looks(others(k)))
}
