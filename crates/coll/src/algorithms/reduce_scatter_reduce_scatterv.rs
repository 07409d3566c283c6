//! Reduce-scatter as reduce to rank 0 (in the order of ranks; linear up to the parameter) and
//! linear scatter; for operations that do not commute, and for short messages when ranks share
//! cores.

use super::{reduce_binomial, reduce_linear};
use crate::cost::{StepCosts, binomial_up};
use crate::{Ask, RECV, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let (rank, n) = (ask.rank, ask.size);
    let whole = Slice::whole(ask.send.block(0).buf, ask.count);
    let home = if rank == 0 {
        Some(s.elements(ask.count))
    } else {
        None
    };
    let mine = Slice::whole(RECV, ask.send.block(rank).len);
    match home {
        Some(home) if ask.is_flat() => reduce_linear::fold_down(ask, whole, home, s),
        None if ask.is_flat() => {
            s.send(0, whole);
        }
        _ => {
            reduce_binomial::fold_up(ask, 0, whole, home, s);
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
        let part = all.part(from, ask.send.block(r).len);
        from += part.len;
        if r == 0 {
            s.copy(part, mine);
        } else if !part.is_empty() {
            s.send(r, part);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, others) = (ask.bytes as f64, f64::from(ask.size) - 1.0);
    let up = match ask.is_flat() {
        true => at.fan_in(others, b, at.memory.combine(b)),
        false => binomial_up(at, ask.size, b, at.memory.combine(b)),
    };
    up + at.fan_out(others, b / f64::from(ask.size))
}
