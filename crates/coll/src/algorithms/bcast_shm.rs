//! Broadcast in shared memory: the root writes its shm buffer, all others read it. Long data goes
//! through the long shm buffer in pieces, in as many slots as the parameter says: while the others
//! read one half of the shm buffer, the root fills the other.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let data = call.output();
    if call.size < 2 || data.is_empty() {
        return;
    }
    let cut = Cut::new(call, s, data.len, 2);
    let half = (cut.slots() / 2).max(1);
    let pieces = cut.pieces();
    for i in 0..pieces {
        let (piece, stage) = (cut.piece(data, i), i as u32 + 1);
        let slot = cut.slot(call.root, i).part(0, piece.len);
        let ends_half = (i + 1) % half == 0;
        if call.is_root() {
            // The pieces that the next half of the shm buffer held before.
            if i % half == 0 && i + half > cut.slots() {
                s.watch_all((i + half - cut.slots()) as u32);
            }
            s.copy(piece, slot);
            s.raise(stage);
        } else {
            s.watch(call.root, stage);
            s.copy(slot, piece);
            if ends_half && i + 1 < pieces {
                s.raise(stage);
            }
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let (root, reader) = (at.memory.show(b) + at.p.step, at.memory.see(others, b));
    root + reader + (pieces - 1.0) * root.max(at.memory.keep_reading(others, b))
}
