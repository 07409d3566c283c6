//! Reduce along a chain of ranks, the data cut into pieces that follow one another: every link is
//! busy with another piece. For long messages on a network; keeps the order of ranks (an operation
//! that does not commute ends at rank 0, which passes each piece on). The table's `/number` is the
//! number of pieces.

use crate::call_view::part_of;
use crate::cost::StepCosts;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (n, top) = (call.size, if call.commutative { call.root } else { 0 });
    if call.count == 0 {
        return;
    }
    let v = (call.rank + n - top) % n;
    let (down, up) = ((call.rank + n - 1) % n, (call.rank + 1) % n);
    let pieces = (call.param as u64).min(call.count) as u32;
    let acc = accumulator(call, v, s);
    let first = s.slots;
    for i in (0..pieces).filter(|_| v + 1 < n) {
        s.recv(up, part_of(acc, i, pieces));
    }
    for i in 0..pieces {
        let (mine, piece) = (part_of(call.input(), i, pieces), part_of(acc, i, pieces));
        if v + 1 < n {
            s.wait(first + i);
            s.reduce(mine, piece);
        }
        if v > 0 {
            s.send(down, piece);
        } else if !call.is_root() {
            s.send(call.root, piece);
        }
    }
    if v == 0 && call.is_root() && acc != call.output() {
        s.copy(acc, call.output());
    }
    if top != call.root && call.is_root() {
        s.fence();
        for i in 0..pieces {
            s.recv(top, part_of(call.output(), i, pieces));
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let pieces = at.pieces(call.size, u64::from(call.param).min(call.count));
    let b = call.bytes as f64 / pieces;
    at.pipeline(call.size, pieces, b, at.memory.combine(b))
}

/// The slices where the pieces from the ranks above arrive and our own are combined into them: the
/// last rank of the chain sends from its input as it is.
fn accumulator(call: &CallView, v: u32, s: &mut Schedule) -> Slice {
    if v + 1 == call.size {
        call.input()
    } else if v == 0 && call.is_root() && !call.in_place {
        call.output()
    } else {
        s.elements(call.count)
    }
}
