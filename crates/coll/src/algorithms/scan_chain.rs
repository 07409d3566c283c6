//! Scan and exscan along the chain of ranks: one message a rank; fewest messages, and fewest
//! wake-ups when ranks share cores.

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule of a scan.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let (acc, last) = (ask.output(), ask.rank + 1 == ask.size);
    if ask.rank == 0 {
        if !ask.in_place {
            s.copy(ask.input(), acc);
        }
    } else {
        let before = s.elements(ask.count);
        let slot = s.recv(ask.rank - 1, before);
        if !ask.in_place {
            s.copy(ask.input(), acc);
        }
        s.wait(slot);
        s.reduce(before, acc);
    }
    if !last {
        s.send(ask.rank + 1, acc);
    }
}

/// Emits the schedule of an exscan.
pub fn emit_exclusive(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let last = ask.rank + 1 == ask.size;
    if ask.rank == 0 {
        if !last {
            s.send(1, ask.input());
        }
        return;
    }
    if last {
        s.recv(ask.rank - 1, ask.output());
        return;
    }
    // The next rank receives the incoming data combined with this rank's own.
    let on = s.elements(ask.count);
    s.copy(ask.input(), on);
    s.receive(ask.rank - 1, ask.output());
    s.reduce(ask.output(), on);
    s.send(ask.rank + 1, on);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let b = ask.bytes as f64;
    at.memory.copy(b) + at.chain(ask.size, |at| at.one_way(b) + at.memory.combine(b))
}
