//! Reduce in shared memory by a tree of given fan-out: a rank combines the data of its children and
//! publishes the result. For short messages and many ranks.

use crate::cost::{StepCosts, children, subtrees};
use crate::tree::Tree;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    short(&Tree::first(call), call, s);
}

/// Data that a short shm buffer holds, up a tree whose root is rank 0.
pub(super) fn short(tree: &Tree, call: &CallView, s: &mut Schedule) {
    s.use_short(call.count);
    let home = call.output();
    let all = fold_up(tree, call, s);
    let shown = call.shm_buffer(call.rank, call.count);
    if call.rank == 0 && call.is_root() {
        s.copy(all, home);
    } else {
        s.copy(all, shown);
        s.raise(1);
        if call.is_root() {
            s.watch(0, 1);
            s.copy(call.shm_buffer(0, call.count), home);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    at.memory.copy(call.bytes as f64) + up(call, at)
}

/// Time until rank 0 has everything.
pub fn up(call: &CallView, at: &StepCosts) -> f64 {
    let shows = at.memory.show(call.bytes as f64) + at.p.step;
    shows + fold_cost(call.size, call, at)
}

/// Time from when all ranks show their input until the root of a tree of `n` ranks has everything.
pub(super) fn fold_cost(n: u32, call: &CallView, at: &StepCosts) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let b = call.bytes as f64;
    // The sum is in the shm buffer of the last child: combining writes there.
    let own = at.memory.combine_into(b);
    let each = at.memory.look() + at.memory.fold_into(b);
    let (full, last) = subtrees(call.param, n);
    let deepest = if full + last < n { full } else { last };
    let children: f64 = children(call.param, n).map(f64::from).sum();
    let below = fold_cost(deepest, call, at);
    let passed_on = if deepest > 1 {
        at.memory.read(b) + at.p.step
    } else {
        0.0
    };
    below + passed_on + at.memory.look() + (children - 1.0) * each + own
}

/// The combined contribution of this rank and all its descendants, one level after the other; at
/// rank 0 everything.
pub fn fold_up(tree: &Tree, call: &CallView, s: &mut Schedule) -> Slice {
    let mut own = call.input();
    for children in tree.children_by_level(call.rank) {
        let Some((&last, others)) = children.split_last() else {
            continue;
        };
        // The shm buffer of the last child now belongs to this rank: no other rank reads it.
        s.watch(last, 1);
        let sum = call.shm_buffer(last, call.count);
        for &child in others.iter().rev() {
            s.watch(child, 1);
            s.reduce(call.shm_buffer(child, call.count), sum);
        }
        s.reduce(own, sum);
        own = sum;
    }
    own
}
