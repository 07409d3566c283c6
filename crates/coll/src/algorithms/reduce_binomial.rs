//! Reduce by a binomial tree; keeps the order of ranks when the operation does not commute (then
//! the tree's root is rank 0, which passes the result on).

use crate::cost::{StepCosts, binomial_up};
use crate::fold::Fold;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let top = if call.commutative { call.root } else { 0 };
    if call.count == 0 {
        return;
    }
    let ends_here = call.rank == top && call.is_root();
    let home = if ends_here { Some(call.output()) } else { None };
    let result = fold_up(call, top, call.input(), home, s);
    if top == call.root {
        return;
    }
    if call.is_root() {
        s.fence();
        s.receive(top, call.output());
    } else if call.rank == top {
        s.send(call.root, result);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    binomial_up(at, call.size, b, at.memory.combine(b))
}

/// Folds the `input` of all ranks up to `top`, where the result ends in `home` (a temporary if none
/// is given). Returns the location of this rank's share of the result. `top` is 0 unless the
/// operation commutes.
pub fn fold_up(
    call: &CallView,
    top: u32,
    input: Slice,
    home: Option<Slice>,
    s: &mut Schedule,
) -> Slice {
    let n = call.size;
    let v = (call.rank + n - top) % n;
    let leaf = v & 1 == 1 || v + 1 >= n;
    let home = match home {
        Some(home) => home,
        None if leaf => input,
        None => s.elements(call.count),
    };
    let mut fold = Fold::new(input, home, call.commutative);
    let mut mask = 1;
    while mask < n {
        if v & mask != 0 {
            s.send((v - mask + top) % n, fold.acc());
            return fold.acc();
        }
        if v + mask < n {
            let fresh = fold.fresh(s);
            s.receive((v + mask + top) % n, fresh);
            fold.take(s, fresh, false);
        }
        mask *= 2;
    }
    fold.finish(s);
    home
}
