//! Allreduce as ring reduce-scatter and ring allgather: every rank sends `2(n-1)/n` of the data
//! whatever `n` is; for long messages and commutative operations.

use crate::call_view::part_of;
use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, n, input, home) = (call.rank, call.size, call.input(), call.output());
    if n == 1 {
        if input != home {
            s.copy(input, home);
        }
        return;
    }
    let (next, prev) = (call.after(1), call.before(1));
    let aside = if input == home {
        Some(s.elements(call.count.div_ceil(n as u64)))
    } else {
        None
    };
    for round in 1..n {
        let (o, i) = ((rank + n - round + 1) % n, (rank + n - round) % n);
        let from = if round == 1 { input } else { home };
        let (out, mine, into) = (
            part_of(from, o, n),
            part_of(input, i, n),
            part_of(home, i, n),
        );
        let fresh = aside.map_or(into, |a| a.part(0, into.len));
        if !into.is_empty() {
            s.recv(prev, fresh);
        }
        if !out.is_empty() {
            s.send(next, out);
        }
        s.fence();
        if aside.is_some() {
            s.reduce(fresh, mine)
        } else {
            s.reduce(mine, fresh)
        }
    }
    for round in 1..n {
        let (o, i) = ((rank + n - round + 2) % n, (rank + n - round + 1) % n);
        let (out, into) = (part_of(home, o, n), part_of(home, i, n));
        if !into.is_empty() {
            s.recv(prev, into);
        }
        if !out.is_empty() {
            s.send(next, out);
        }
        s.fence();
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let part = call.bytes as f64 / f64::from(call.size);
    let round = at.round(call.size, |at| at.exchange(part), |at| at.relay(part, part));
    (f64::from(call.size) - 1.0) * (2.0 * round + at.memory.combine(part))
}
