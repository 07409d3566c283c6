//! Broadcast along a chain of ranks, the data cut into pieces that follow one another: every link
//! carries a different piece, and no rank sends anything twice. For long messages. The table's
//! `/number` is the number of pieces.

use crate::ask::part_of;
use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (v, data) = (ask.relative(), ask.output());
    let pieces = (ask.param as u64).min(data.len) as u32;
    let first = s.slots;
    for i in (0..pieces).filter(|_| v > 0) {
        s.recv(ask.before(1), part_of(data, i, pieces));
    }
    for i in (0..pieces).filter(|_| v + 1 < ask.size) {
        if v > 0 {
            s.wait(first + i);
        }
        s.send(ask.after(1), part_of(data, i, pieces));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let pieces = at.pieces(ask.size, u64::from(ask.param).min(ask.bytes));
    let b = ask.bytes as f64 / pieces;
    at.pipeline(ask.size, pieces, b, 0.0)
}
