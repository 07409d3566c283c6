//! Barrier by dissemination: in round `k` every rank signals the rank `2^k` further round the ring.
//! `ceil(log2 n)` rounds for every rank; best when every rank has a core.

use crate::cost::{StepCosts, log2_up};
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let mut step = 1;
    while step < call.size {
        s.recv(call.before(step), Slice::NOTHING);
        s.send(call.after(step), Slice::NOTHING);
        s.fence();
        step *= 2;
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let round = |k: u32| at.far(1 << k).exchange(0.0);
    (0..log2_up(call.size)).map(round).sum()
}
