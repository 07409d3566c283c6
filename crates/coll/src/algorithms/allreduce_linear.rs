//! Allreduce through rank 0, which receives from all, combines in the order of ranks and sends to
//! all: every other rank wakes once; for few processes that share cores.

use super::reduce_linear;
use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let home = ask.output();
    if ask.count == 0 {
        return;
    }
    if ask.rank > 0 {
        s.send(0, ask.input());
        s.fence();
        s.recv(0, home);
        return;
    }
    reduce_linear::fold_down(ask, ask.input(), home, s);
    for r in 1..ask.size {
        s.send(r, home);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, others) = (ask.bytes as f64, f64::from(ask.size) - 1.0);
    at.fan_in(others, b, at.memory.combine(b)) + at.fan_out(others, b)
}
