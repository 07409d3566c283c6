//! Reduce along a chain of ranks, the data cut into pieces that follow one another: every link is
//! busy with another piece. For long messages on a network; keeps the order of ranks (an operation
//! that does not commute ends at rank 0, which passes each piece on). The table's `/number` is the
//! number of pieces.

use crate::ask::part_of;
use crate::cost::StepCosts;
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (n, top) = (ask.size, if ask.commutative { ask.root } else { 0 });
    if ask.count == 0 {
        return;
    }
    let v = (ask.rank + n - top) % n;
    let (down, up) = ((ask.rank + n - 1) % n, (ask.rank + 1) % n);
    let pieces = (ask.param as u64).min(ask.count) as u32;
    let acc = accumulator(ask, v, s);
    let first = s.slots;
    for i in (0..pieces).filter(|_| v + 1 < n) {
        s.recv(up, part_of(acc, i, pieces));
    }
    for i in 0..pieces {
        let (mine, piece) = (part_of(ask.input(), i, pieces), part_of(acc, i, pieces));
        if v + 1 < n {
            s.wait(first + i);
            s.reduce(mine, piece);
        }
        if v > 0 {
            s.send(down, piece);
        } else if !ask.is_root() {
            s.send(ask.root, piece);
        }
    }
    if v == 0 && ask.is_root() && acc != ask.output() {
        s.copy(acc, ask.output());
    }
    if top != ask.root && ask.is_root() {
        s.fence();
        for i in 0..pieces {
            s.recv(top, part_of(ask.output(), i, pieces));
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let pieces = at.pieces(ask.size, u64::from(ask.param).min(ask.count));
    let b = ask.bytes as f64 / pieces;
    at.pipeline(ask.size, pieces, b, at.memory.combine(b))
}

/// The slices where the pieces from the ranks above arrive and our own are combined into them: the
/// last rank of the chain sends from its input as it is.
fn accumulator(ask: &Ask, v: u32, s: &mut Schedule) -> Slice {
    if v + 1 == ask.size {
        ask.input()
    } else if v == 0 && ask.is_root() && !ask.in_place {
        ask.output()
    } else {
        s.elements(ask.count)
    }
}
