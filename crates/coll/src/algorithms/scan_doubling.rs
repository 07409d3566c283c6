//! Scan by doubling distances: after round `k` a rank has combined the `2^(k+1)` ranks up to
//! itself. In the order of ranks, for any `n`.

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
