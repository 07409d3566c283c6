//! Broadcast as scatter (binomial) and allgather (recursive doubling): `2 log2 n` steps; for
//! middling messages. If `n` is not a power of two, each rank of the power of two below it passes
//! the data that it gets on to one of the others.

use super::bcast_scatter_ring::scatter;
use super::gather_binomial::span;
use crate::call_view::parts_of;
use crate::cost::{StepCosts, binomial_scatter, halves};
use crate::halving::Core;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (v, data, m) = (call.relative(), call.output(), Core::of(call.size).size);
    let cut = |(i, j): (u32, u32)| parts_of(data, i, j, m);
    if v >= m {
        for range in arrivals(v - m, m) {
            s.recv_some(call.absolute(v - m), cut(range));
        }
        return;
    }
    let pass_on = |s: &mut Schedule, range| {
        if v + m < call.size {
            s.send_some(call.absolute(v + m), cut(range));
        }
    };
    scatter(call, m, s);
    pass_on(s, (v, v + span(v, m)));
    let mut mask = 1;
    while mask < m {
        let (w, start) = (v ^ mask, |x: u32| x & !(mask - 1));
        let (mine, theirs) = ((start(v), start(v) + mask), (start(w), start(w) + mask));
        if !holds(v, mask) {
            s.recv_some(call.absolute(w), cut(theirs));
        }
        if !holds(w, mask) {
            s.send_some(call.absolute(w), cut(mine));
        }
        s.fence();
        if !holds(v, mask) {
            pass_on(s, theirs);
        }
        mask *= 2;
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, core) = (call.bytes as f64, Core::of(call.size));
    // A rank that has a twin sends it everything too.
    let twin = |part: f64| {
        if core.twins > 0 {
            at.far(at.node).gap(part)
        } else {
            0.0
        }
    };
    let on = if core.twins > 0 {
        at.far(at.node).one_way(b / 2.0)
    } else {
        0.0
    };
    let scatter = binomial_scatter(at, core.size, b / f64::from(core.size), 0.0);
    scatter + halves(at, core.size, b, twin) + on
}

/// Whether the scatter has left at relative rank `v` the data that its partner in this round has.
fn holds(v: u32, mask: u32) -> bool {
    v & (2 * mask - 1) == 0
}

/// The ranges of parts in the order in which they come to relative rank `v` of `m`.
fn arrivals(v: u32, m: u32) -> impl Iterator<Item = (u32, u32)> {
    let rounds = (0..m.ilog2())
        .map(|k| 1 << k)
        .filter(move |&mask| !holds(v, mask));
    let later = rounds.map(move |mask| {
        let start = (v ^ mask) & !(mask - 1);
        (start, start + mask)
    });
    std::iter::once((v, v + span(v, m))).chain(later)
}
