//! Allgather by recursive doubling, straight into place; for short and middling blocks and `n` a
//! power of two.

use crate::cost::{StepCosts, halves};
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (rank, n) = (ask.rank, ask.size);
    if ask.block_bytes == 0 {
        return;
    }
    if !ask.in_place {
        s.copy(ask.send.block(0), ask.recv.block(rank));
    }
    let mut mask = 1;
    while mask < n {
        let other = rank ^ mask;
        let start = |x: u32| x & !(mask - 1);
        s.recv(other, ask.recv.run(start(other), mask));
        s.send(other, ask.recv.run(start(rank), mask));
        s.fence();
        mask *= 2;
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    at.memory.copy(b) + halves(at, ask.size, b * f64::from(ask.size), |_| 0.0)
}
