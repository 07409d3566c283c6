//! Scatter in shared memory: the root copies each block into the receiver's slot; each rank copies
//! its block out. Long blocks go through the long shm buffer in pieces.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let home = call.recv.block(0);
    let mine = call.send.block(call.rank);
    let len = if call.is_root() { mine.len } else { home.len };
    if call.size < 2 || len == 0 {
        if call.is_root() && !call.in_place {
            s.copy(mine, home);
        }
        return;
    }
    let cut = Cut::new(call, s, len, 2);
    for i in 0..cut.pieces() {
        let stage = i as u32 + 1;
        if call.is_root() {
            for to in (1..call.size).map(|v| call.absolute(v)) {
                if i >= cut.slots() {
                    s.watch(to, (i - cut.slots()) as u32 + 1);
                }
                let piece = cut.piece(call.send.block(to), i);
                s.copy(piece, cut.slot(to, i).part(0, piece.len));
            }
        } else {
            s.watch(call.root, stage);
            let into = cut.piece(home, i);
            s.copy(cut.slot(call.rank, i).part(0, into.len), into);
        }
        s.raise(stage);
    }
    if call.is_root() && !call.in_place {
        s.copy(mine, home);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::block_pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let root = others * at.memory.show(b) + at.p.step;
    let takes = at.memory.looks(others) + at.memory.read(b);
    let own = at.memory.copy(call.bytes as f64);
    root + (pieces - 1.0) * root.max(takes) + takes.max(own)
}
