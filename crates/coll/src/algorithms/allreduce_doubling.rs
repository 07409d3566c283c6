//! Allreduce by recursive doubling: `ceil(log2 n)` exchanges of the whole data, in the order of
//! ranks; for short messages. If `n` is not a power of two, the first ranks pair up before and
//! after.

use crate::cost::StepCosts;
use crate::fold::Fold;
use crate::halving::Core;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let rank = call.rank;
    if call.count == 0 {
        return;
    }
    let core = Core::of(call.size);
    let mut fold = Fold::new(call.input(), call.output(), call.commutative);
    if core.is_paired(rank) && rank % 2 == 0 {
        s.send(rank + 1, fold.acc());
        s.fence();
        s.recv(rank + 1, call.output());
        return;
    }
    if core.is_paired(rank) {
        let fresh = fold.fresh(s);
        s.receive(rank - 1, fresh);
        fold.take(s, fresh, true);
    }
    let v = core.number(rank);
    let mut mask = 1;
    while mask < core.size {
        let other = core.last(v ^ mask);
        let fresh = fold.fresh(s);
        s.recv(other, fresh);
        s.send(other, fold.acc());
        s.fence();
        fold.take(s, fresh, other < rank);
        mask *= 2;
    }
    fold.finish(s);
    if core.is_paired(rank) {
        s.send(rank - 1, call.output());
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, core) = (call.bytes as f64, Core::of(call.size));
    let pair = at.down(1);
    let pair = if core.twins > 0 {
        2.0 * pair.one_way(b) + at.memory.combine(b)
    } else {
        0.0
    };
    let round = |k: u32| at.across(1 << k).exchange(b) + at.memory.combine(b);
    pair + (0..core.size.ilog2()).map(round).sum::<f64>()
}
