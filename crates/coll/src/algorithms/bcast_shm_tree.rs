//! Broadcast in shared memory by a tree of given fan-out: a rank with children republishes on its
//! own shm buffer what it has read. For short messages and many ranks, where reading one shm buffer
//! would delay all.

use crate::cost::{StepCosts, children, subtrees};
use crate::tree::Tree;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    short(&Tree::rooted(call), call, s);
}

/// Data that a short shm buffer holds, down a tree.
pub(super) fn short(tree: &Tree, call: &CallView, s: &mut Schedule) {
    let data = call.output();
    s.use_short(data.len);
    if let Some(parent) = tree.parent(call.rank) {
        s.watch(parent, 1);
        s.copy(call.shm_buffer(parent, data.len), data);
    }
    if !tree.children(call.rank).is_empty() {
        s.copy(data, call.shm_buffer(call.rank, data.len));
        s.raise(1);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    down(call.size, call.param, call.bytes as f64, |n| at.within(n))
}

/// From the root of a tree of `n` ranks to all; `among`: the prices where this many of them meet.
pub(super) fn down<'a>(mut n: u32, fan: u32, b: f64, among: impl Fn(u32) -> StepCosts<'a>) -> f64 {
    let mut ns = 0.0;
    while n > 1 {
        let at = among(n);
        let readers = children(fan, n).map(f64::from).sum();
        ns += at.memory.show(b) + at.p.step + at.memory.see(readers, b);
        let (full, last) = subtrees(fan, n);
        n = if full + last < n { full } else { last };
    }
    ns
}
