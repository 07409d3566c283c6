//! Alltoall in `n-1` rounds of one message out and one in, so that no rank is flooded; for long
//! blocks.

use super::alltoall_spread;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    s.copy(call.send.block(call.rank), call.recv.block(call.rank));
    for by in 1..call.size {
        alltoall_spread::start(call, s, by..=by);
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, others) = (call.bytes as f64, f64::from(call.size) - 1.0);
    let near = f64::from(at.node - 1);
    // In round `k`, `k` ranks of a node exchange data with another node.
    let between = (others - near) * at.far(at.node).exchange(b);
    let inside = near * at.far(at.node / 2 + 1).exchange(b);
    at.memory.copy(b) + between + inside
}
