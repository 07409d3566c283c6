//! Reduce-scatter (and its block form) by recursive halving: `log2 n` exchanges, each of half of
//! the remaining data; for commutative operations and blocks that are not long. If `n` is not a
//! power of two, the first ranks pair up before and after.

use crate::cost::{StepCosts, halves};
use crate::fold::Fold;
use crate::halving::{Core, Seat};
use crate::{CallView, RECV, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, core) = (call.rank, Core::of(call.size));
    if call.count == 0 {
        return;
    }
    let input = Slice::whole(call.send.block(0).buf, call.count);
    let result = Slice::whole(RECV, call.send.block(rank).len);
    if core.is_paired(rank) && rank % 2 == 0 {
        s.send(rank + 1, input);
        s.fence();
        s.recv_some(rank + 1, result);
        return;
    }
    let home = s.elements(call.count);
    let mut fold = Fold::new(input, home, true);
    if core.is_paired(rank) {
        let fresh = fold.fresh(s);
        s.receive(rank - 1, fresh);
        fold.take(s, fresh, true);
    }
    let seat = Seat {
        v: core.number(rank),
        size: core.size,
        rank: &|v| core.last(v),
        cut: &|all, i, j| {
            let (from, to) = (start(call, core.first(i)), start(call, core.first(j)));
            all.part(from, to - from)
        },
    };
    seat.halve(fold, s, home);
    let block = |r: u32| home.part(start(call, r), call.send.block(r).len);
    if core.is_paired(rank) {
        s.send_some(rank - 1, block(rank - 1));
    }
    s.copy(block(rank), result);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, core) = (call.bytes as f64, Core::of(call.size));
    let part = b / f64::from(call.size);
    let pair = match core.twins {
        0 => 0.0,
        _ => at.down(1).one_way(b) + at.memory.combine(b) + at.down(1).one_way(part),
    };
    pair + halves(at, core.size, b, |half| at.memory.combine(half)) + at.memory.copy(part)
}

/// Start of the block of rank `r`; `r == size` gives the end.
fn start(call: &CallView, r: u32) -> u64 {
    if r == call.size {
        call.count
    } else {
        call.send.block(r).at as u64
    }
}
