//! Allgather in shared memory: every rank publishes its block and copies the others' blocks. Long
//! blocks go through the long shm buffer in pieces, two or more at a time: a rank that publishes
//! the next piece has read the last piece of every other rank.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let home = call.recv.block(call.rank);
    let mine = if call.in_place {
        home
    } else {
        call.send.block(0)
    };
    if call.size < 2 || mine.is_empty() {
        if !call.in_place {
            s.copy(mine, home);
        }
        return;
    }
    let cut = Cut::new(call, s, mine.len, 2);
    for i in 0..cut.pieces() {
        let (piece, stage) = (cut.piece(mine, i), i as u32 + 1);
        s.copy(piece, cut.slot(call.rank, i).part(0, piece.len));
        s.raise(stage);
        if i == 0 && !call.in_place {
            s.copy(mine, home);
        }
        for from in (1..call.size).map(|by| call.after(by)) {
            let into = cut.piece(call.recv.block(from), i);
            s.watch(from, stage);
            s.copy(cut.slot(from, i).part(0, into.len), into);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::block_pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let piece = at.memory.show(b) + at.p.step + others * (at.memory.look() + at.memory.read(b));
    at.memory.copy(call.bytes as f64) + pieces * piece
}
