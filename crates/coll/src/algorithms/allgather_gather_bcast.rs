//! Allgather as gather to rank 0 and broadcast of all, binomial or (up to as many ranks as the
//! parameter says) linear: every other rank wakes about twice; for short blocks when ranks share
//! cores.

use super::bcast_binomial;
use crate::cost::{StepCosts, binomial_down};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.block_bytes == 0 {
        return;
    }
    let call = CallView { root: 0, ..*call };
    let all = call.recv.run(0, call.size);
    if call.rank == 0 {
        for r in 1..call.size {
            s.recv(r, call.recv.block(r));
        }
        if !call.in_place {
            s.copy(call.send.block(0), call.recv.block(0));
        }
    } else {
        s.send(
            0,
            if call.in_place {
                call.recv.block(call.rank)
            } else {
                call.send.block(0)
            },
        );
    }
    s.fence();
    if !call.is_flat() {
        bcast_binomial::spread(call.rank, &call, all, s);
    } else if call.rank > 0 {
        s.recv(0, all);
    } else {
        for r in 1..call.size {
            s.send(r, all);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, n) = (call.bytes as f64, f64::from(call.size));
    let spread = match call.is_flat() {
        true => at.fan_out(n - 1.0, b * n),
        false => binomial_down(at, call.size, b * n),
    };
    at.fan_in(n - 1.0, b, 0.0) + spread
}
