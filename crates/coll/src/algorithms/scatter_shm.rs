//! Scatter in shared memory: the root copies each block into the receiver's slot; each rank copies
//! its block out. Long blocks go through the long shm buffer in pieces.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let home = ask.recv.block(0);
    let mine = ask.send.block(ask.rank);
    let len = if ask.is_root() { mine.len } else { home.len };
    if ask.size < 2 || len == 0 {
        if ask.is_root() && !ask.in_place {
            s.copy(mine, home);
        }
        return;
    }
    let cut = Cut::new(ask, s, len, 2);
    for i in 0..cut.pieces() {
        let stage = i as u32 + 1;
        if ask.is_root() {
            for to in (1..ask.size).map(|v| ask.absolute(v)) {
                if i >= cut.slots() {
                    s.watch(to, (i - cut.slots()) as u32 + 1);
                }
                let piece = cut.piece(ask.send.block(to), i);
                s.copy(piece, cut.slot(to, i).part(0, piece.len));
            }
        } else {
            s.watch(ask.root, stage);
            let into = cut.piece(home, i);
            s.copy(cut.slot(ask.rank, i).part(0, into.len), into);
        }
        s.raise(stage);
    }
    if ask.is_root() && !ask.in_place {
        s.copy(mine, home);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::block_pieces_of(ask, 2);
    let others = f64::from(ask.size) - 1.0;
    let root = others * at.memory.show(b) + at.p.step;
    let takes = at.memory.looks(others) + at.memory.read(b);
    let own = at.memory.copy(ask.bytes as f64);
    root + (pieces - 1.0) * root.max(takes) + takes.max(own)
}
