//! Gather in shared memory: every rank publishes its block, and the root copies all blocks. Long
//! blocks go through the long shm buffer in pieces.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let mine = call.send.block(0);
    let home = call.recv.block(call.rank);
    if call.is_root() && !call.in_place {
        s.copy(mine, home);
    }
    let len = if call.is_root() { home.len } else { mine.len };
    if call.size < 2 || len == 0 {
        return;
    }
    let cut = Cut::new(call, s, len, 2);
    for i in 0..cut.pieces() {
        let stage = i as u32 + 1;
        if call.is_root() {
            for from in (1..call.size).map(|v| call.absolute(v)) {
                let into = cut.piece(call.recv.block(from), i);
                s.watch(from, stage);
                s.copy(cut.slot(from, i).part(0, into.len), into);
            }
        } else {
            if i >= cut.slots() {
                s.watch(call.root, (i - cut.slots()) as u32 + 1);
            }
            let piece = cut.piece(mine, i);
            s.copy(piece, cut.slot(call.rank, i).part(0, piece.len));
        }
        s.raise(stage);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::block_pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let shows = at.memory.show(b) + at.p.step;
    let root = others * (at.memory.look() + at.memory.read(b));
    // The root copies its own block while the others show the first piece.
    let first = shows.max(at.memory.copy(call.bytes as f64));
    first + root + (pieces - 1.0) * root.max(shows)
}
