//! Broadcast as scatter (binomial) and allgather (ring): every byte crosses each rank about twice;
//! for long messages.

use crate::call_view::{part_of, parts_of};
use crate::cost::{StepCosts, binomial_scatter};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (v, n, data) = (call.relative(), call.size, call.output());
    scatter(call, n, s);
    for round in 1..n {
        let out = part_of(data, (v + n - round + 1) % n, n);
        let into = part_of(data, (v + n - round) % n, n);
        // The root has all data already; its predecessor need not send to it.
        if v != 0 && !holds(v, (v + n - round) % n, n) && !into.is_empty() {
            s.recv(call.before(1), into);
        }
        let next = (v + 1) % n;
        if next != 0 && !holds(next, (v + n - round + 1) % n, n) && !out.is_empty() {
            s.send(call.after(1), out);
        }
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let part = call.bytes as f64 / f64::from(call.size);
    let round = at.round(call.size, |at| at.exchange(part), |at| at.relay(part, part));
    binomial_scatter(at, call.size, part, 0.0) + (f64::from(call.size) - 1.0) * round
}

/// Scatters `m` parts of the data to the first `m` ranks, counted from the root, by a binomial
/// tree; this rank is one of them. A rank gets the parts of its whole subtree.
pub(super) fn scatter(call: &CallView, m: u32, s: &mut Schedule) {
    let (v, data) = (call.relative(), call.output());
    let mut mask = 1;
    while mask < m && v & mask == 0 {
        mask *= 2;
    }
    if mask < m {
        let mine = parts_of(data, v, (v + mask).min(m), m);
        if !mine.is_empty() {
            s.receive(call.absolute(v - mask), mine);
        }
    }
    while mask > 1 {
        mask /= 2;
        let theirs = parts_of(data, (v + mask).min(m), (v + 2 * mask).min(m), m);
        if !theirs.is_empty() {
            s.send(call.absolute(v + mask), theirs);
        }
    }
    s.fence();
}

/// Whether the scatter has left part `i` at relative rank `v`.
fn holds(v: u32, i: u32, n: u32) -> bool {
    let span = if v == 0 { n } else { 1 << v.trailing_zeros() };
    i >= v && i - v < span
}
