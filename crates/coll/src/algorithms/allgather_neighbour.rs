//! Allgather by neighbour exchange: `n/2` rounds in which each rank exchanges two blocks at a time
//! with its two neighbours in turn, straight into place; for an even number of processes and long
//! blocks, equal or not.

use crate::cost::StepCosts;
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (rank, pairs) = (ask.rank, ask.size / 2);
    if !ask.in_place {
        s.copy(ask.send.block(0), ask.recv.block(rank));
    }
    s.exchange(rank ^ 1, ask.recv.block(rank), ask.recv.block(rank ^ 1));
    let (mut latest, outside) = (
        rank / 2,
        if rank % 2 == 0 {
            ask.before(1)
        } else {
            ask.after(1)
        },
    );
    for round in 1..pairs {
        // From outside come the pairs on that side, from the rank of our own pair those on the
        // other side.
        let far = round.div_ceil(2);
        let upwards = (rank % 2 == 0) == (round % 2 == 0);
        let coming = (rank / 2 + if upwards { far } else { pairs - far }) % pairs;
        let other = if round % 2 == 1 { outside } else { rank ^ 1 };
        for into in pair(ask, coming) {
            s.recv_some(other, into);
        }
        for out in pair(ask, latest) {
            s.send_some(other, out);
        }
        s.fence();
        latest = coming;
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (b, rounds) = (ask.bytes as f64, f64::from(ask.size / 2) - 1.0);
    let two = 2.0 * b;
    let round = at.round(ask.size, |at| at.exchange(two), |at| at.exchange(two));
    at.memory.copy(b) + at.near().exchange(b) + rounds.max(0.0) * round
}

/// The blocks of two ranks, as one slice if they are contiguous.
fn pair(ask: &Ask, p: u32) -> [Slice; 2] {
    if ask.recv.is_even() {
        [ask.recv.run(2 * p, 2), Slice::NOTHING]
    } else {
        [ask.recv.block(2 * p), ask.recv.block(2 * p + 1)]
    }
}
