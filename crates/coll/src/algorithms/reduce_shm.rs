//! Reduce in shared memory: every rank publishes its input, the root combines them in rank order.
//! Long data goes through the long shm buffer in pieces: while the root combines one half of the
//! shm buffer, the others fill the other. For short messages and not too many ranks, and for long
//! ones on two ranks, where the root of one call publishes the pieces of the next while it is not
//! needed.

use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (input, home) = (call.input(), call.output());
    if call.only_copies(s) {
        return;
    }
    let cut = Cut::new(call, s, call.count, 2);
    let half = (cut.slots() / 2).max(1);
    let pieces = cut.pieces();
    // In place, the first operand would overwrite the input, unless that is the first operand.
    let keeps = call.is_root() && call.in_place && !call.commutative && call.rank + 1 < call.size;
    let aside = keeps.then(|| s.elements(cut.each()));
    for i in 0..pieces {
        let (stage, ends_half) = (i as u32 + 1, (i + 1) % half == 0);
        let mine = cut.piece(input, i);
        if call.is_root() {
            let mine = match aside {
                Some(aside) => {
                    let kept = aside.part(0, mine.len);
                    s.copy(mine, kept);
                    kept
                }
                None => mine,
            };
            fold(call, &cut, i, mine, cut.piece(home, i), s);
            if ends_half && i + 1 < pieces {
                s.raise(stage);
            }
        } else {
            // The pieces that the next half of the shm buffer held before.
            if i % half == 0 && i + half > cut.slots() {
                s.watch(call.root, (i + half - cut.slots()) as u32);
            }
            s.copy(mine, cut.slot(call.rank, i).part(0, mine.len));
            s.raise(stage);
        }
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::pieces_of(call, 2);
    let others = f64::from(call.size) - 1.0;
    let (shows, root) = (
        at.memory.show(b) + at.p.step,
        others * (at.memory.look() + at.memory.fold(b)),
    );
    shows + root + (pieces - 1.0) * root.max(shows)
}

/// Combines piece `i` of the data that all others show, and `mine`, in the order of ranks, into
/// `home`. If `mine` is there already, it is the first operand.
pub fn fold(call: &CallView, cut: &Cut, i: u64, mine: Slice, home: Slice, s: &mut Schedule) {
    let operand = |r: u32, s: &mut Schedule| {
        if r == call.rank {
            return mine;
        }
        s.watch(r, i as u32 + 1);
        cut.slot(r, i).part(0, home.len)
    };
    if mine != home {
        return s.fold(call.size, home, |nth, s| operand(call.size - 1 - nth, s));
    }
    for r in (0..call.size).rev().filter(|&r| r != call.rank) {
        let left = operand(r, s);
        s.reduce(left, home);
    }
}
