//! Scan by doubling distances: after round `k` a rank has combined the `2^(k+1)` ranks up to
//! itself. In the order of ranks, for any `n`.

use crate::cost::{Place, log2_up};
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    if !ask.in_place {
        s.copy(ask.input(), ask.output());
    }
    prefix(0, ask, ask.output(), s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &Place) -> f64 {
    let b = ask.bytes as f64;
    at.memory.copy(b) + prefix_cost(ask.size, b, at)
}

/// A scan of `n` ranks' accumulators; in the last round nobody both sends and receives.
pub fn prefix_cost(n: u32, b: f64, at: &Place) -> f64 {
    let rounds = log2_up(n);
    let round = |k: u32| {
        let at = at.far(1 << k);
        let moves = if k + 1 < rounds {
            at.exchange(b)
        } else {
            at.one_way(b)
        };
        moves + at.memory.combine(b)
    };
    (0..rounds).map(round).sum()
}

/// Inclusive scan of `acc` over the ranks from `first` on.
pub fn prefix(first: u32, ask: &Ask, acc: Slice, s: &mut Schedule) {
    let v = ask.rank - first;
    let mut fresh = None;
    let mut by = 1;
    while by < ask.size - first {
        if v >= by {
            let into = *fresh.get_or_insert_with(|| s.elements(acc.len));
            s.recv(ask.rank - by, into);
        }
        if ask.rank + by < ask.size {
            s.send(ask.rank + by, acc);
        }
        s.fence();
        if let Some(fresh) = fresh.filter(|_| v >= by) {
            s.reduce(fresh, acc);
        }
        by *= 2;
    }
}
