//! Allreduce as reduce to rank 0 and broadcast, both by a binomial tree: few wake-ups, in the order
//! of ranks; for short messages when ranks share cores.

use super::{bcast_binomial, reduce_binomial};
use crate::cost::{StepCosts, binomial_down, binomial_up};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let call = CallView { root: 0, ..*call };
    let home = call.output();
    reduce_binomial::fold_up(
        &call,
        0,
        call.input(),
        Some(home).filter(|_| call.rank == 0),
        s,
    );
    s.fence();
    bcast_binomial::spread(call.rank, &call, home, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    binomial_up(at, call.size, b, at.memory.combine(b)) + binomial_down(at, call.size, b)
}
