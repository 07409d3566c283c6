//! Reduce by a binomial tree; keeps the order of ranks when the operation does not commute (then
//! the tree's root is rank 0, which passes the result on).

use crate::cost::{StepCosts, binomial_up};
use crate::fold::Fold;
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let top = if ask.commutative { ask.root } else { 0 };
    if ask.count == 0 {
        return;
    }
    let ends_here = ask.rank == top && ask.is_root();
    let home = if ends_here { Some(ask.output()) } else { None };
    let result = fold_up(ask, top, ask.input(), home, s);
    if top == ask.root {
        return;
    }
    if ask.is_root() {
        s.fence();
        s.receive(top, ask.output());
    } else if ask.rank == top {
        s.send(ask.root, result);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    binomial_up(at, ask.size, b, at.memory.combine(b))
}

/// Folds the `input` of all ranks up to `top`, where the result ends in `home` (a temporary if none
/// is given). Returns the location of this rank's share of the result. `top` is 0 unless the
/// operation commutes.
pub fn fold_up(ask: &Ask, top: u32, input: Slice, home: Option<Slice>, s: &mut Schedule) -> Slice {
    let n = ask.size;
    let v = (ask.rank + n - top) % n;
    let leaf = v & 1 == 1 || v + 1 >= n;
    let home = match home {
        Some(home) => home,
        None if leaf => input,
        None => s.elements(ask.count),
    };
    let mut fold = Fold::new(input, home, ask.commutative);
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
