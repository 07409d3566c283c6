//! Allreduce in shared memory: every rank publishes its input and combines all inputs in rank order
//! (so all have the same bits). Each rank waits once per piece; for short messages and not too many
//! ranks. Long data goes through the long shm buffer in pieces, two or more at a time: a rank that
//! publishes the next piece has read the last piece of every other rank.

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
    for i in 0..cut.pieces() {
        let (mine, home) = (cut.piece(input, i), cut.piece(home, i));
        let shown = cut.slot(call.rank, i).part(0, mine.len);
        s.copy(mine, shown);
        s.raise(i as u32 + 1);
        // In place, the first operand overwrites the input.
        let mine = if call.in_place { shown } else { mine };
        reduce_shm::fold(call, &cut, i, mine, home, s);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let piece = at.memory.show(b) + at.p.step + others * (at.memory.look() + at.memory.fold(b));
    pieces * piece + at.memory.convoy(others, b)
}
