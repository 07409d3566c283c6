//! Reduce-scatter (and its block form) in `n-1` rounds in which each rank sends one block of its
//! input to the rank that needs it; for commutative operations.

use crate::cost::StepCosts;
use crate::fold::Fold;
use crate::{CallView, RECV, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let mine = call.send.block(call.rank);
    let result = Slice::whole(RECV, mine.len);
    // In place, the input and the result share the receive buffer: combine aside.
    let home = if call.in_place {
        s.elements(mine.len)
    } else {
        result
    };
    let mut fold = Fold::new(mine, home, true);
    for by in 1..call.size {
        let out = call.send.block(call.after(by));
        let fresh = if mine.is_empty() {
            Slice::NOTHING
        } else {
            fold.fresh(s)
        };
        if !mine.is_empty() {
            s.recv(call.before(by), fresh);
        }
        if !out.is_empty() {
            s.send(call.after(by), out);
        }
        s.fence();
        if !mine.is_empty() {
            fold.take(s, fresh, false);
        }
    }
    if mine.is_empty() {
        return;
    }
    fold.finish(s);
    if call.in_place {
        s.copy(home, result);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (n, part) = (
        f64::from(call.size),
        call.bytes as f64 / f64::from(call.size),
    );
    (n - 1.0) * (at.far(at.node).exchange(part) + at.memory.combine(part))
}
