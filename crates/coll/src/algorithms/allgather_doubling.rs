//! Allgather by recursive doubling, straight into place; for short and middling blocks and `n` a
//! power of two.

use crate::cost::{StepCosts, halves};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, n) = (call.rank, call.size);
    if call.block_bytes == 0 {
        return;
    }
    if !call.in_place {
        s.copy(call.send.block(0), call.recv.block(rank));
    }
    let mut mask = 1;
    while mask < n {
        let other = rank ^ mask;
        let start = |x: u32| x & !(mask - 1);
        s.recv(other, call.recv.run(start(other), mask));
        s.send(other, call.recv.run(start(rank), mask));
        s.fence();
        mask *= 2;
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    at.memory.copy(b) + halves(at, call.size, b * f64::from(call.size), |_| 0.0)
}
