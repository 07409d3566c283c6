//! Allreduce in shared memory by one rank: every rank publishes its input, the last rank combines
//! them in rank order and publishes the result, which all read. Two waits per piece, but the data
//! is combined once, not by every rank: for middle sizes on shared cores.

use super::reduce_shm;
use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (input, home) = (call.input(), call.output());
    if call.only_copies(s) {
        return;
    }
    let cut = Cut::new(call, s, call.count, 2);
    // In place its input is the first operand, which may be overwritten.
    let root = call.size - 1;
    let result = |i| cut.slot(root, i).part(0, cut.piece(home, i).len);
    if call.rank == root {
        for i in 0..cut.pieces() {
            let home = cut.piece(home, i);
            reduce_shm::fold(call, &cut, i, cut.piece(input, i), home, s);
            // A rank that publishes piece i has read the result before the last, whose slot this
            // is.
            s.copy(home, result(i));
            s.raise(i as u32 + 1);
        }
        return;
    }
    let read = |i: u64, s: &mut Schedule| {
        s.watch(root, i as u32 + 1);
        s.copy(result(i), cut.piece(home, i));
    };
    for i in 0..cut.pieces() {
        let mine = cut.piece(input, i);
        s.copy(mine, cut.slot(call.rank, i).part(0, mine.len));
        s.raise(i as u32 + 1);
        if i > 0 {
            read(i - 1, s);
        }
    }
    read(cut.pieces() - 1, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let root = others * (at.memory.look() + at.memory.fold(b)) + at.memory.show(b) + at.p.step;
    let reader = at.memory.show(b) + at.p.step + at.memory.see(others, b);
    reader + root + (pieces - 1.0) * root.max(reader)
}
