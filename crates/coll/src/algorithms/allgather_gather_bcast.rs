//! Allgather as gather to rank 0 and broadcast of all, binomial or (up to as many ranks as the
//! parameter says) linear: every other rank wakes about twice; for short blocks when ranks share
//! cores.

use super::bcast_binomial;
use crate::cost::{StepCosts, binomial_down};
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.block_bytes == 0 {
        return;
    }
    let ask = Ask { root: 0, ..*ask };
    let all = ask.recv.run(0, ask.size);
    if ask.rank == 0 {
        for r in 1..ask.size {
            s.recv(r, ask.recv.block(r));
        }
        if !ask.in_place {
            s.copy(ask.send.block(0), ask.recv.block(0));
        }
    } else {
        s.send(
            0,
            if ask.in_place {
                ask.recv.block(ask.rank)
            } else {
                ask.send.block(0)
            },
        );
    }
    s.fence();
    if !ask.is_flat() {
        bcast_binomial::spread(ask.rank, &ask, all, s);
    } else if ask.rank > 0 {
        s.recv(0, all);
    } else {
        for r in 1..ask.size {
            s.send(r, all);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, n) = (ask.bytes as f64, f64::from(ask.size));
    let spread = match ask.is_flat() {
        true => at.fan_out(n - 1.0, b * n),
        false => binomial_down(at, ask.size, b * n),
    };
    at.fan_in(n - 1.0, b, 0.0) + spread
}
