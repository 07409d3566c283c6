//! Alltoall in shared memory: every rank publishes the others' blocks in its shm buffer, and copies
//! its own from every shm buffer. Long blocks go through the long shm buffer in pieces, two or more
//! at a time. In place, a piece is published before it is overwritten.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (me, n, len) = (ask.rank as u64, ask.size as u64, ask.block_bytes);
    let send = if ask.in_place { ask.recv } else { ask.send };
    let (mine, home) = (send.block(ask.rank), ask.recv.block(ask.rank));
    if n < 2 || len == 0 {
        if !ask.in_place {
            s.copy(mine, home);
        }
        return;
    }
    let cut = Cut::blocks(ask, s, len * n, 2, n);
    let each = cut.share(n);
    for i in 0..len.div_ceil(each) {
        let (from, stage) = (i * each, i as u32 + 1);
        let piece = each.min(len - from);
        for to in (1..ask.size).map(|by| ask.after(by)) {
            let slot = cut.slot(ask.rank, i).part(to as u64 * each, piece);
            s.copy(send.block(to).part(from, piece), slot);
        }
        s.raise(stage);
        if i == 0 && !ask.in_place {
            s.copy(mine, home);
        }
        for r in (1..ask.size).map(|by| ask.after(by)) {
            s.watch(r, stage);
            let slot = cut.slot(r, i).part(me * each, piece);
            s.copy(slot, ask.recv.block(r).part(from, piece));
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::share_pieces_of(ask, 2);
    let (others, all) = (f64::from(ask.size) - 1.0, b * f64::from(ask.size));
    let each = at.memory.show_part(b, all) + at.memory.look() + at.memory.read_part(b, all);
    at.memory.copy(ask.bytes as f64) + pieces * (at.p.step + others * each)
}
