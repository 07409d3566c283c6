//! Scan and exscan in shared memory, along the chain of ranks: each rank combines its input with
//! the result published by the rank below and publishes the sum. Every rank combines once, however
//! many ranks there are; long data goes through the long shm buffer in pieces.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule, Slice};

/// Emits the schedule of a scan.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.only_copies(s) {
        return;
    }
    let cut = Cut::new(call, s, call.count, 3);
    for i in 0..cut.pieces() {
        let mine = cut.piece(call.input(), i);
        let home = cut.piece(call.output(), i);
        match shown(call, &cut, i, home.len, s) {
            Some(below) if mine == home => s.reduce(below, home),
            Some(below) => s.combine(below, mine, home),
            None if mine == home => {}
            None => s.copy(mine, home),
        }
        if let Some(slot) = slot(call, &cut, i, home.len, s) {
            s.copy(home, slot);
        }
        s.raise(i as u32 + 1);
    }
}

/// Emits the schedule of an exscan.
pub fn emit_exclusive(call: &CallView, s: &mut Schedule) {
    if call.count == 0 || call.size < 2 {
        return;
    }
    let cut = Cut::new(call, s, call.count, 3);
    for i in 0..cut.pieces() {
        let mine = cut.piece(call.input(), i);
        let home = cut.piece(call.output(), i);
        let below = shown(call, &cut, i, home.len, s);
        let slot = slot(call, &cut, i, home.len, s);
        match (below, slot) {
            (None, Some(slot)) => s.copy(mine, slot),
            (Some(below), Some(slot)) => s.combine(below, mine, slot),
            _ => {}
        }
        s.raise(i as u32 + 1);
        if let Some(below) = below {
            s.copy(below, home);
        }
    }
}

/// Nanoseconds of a scan, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::pieces_of(call, 3);
    let shows = |at: &StepCosts| at.p.step + at.memory.show(b);
    let folds = |at: &StepCosts| at.memory.look() + at.memory.fold(b);
    let each = match call.size {
        2 => shows(at).max(folds(at)),
        _ => shows(at) + folds(at),
    };
    at.chain(call.size, |at| shows(at) + folds(at)) + (pieces - 1.0) * each
}

/// Nanoseconds of an exscan, as [`crate::cost`] says.
pub fn cost_exclusive(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::pieces_of(call, 3);
    let hop = |at: &StepCosts| at.p.step + at.memory.look() + at.memory.combine_into(b);
    let (first, last) = (
        at.memory.show(b) + at.p.step,
        at.memory.look() + at.memory.read(b),
    );
    let each = match call.size {
        2 => first.max(last),
        _ => hop(at) + at.memory.read(b),
    };
    first + at.chain(call.size.max(2) - 1, hop) + last + (pieces - 1.0) * each
}

/// The result of the rank below for piece `i`, if there is one.
fn shown(call: &CallView, cut: &Cut, i: u64, len: u64, s: &mut Schedule) -> Option<Slice> {
    let below = call.rank.checked_sub(1)?;
    s.watch(below, i as u32 + 1);
    Some(cut.slot(below, i).part(0, len))
}

/// The slot in which this rank shows piece `i`, if there is a rank above it: once that rank shows a
/// later piece than the one that was there.
fn slot(call: &CallView, cut: &Cut, i: u64, len: u64, s: &mut Schedule) -> Option<Slice> {
    if call.rank + 1 == call.size {
        return None;
    }
    if i >= cut.slots() {
        s.watch(call.rank + 1, (i - cut.slots()) as u32 + 2);
    }
    Some(cut.slot(call.rank, i).part(0, len))
}
