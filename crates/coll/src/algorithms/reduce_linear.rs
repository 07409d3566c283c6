//! Reduce in which the root receives from all ranks at once and combines from the highest rank
//! down: keeps rank order, wakes no other rank; for few processes and short messages.

use crate::cost::StepCosts;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    if !call.is_root() {
        s.send(call.root, call.input());
        return;
    }
    fold_down(call, call.input(), call.output(), s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    at.fan_in(f64::from(call.size) - 1.0, b, at.memory.combine(b))
}

/// At this rank: receives `count` elements from each rank and combines them with `input` into
/// `home`.
pub fn fold_down(call: &CallView, input: Slice, home: Slice, s: &mut Schedule) {
    let (n, me, count) = (call.size, call.rank, call.count);
    let input = if input == home && n > 1 && me != n - 1 {
        let aside = s.elements(count);
        s.copy(home, aside);
        aside
    } else {
        input
    };
    let last = n - 1;
    let inbox = s.elements(count * (n as u64).saturating_sub(1));
    let place = |r: u32| inbox.part((r - (r > me) as u32) as u64 * count, count);
    let first = s.slots;
    for r in (0..n).rev().filter(|&r| r != me) {
        s.recv(r, if r == last { home } else { place(r) });
    }
    let mut slot = first;
    for r in (0..n).rev() {
        if r != me {
            s.wait(slot);
            slot += 1;
        }
        match (r == last, r == me) {
            (true, true) if input != home => s.copy(input, home),
            (true, _) => {}
            (false, true) => s.reduce(input, home),
            (false, false) => s.reduce(place(r), home),
        }
    }
}
