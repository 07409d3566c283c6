//! Alltoall in `n-1` rounds of one message out and one in, so that no rank is flooded; for long
//! blocks.

use super::alltoall_spread;
use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    s.copy(ask.send.block(ask.rank), ask.recv.block(ask.rank));
    for by in 1..ask.size {
        alltoall_spread::start(ask, s, by..=by);
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, others) = (ask.bytes as f64, f64::from(ask.size) - 1.0);
    let near = f64::from(at.node - 1);
    // In round `k`, `k` ranks of a node exchange data with another node.
    let between = (others - near) * at.far(at.node).exchange(b);
    let inside = near * at.far(at.node / 2 + 1).exchange(b);
    at.memory.copy(b) + between + inside
}
