//! Allgather by neighbour exchange: `n/2` rounds in which each rank exchanges two blocks at a time
//! with its two neighbours in turn, straight into place; for an even number of processes and long
//! blocks, equal or not.

use crate::cost::StepCosts;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (rank, pairs) = (call.rank, call.size / 2);
    if !call.in_place {
        s.copy(call.send.block(0), call.recv.block(rank));
    }
    s.exchange(rank ^ 1, call.recv.block(rank), call.recv.block(rank ^ 1));
    let (mut latest, outside) = (
        rank / 2,
        if rank % 2 == 0 {
            call.before(1)
        } else {
            call.after(1)
        },
    );
    for round in 1..pairs {
        // From outside come the pairs on that side, from the rank of our own pair those on the
        // other side.
        let far = round.div_ceil(2);
        let upwards = (rank % 2 == 0) == (round % 2 == 0);
        let coming = (rank / 2 + if upwards { far } else { pairs - far }) % pairs;
        let other = if round % 2 == 1 { outside } else { rank ^ 1 };
        for into in pair(call, coming) {
            s.recv_some(other, into);
        }
        for out in pair(call, latest) {
            s.send_some(other, out);
        }
        s.fence();
        latest = coming;
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (b, rounds) = (call.bytes as f64, f64::from(call.size / 2) - 1.0);
    let two = 2.0 * b;
    let round = at.round(call.size, |at| at.exchange(two), |at| at.exchange(two));
    at.memory.copy(b) + at.near().exchange(b) + rounds.max(0.0) * round
}

/// The blocks of two ranks, as one slice if they are contiguous.
fn pair(call: &CallView, p: u32) -> [Slice; 2] {
    if call.recv.is_even() {
        [call.recv.run(2 * p, 2), Slice::NOTHING]
    } else {
        [call.recv.block(2 * p), call.recv.block(2 * p + 1)]
    }
}
