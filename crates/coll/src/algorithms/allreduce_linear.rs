//! Allreduce through rank 0, which receives from all, combines in the order of ranks and sends to
//! all: every other rank wakes once; for few processes that share cores.

use super::reduce_linear;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let home = call.output();
    if call.count == 0 {
        return;
    }
    if call.rank > 0 {
        s.send(0, call.input());
        s.fence();
        s.recv(0, home);
        return;
    }
    reduce_linear::fold_down(call, call.input(), home, s);
    for r in 1..call.size {
        s.send(r, home);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, others) = (call.bytes as f64, f64::from(call.size) - 1.0);
    at.fan_in(others, b, at.memory.combine(b)) + at.fan_out(others, b)
}
