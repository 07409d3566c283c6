//! Allreduce as reduce to rank 0 and broadcast, both by a binomial tree: few wake-ups, in the order
//! of ranks; for short messages when ranks share cores.

use super::{bcast_binomial, reduce_binomial};
use crate::cost::{StepCosts, binomial_down, binomial_up};
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let ask = Ask { root: 0, ..*ask };
    let home = ask.output();
    reduce_binomial::fold_up(
        &ask,
        0,
        ask.input(),
        Some(home).filter(|_| ask.rank == 0),
        s,
    );
    s.fence();
    bcast_binomial::spread(ask.rank, &ask, home, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    binomial_up(at, ask.size, b, at.memory.combine(b)) + binomial_down(at, ask.size, b)
}
