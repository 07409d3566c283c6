//! Reduce on a shm region for long messages. The data goes through the long shm buffers in pieces,
//! and each rank combines its part of every piece, so that all cores share the work; the root
//! collects the parts. The order of ranks is kept.
//!
//! All ranks work on three pieces at a time: in step `i` a rank publishes piece `i`, combines its
//! part of piece `i-1`, and collects piece `i-2`; then it signals. So there is one wait per piece,
//! and three slots are enough. A rank combines in its own memory and publishes the sum: no rank
//! writes lines that another core holds.

use crate::call_view::{part_of, parts_of};
use crate::cost::StepCosts;
use crate::cut::{self, Cut};
use crate::{CallView, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    combine(call, false, s);
}

/// Nanoseconds, as [`crate::cost`] says; of an allreduce, too.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let (pieces, b) = cut::long_pieces_of(call, 3);
    let (n, others) = (f64::from(call.size), f64::from(call.size) - 1.0);
    // Short data has fewer parts than there are ranks.
    let parts = n.min(b / call.unit_bytes().max(1) as f64).max(1.0);
    let (part, long) = (b / parts, f64::INFINITY);
    let shows = at.memory.show_part(b - part, long) + at.memory.show_part(part, long);
    let folds = others * at.memory.fold_part(part, long);
    let collects = parts.min(others) * at.memory.read_part(part, long);
    let look = at.memory.look_at_all(n);
    pieces * (shows + 2.0 * at.p.step + folds + collects + look) + look
}

/// Combines the data of all ranks at the root, or at all ranks.
pub fn combine(call: &CallView, at_all: bool, s: &mut Schedule) {
    let (input, home) = (call.input(), call.output());
    if call.only_copies(s) {
        return;
    }
    let cut = Cut::long(call, s, call.count, 3);
    let pieces = cut.pieces();
    let collects = at_all || call.is_root();
    // If the sum may not begin with the data at home, or there is no home.
    let aside = !collects || (call.in_place && !call.commutative);
    let parts = Parts {
        call,
        cut: &cut,
        shows_sum: at_all || !call.is_root(),
        collects,
        aside: aside.then(|| s.elements(cut.each().div_ceil(call.size as u64))),
    };
    let last = if collects { pieces + 1 } else { pieces };
    for i in 0..=last {
        if i > 0 {
            s.watch_all(i as u32);
        }
        if i < pieces {
            parts.show(i, cut.piece(input, i), s);
        }
        if let Some(i) = i.checked_sub(1).filter(|&i| i < pieces) {
            let into = if collects { home } else { input };
            parts.fold(i, cut.piece(input, i), cut.piece(into, i), s);
        }
        if let Some(i) = i.checked_sub(2).filter(|_| collects) {
            parts.collect(i, cut.piece(home, i), s);
        }
        if i <= pieces {
            s.raise(i as u32 + 1);
        }
    }
}

/// The ranks that combine each part of a piece, and the location of the part.
struct Parts<'a> {
    call: &'a CallView<'a>,
    cut: &'a Cut<'a>,
    /// Others need this rank's sums.
    shows_sum: bool,
    /// This rank needs all sums.
    collects: bool,
    /// Memory for a part, if it cannot be combined at home.
    aside: Option<Slice>,
}

impl Parts<'_> {
    /// Part `r` of a piece.
    fn part(&self, piece: Slice, r: u32) -> Slice {
        part_of(piece, r, self.call.size)
    }

    /// Part `r` of piece `i` of that length in the shm buffer of `on`.
    fn shown(&self, i: u64, len: u64, on: u32, r: u32) -> Slice {
        self.part(self.cut.slot(on, i).part(0, len), r)
    }

    /// Shows a piece to the ranks that combine its parts.
    fn show(&self, i: u64, piece: Slice, s: &mut Schedule) {
        let (r, n) = (self.call.rank, self.call.size);
        let slot = self.cut.slot(r, i).part(0, piece.len);
        for (from, to) in [(0, r), (r + 1, n)] {
            s.copy(parts_of(piece, from, to, n), parts_of(slot, from, to, n));
        }
    }

    /// Combines this rank's part of a piece of the input; it belongs in that piece of the result.
    fn fold(&self, i: u64, piece: Slice, result: Slice, s: &mut Schedule) {
        let (r, n) = (self.call.rank, self.call.size);
        let (own, home) = (self.part(piece, r), self.part(result, r));
        let sum = self.aside.map_or(home, |a| a.part(0, own.len));
        let shown = |q| self.shown(i, piece.len, q, r);
        if self.call.commutative && own == sum {
            for q in (1..n).map(|by| self.call.after(by)) {
                s.reduce(shown(q), sum);
            }
        } else {
            let operand = |q| if q == r { own } else { shown(q) };
            // From the last rank down, or, if order does not matter, from this rank down.
            let turn = if self.call.commutative { r } else { n - 1 };
            s.fold(n, sum, |i, _| operand((turn + n - i) % n));
        }
        if self.shows_sum {
            s.copy(sum, shown(r));
        }
        if self.collects && sum != home {
            s.copy(sum, home);
        }
    }

    /// Reads the others' parts of a combined piece.
    fn collect(&self, i: u64, piece: Slice, s: &mut Schedule) {
        for r in (1..self.call.size).map(|by| self.call.after(by)) {
            s.copy(self.shown(i, piece.len, r, r), self.part(piece, r));
        }
    }
}
