//! Allgather after Bruck: `ceil(log2 n)` rounds for any `n`, through packed memory; for short
//! blocks.

use crate::cost::StepCosts;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, n, each) = (call.rank, call.size, call.block_bytes);
    if each == 0 {
        return;
    }
    let own = if call.in_place {
        call.recv.block(rank)
    } else {
        call.send.block(0)
    };
    let all = s.bytes(n as u64 * each);
    s.copy(own, all.part(0, each));
    let mut have = 1;
    while have < n {
        let more = have.min(n - have) as u64 * each;
        s.recv(call.after(have), all.part(have as u64 * each, more));
        s.send(call.before(have), all.part(0, more));
        s.fence();
        have = (2 * have).min(n);
    }
    let high = (n - rank) as u64 * each;
    s.copy(all.part(0, high), call.recv.run(rank, n - rank));
    s.copy(all.part(high, rank as u64 * each), call.recv.run(0, rank));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, n) = (call.bytes as f64, call.size);
    let mut ns = at.memory.copy(b) + at.memory.copy(b * f64::from(n)) + at.p.step;
    let mut have = 1;
    while have < n {
        ns += at.far(have).exchange(f64::from(have.min(n - have)) * b);
        have = (2 * have).min(n);
    }
    ns
}
