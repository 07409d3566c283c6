//! Alltoall in shared memory: every rank publishes the others' blocks in its shm buffer, and copies
//! its own from every shm buffer. Long blocks go through the long shm buffer in pieces, two or more
//! at a time. In place, a piece is published before it is overwritten.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (me, n, len) = (call.rank as u64, call.size as u64, call.block_bytes);
    let send = if call.in_place { call.recv } else { call.send };
    let (mine, home) = (send.block(call.rank), call.recv.block(call.rank));
    if n < 2 || len == 0 {
        if !call.in_place {
            s.copy(mine, home);
        }
        return;
    }
    let cut = Cut::blocks(call, s, len * n, 2, n);
    let each = cut.share(n);
    for i in 0..len.div_ceil(each) {
        let (from, stage) = (i * each, i as u32 + 1);
        let piece = each.min(len - from);
        for to in (1..call.size).map(|by| call.after(by)) {
            let slot = cut.slot(call.rank, i).part(to as u64 * each, piece);
            s.copy(send.block(to).part(from, piece), slot);
        }
        s.raise(stage);
        if i == 0 && !call.in_place {
            s.copy(mine, home);
        }
        for r in (1..call.size).map(|by| call.after(by)) {
            s.watch(r, stage);
            let slot = cut.slot(r, i).part(me * each, piece);
            s.copy(slot, call.recv.block(r).part(from, piece));
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::share_pieces_of(call, 2);
    let (others, all) = (f64::from(call.size) - 1.0, b * f64::from(call.size));
    let each = at.memory.show_part(b, all) + at.memory.look() + at.memory.read_part(b, all);
    at.memory.copy(call.bytes as f64) + pieces * (at.p.step + others * each)
}
