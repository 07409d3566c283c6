//! Reduce-scatter as reduce to rank 0 (in the order of ranks; linear up to the parameter) and
//! linear scatter; for operations that do not commute, and for short messages when ranks share
//! cores.

use super::{reduce_binomial, reduce_linear};
use crate::cost::{StepCosts, binomial_up};
use crate::{CallView, RECV, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let (rank, n) = (call.rank, call.size);
    let whole = Slice::whole(call.send.block(0).buf, call.count);
    let home = if rank == 0 {
        Some(s.elements(call.count))
    } else {
        None
    };
    let mine = Slice::whole(RECV, call.send.block(rank).len);
    match home {
        Some(home) if call.is_flat() => reduce_linear::fold_down(call, whole, home, s),
        None if call.is_flat() => {
            s.send(0, whole);
        }
        _ => {
            reduce_binomial::fold_up(call, 0, whole, home, s);
        }
    }
    s.fence();
    let Some(all) = home else {
        if !mine.is_empty() {
            s.recv(0, mine);
        }
        return;
    };
    let mut from = 0;
    for r in 0..n {
        let part = all.part(from, call.send.block(r).len);
        from += part.len;
        if r == 0 {
            s.copy(part, mine);
        } else if !part.is_empty() {
            s.send(r, part);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, others) = (call.bytes as f64, f64::from(call.size) - 1.0);
    let up = match call.is_flat() {
        true => at.fan_in(others, b, at.memory.combine(b)),
        false => binomial_up(at, call.size, b, at.memory.combine(b)),
    };
    up + at.fan_out(others, b / f64::from(call.size))
}
