//! Alltoall with MPI_IN_PLACE (and its v and w forms): pairs exchange one after another, each rank
//! setting the block it sends aside first.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, n) = (call.rank, call.size);
    for round in 0..n {
        // `other` is its own partner's partner in this round.
        let other = (round + n - rank) % n;
        let block = call.recv.block(other);
        if other == rank || block.is_empty() {
            continue;
        }
        let aside = s.packed(block);
        s.copy(block, aside);
        s.recv(other, block);
        s.send(other, aside);
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    f64::from(call.size) * (at.memory.copy(b) + at.exchange(b))
}
