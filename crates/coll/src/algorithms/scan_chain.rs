//! Scan and exscan along the chain of ranks: one message a rank; fewest messages, and fewest
//! wake-ups when ranks share cores.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule of a scan.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let (acc, last) = (call.output(), call.rank + 1 == call.size);
    if call.rank == 0 {
        if !call.in_place {
            s.copy(call.input(), acc);
        }
    } else {
        let before = s.elements(call.count);
        let slot = s.recv(call.rank - 1, before);
        if !call.in_place {
            s.copy(call.input(), acc);
        }
        s.wait(slot);
        s.reduce(before, acc);
    }
    if !last {
        s.send(call.rank + 1, acc);
    }
}

/// Emits the schedule of an exscan.
pub fn emit_exclusive(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let last = call.rank + 1 == call.size;
    if call.rank == 0 {
        if !last {
            s.send(1, call.input());
        }
        return;
    }
    if last {
        s.recv(call.rank - 1, call.output());
        return;
    }
    // The next rank receives the incoming data combined with this rank's own.
    let on = s.elements(call.count);
    s.copy(call.input(), on);
    s.receive(call.rank - 1, call.output());
    s.reduce(call.output(), on);
    s.send(call.rank + 1, on);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    at.memory.copy(b) + at.chain(call.size, |at| at.one_way(b) + at.memory.combine(b))
}
