//! Scan by doubling distances: after round `k` a rank has combined the `2^(k+1)` ranks up to
//! itself. In the order of ranks, for any `n`.

use crate::cost::{StepCosts, log2_up};
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    if !call.in_place {
        s.copy(call.input(), call.output());
    }
    prefix(0, call, call.output(), s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    at.memory.copy(b) + prefix_cost(call.size, b, at)
}

/// A scan of `n` ranks' accumulators; in the last round no rank both sends and receives.
pub fn prefix_cost(n: u32, b: f64, at: &StepCosts) -> f64 {
    let rounds = log2_up(n);
    let round = |k: u32| {
        let moves = |at: &StepCosts| match k == 0 && !n.is_power_of_two() {
            // No rank is so far from rank 0 that it waits in every round.
            true => at.relay(b, b),
            false => at.exchange(b),
        };
        let took = match k + 1 < rounds {
            true => hop(1 << k, b, at, moves),
            false => far_hop(1 << k, b, at, |at| at.one_way(b)),
        };
        took + at.memory.combine(b)
    };
    (0..rounds).map(round).sum()
}

/// Time of the messages of all ranks to the rank at this distance. The last rank to finish waits
/// for a rank of its own node as long as one is in reach; the links carry the messages of the
/// others.
pub(super) fn hop(by: u32, b: f64, at: &StepCosts, moves: impl Fn(&StepCosts) -> f64) -> f64 {
    match by < at.node {
        true => moves(&at.near()).max(at.far(by).on_link(b)),
        false => far_hop(by, b, at, moves),
    }
}

/// The time if that rank is on another node.
fn far_hop(by: u32, b: f64, at: &StepCosts, moves: impl Fn(&StepCosts) -> f64) -> f64 {
    let (far, p) = (at.far(by), at.p);
    // The first ranks have nothing to wait for, and the messages that they send ahead occupy a link
    // before those that others wait for.
    let ahead = match by > at.node && !far.is_long(b) {
        true => far.on_link(b) - (p.net_send + p.latency + p.net_recv),
        false => 0.0,
    };
    moves(&far) + ahead.max(0.0)
}

/// Inclusive scan of `acc` over the ranks from `first` on.
pub fn prefix(first: u32, call: &CallView, acc: Slice, s: &mut Schedule) {
    let v = call.rank - first;
    let mut fresh = None;
    let mut by = 1;
    while by < call.size - first {
        if v >= by {
            let into = *fresh.get_or_insert_with(|| s.elements(acc.len));
            s.recv(call.rank - by, into);
        }
        if call.rank + by < call.size {
            s.send(call.rank + by, acc);
        }
        s.fence();
        if let Some(fresh) = fresh.filter(|_| v >= by) {
            s.reduce(fresh, acc);
        }
        by *= 2;
    }
}
