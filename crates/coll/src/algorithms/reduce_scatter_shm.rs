//! Reduce-scatter (and its block form) in shared memory: every rank publishes the others' blocks,
//! and combines its own from all shm buffers in rank order. Long data goes through the long shm
//! buffer in pieces, each with its share of every block, two or more at a time.

use crate::call_view::part_of;
use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, RECV, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (r, n) = (call.rank, call.size);
    let mine = call.send.block(r);
    let result = Slice::whole(RECV, mine.len);
    if call.count == 0 {
        return;
    }
    if n < 2 {
        if !call.in_place {
            s.copy(mine, result);
        }
        return;
    }
    // In place, the input and the result share the receive buffer: combine aside.
    let home = if call.in_place {
        s.elements(mine.len)
    } else {
        result
    };
    let cut = Cut::blocks(call, s, call.count, 2, n as u64);
    let shares = Shares::new(call, &cut);
    for i in 0..shares.pieces {
        for to in (1..n).map(|by| call.after(by)) {
            s.copy(shares.of(call.send.block(to), i), shares.shown(r, to, i));
        }
        s.raise(i + 1);
        if !mine.is_empty() {
            fold(call, &shares, i, mine, home, s);
        } else if shares.pieces > 1 {
            // A rank that publishes the next piece has seen the last piece of every rank.
            s.watch_all(i + 1);
        }
    }
    if call.in_place {
        s.copy(home, result);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::all_pieces_of(call, 2);
    let (part, others) = (b / f64::from(call.size), f64::from(call.size) - 1.0);
    let piece = at.p.step
        + others * (at.memory.show_part(part, b) + at.memory.look() + at.memory.fold_part(part, b));
    pieces * piece + at.memory.convoy(others, part)
}

/// Combines piece `i` of this rank's block.
fn fold(call: &CallView, shares: &Shares, i: u32, mine: Slice, home: Slice, s: &mut Schedule) {
    let sum = shares.of(home, i);
    s.fold(call.size, sum, |nth, s| {
        let q = call.size - 1 - nth;
        if q == call.rank {
            return shares.of(mine, i);
        }
        s.watch(q, i + 1);
        shares.shown(q, call.rank, i)
    });
}

/// How the blocks share the slots.
struct Shares<'a> {
    call: &'a CallView<'a>,
    cut: &'a Cut<'a>,
    pieces: u32,
    /// Start of each block's share in a slot.
    starts: Vec<u64>,
}

impl Shares<'_> {
    fn new<'a>(call: &'a CallView, cut: &'a Cut) -> Shares<'a> {
        let pieces = cut.pieces();
        let mut end = 0;
        let start = |b| {
            let start = end;
            end += call.send.block(b).len.div_ceil(pieces);
            start
        };
        let starts = (0..call.size).map(start).collect();
        let pieces = pieces as u32;
        Shares {
            call,
            cut,
            pieces,
            starts,
        }
    }

    fn of(&self, block: Slice, i: u32) -> Slice {
        part_of(block, i, self.pieces)
    }

    /// The slice in which `owner` shows piece `i` of the block of rank `to`.
    fn shown(&self, owner: u32, to: u32, i: u32) -> Slice {
        let len = self.of(self.call.send.block(to), i).len;
        let slot = self.cut.slot(owner, i as u64);
        slot.part(self.starts[to as usize], len)
    }
}
