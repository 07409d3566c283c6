//! Reduce after Rabenseifner: reduce-scatter by recursive halving, binomial gather to the root.
//! Every rank moves about twice the data, whatever `n` is; for long messages and commutative
//! operations. If `n` is not a power of two, the first ranks (counted from the root) pair up
//! before.

use crate::call_view::parts_of;
use crate::cost::{StepCosts, binomial_gather, binomial_up, halves};
use crate::fold::Fold;
use crate::halving::{Core, Seat};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (u, core) = (call.relative(), Core::of(call.size));
    if call.count == 0 {
        return;
    }
    if core.is_paired(u) && u % 2 == 1 {
        s.send(call.absolute(u - 1), call.input());
        return;
    }
    let home = if call.is_root() {
        call.output()
    } else {
        s.elements(call.count)
    };
    let mut fold = Fold::new(call.input(), home, true);
    if core.is_paired(u) {
        let fresh = fold.fresh(s);
        s.receive(call.absolute(u + 1), fresh);
        fold.take(s, fresh, false);
    }
    let seat = Seat {
        v: core.number(u),
        size: core.size,
        rank: &|v| call.absolute(core.first(v)),
        cut: &|all, i, j| parts_of(all, i, j, core.size),
    };
    seat.halve(fold, s, home);
    seat.collect(s, home);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, core) = (call.bytes as f64, Core::of(call.size));
    // One element cannot be halved and goes up a tree. If that costs the same as the tree of
    // `reduce binomial`, the additional step gives preference to that one.
    if call.count == 1 {
        return at.p.step + binomial_up(at, call.size, b, at.memory.combine(b));
    }
    let pair = if core.twins > 0 {
        at.down(1).one_way(b) + at.memory.combine(b)
    } else {
        0.0
    };
    let gather = binomial_gather(at, core.size, b / f64::from(core.size));
    pair + halves(at, core.size, b, |part| at.memory.combine(part)) + gather
}
