//! Allreduce after Rabenseifner: reduce-scatter by recursive halving, allgather by recursive
//! doubling. As few bytes as the ring in `2 log2 n` steps; for long messages and commutative
//! operations. If `n` is not a power of two, the first ranks pair up before and after.

use crate::call_view::parts_of;
use crate::cost::{StepCosts, halves};
use crate::fold::Fold;
use crate::halving::{Core, Seat};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, core, home) = (call.rank, Core::of(call.size), call.output());
    if call.count == 0 {
        return;
    }
    let mut fold = Fold::new(call.input(), home, call.commutative);
    if core.is_paired(rank) && rank % 2 == 0 {
        s.send(rank + 1, fold.acc());
        s.fence();
        s.recv(rank + 1, home);
        return;
    }
    if core.is_paired(rank) {
        let fresh = fold.fresh(s);
        s.receive(rank - 1, fresh);
        fold.take(s, fresh, true);
    }
    let seat = Seat {
        v: core.number(rank),
        size: core.size,
        rank: &|v| core.last(v),
        cut: &|all, i, j| parts_of(all, i, j, core.size),
    };
    seat.halve(fold, s, home);
    seat.double(s, home);
    if core.is_paired(rank) {
        s.send(rank - 1, home);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, core) = (call.bytes as f64, Core::of(call.size));
    let pair = if core.twins > 0 {
        2.0 * at.down(1).one_way(b) + at.memory.combine(b)
    } else {
        0.0
    };
    pair + halves(at, core.size, b, |part| at.memory.combine(part))
        + halves(at, core.size, b, |_| 0.0)
}
