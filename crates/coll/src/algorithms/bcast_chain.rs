//! Broadcast along a chain of ranks, the data cut into pieces that follow one another: every link
//! carries a different piece, and no rank sends anything twice. For long messages. The table's
//! `/number` is the number of pieces.

use crate::call_view::part_of;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (v, data) = (call.relative(), call.output());
    let pieces = (call.param as u64).min(data.len) as u32;
    let first = s.slots;
    for i in (0..pieces).filter(|_| v > 0) {
        s.recv(call.before(1), part_of(data, i, pieces));
    }
    for i in (0..pieces).filter(|_| v + 1 < call.size) {
        if v > 0 {
            s.wait(first + i);
        }
        s.send(call.after(1), part_of(data, i, pieces));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let pieces = at.pieces(call.size, u64::from(call.param).min(call.bytes));
    let b = call.bytes as f64 / pieces;
    at.pipeline(call.size, pieces, b, 0.0)
}
