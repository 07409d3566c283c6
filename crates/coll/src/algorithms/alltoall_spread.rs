//! Alltoall in which everything is started at once, each rank beginning with its successor; for any
//! blocks (v and w forms too). If there are long blocks, only as much is started at once as may be
//! in flight to a peer: the rest would wait in queues and evict the data being copied from the
//! caches (measured on shared cores; not measured between hosts with a fast network).

use crate::cost::StepCosts;
use crate::{CallView, Schedule};
use kw_base::overheads::WINDOW;

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let others = call.size.saturating_sub(1);
    let at_once = rounds_at_once(call.own_bytes, others);
    let mut first = 1;
    while first <= others {
        let last = others.min(first.saturating_add(at_once - 1));
        start(call, s, first..=last);
        if last < others {
            s.fence();
        }
        first = last + 1;
    }
    s.copy(call.send.block(call.rank), call.recv.block(call.rank));
}

/// Starts the transfers to and from the ranks at this distance. A rank waits only for messages of
/// no later round than its own, so the ranks need not start the same number at once.
pub(super) fn start(call: &CallView, s: &mut Schedule, rounds: std::ops::RangeInclusive<u32>) {
    for by in rounds.clone() {
        let into = call.recv.block(call.before(by));
        if !into.is_empty() {
            s.recv(call.before(by), into);
        }
    }
    for by in rounds {
        let out = call.send.block(call.after(by));
        if !out.is_empty() {
            s.send(call.after(by), out);
        }
    }
}

/// Number of rounds (to one rank, and from one) that are started at once by a rank that moves this
/// many bytes in all of them.
fn rounds_at_once(bytes: u64, others: u32) -> u32 {
    let all = WINDOW.saturating_mul(u64::from(others));
    (all / bytes.max(1)).clamp(1, u64::from(others.max(1))) as u32
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let b = call.bytes as f64;
    at.memory.copy(b) + at.storm(f64::from(call.size) - 1.0, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rounds_at_once_as_fit_into_the_window_and_at_least_one() {
        let at_once = [0, WINDOW, 2 * WINDOW, 3 * WINDOW, u64::MAX].map(|b| rounds_at_once(b, 6));
        assert_eq!(at_once, [6, 6, 3, 2, 1]);
        assert_eq!((rounds_at_once(0, 0), rounds_at_once(u64::MAX, 1)), (1, 1));
    }
}
