//! Allgather after Bruck: `ceil(log2 n)` rounds for any `n`, through packed memory; for short
//! blocks.

use crate::cost::StepCosts;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (rank, n, each) = (ask.rank, ask.size, ask.block_bytes);
    if each == 0 {
        return;
    }
    let own = if ask.in_place {
        ask.recv.block(rank)
    } else {
        ask.send.block(0)
    };
    let all = s.bytes(n as u64 * each);
    s.copy(own, all.part(0, each));
    let mut have = 1;
    while have < n {
        let more = have.min(n - have) as u64 * each;
        s.recv(ask.after(have), all.part(have as u64 * each, more));
        s.send(ask.before(have), all.part(0, more));
        s.fence();
        have = (2 * have).min(n);
    }
    let high = (n - rank) as u64 * each;
    s.copy(all.part(0, high), ask.recv.run(rank, n - rank));
    s.copy(all.part(high, rank as u64 * each), ask.recv.run(0, rank));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, n) = (ask.bytes as f64, ask.size);
    let mut ns = at.memory.copy(b) + at.memory.copy(b * f64::from(n)) + at.p.step;
    let mut have = 1;
    while have < n {
        ns += at.far(have).exchange(f64::from(have.min(n - have)) * b);
        have = (2 * have).min(n);
    }
    ns
}
