//! Alltoall after Bruck: `ceil(log2 n)` rounds, each moving half of all blocks through packed
//! memory; for short blocks and many processes.

use crate::cost::StepCosts;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, n, each) = (call.rank, call.size, call.block_bytes);
    if each == 0 {
        return;
    }
    let all = s.bytes(n as u64 * each);
    let half = (n as u64).div_ceil(2) * each;
    let (out, into) = (s.bytes(half), s.bytes(half));
    let at = |i: u32| all.part(i as u64 * each, each);
    let high = (n - rank) as u64 * each;
    s.copy(call.send.run(rank, n - rank), all.part(0, high));
    s.copy(call.send.run(0, rank), all.part(high, rank as u64 * each));
    let mut mask = 1;
    while mask < n {
        let moving = |s: &mut Schedule, act: &dyn Fn(&mut Schedule, Slice, u64)| {
            let mut used = 0;
            for i in (0..n).filter(|i| i & mask != 0) {
                act(s, at(i), used);
                used += each;
            }
            used
        };
        let used = moving(s, &|s, block, to| s.copy(block, out.part(to, each)));
        s.recv(call.before(mask), into.part(0, used));
        s.send(call.after(mask), out.part(0, used));
        s.fence();
        moving(s, &|s, block, from| s.copy(into.part(from, each), block));
        mask *= 2;
    }
    for i in 0..n {
        s.copy(at(i), call.recv.block(call.before(i)));
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, n) = (call.bytes as f64, call.size);
    let mut ns = at.memory.copy(b * f64::from(n)) + at.p.step + f64::from(n) * at.memory.copy(b);
    let mut mask = 1;
    while mask < n {
        let whole = n / (2 * mask) * mask;
        let blocks = f64::from(whole + (n % (2 * mask)).saturating_sub(mask));
        ns += at.far(mask).exchange(blocks * b) + 2.0 * blocks * at.memory.copy(b);
        mask *= 2;
    }
    ns
}
