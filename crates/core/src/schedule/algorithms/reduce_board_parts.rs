//! Reduce on a board for long messages. The data goes through the long shelves in pieces, and each rank combines its part of
//! every piece, so that all cores share the work; the root collects the parts. The order of ranks is kept.
//!
//! All work on three pieces at a time: in step `i` a rank shows piece `i`, combines its part of piece `i-1`, and collects
//! piece `i-2`; then it raises. So there is one wait a piece, and three slots are enough.

use crate::schedule::ask::{part_of, parts_of};
use crate::schedule::cut::Cut;
use crate::schedule::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    combine(ask, ask.is_root(), s);
}

/// Combines everybody's data; whoever `collects` has the result in the end.
pub fn combine(ask: &Ask, collects: bool, s: &mut Schedule) {
    let (input, home) = (ask.input(), ask.output());
    if ask.count == 0 {
        return;
    }
    if ask.size < 2 {
        if input != home {
            s.copy(input, home);
        }
        return;
    }
    let cut = Cut::long(ask, s, 3, 1);
    let pieces = cut.pieces(ask.count);
    let last = if collects { pieces + 1 } else { pieces };
    for i in 0..=last {
        if i > 0 {
            s.watch_all(i as u32);
        }
        if i < pieces {
            show(ask, &cut, i, cut.piece(input, i), s);
        }
        if let Some(i) = i.checked_sub(1).filter(|&i| i < pieces) {
            fold(ask, &cut, i, cut.piece(input, i), s);
        }
        if let Some(i) = i.checked_sub(2).filter(|_| collects) {
            collect(ask, &cut, i, cut.piece(home, i), s);
        }
        if i <= pieces {
            s.raise(i as u32 + 1);
        }
    }
}

/// The rank on whose shelf part `r` is combined.
fn seat(ask: &Ask, r: u32) -> u32 {
    if ask.commutative {
        (r + 1) % ask.size
    } else {
        ask.size - 1
    }
}

/// Part `r` of piece `i` on the shelf of `on`.
fn shown(ask: &Ask, cut: &Cut, i: u64, len: u64, on: u32, r: u32) -> Slice {
    part_of(cut.slot(on, i).part(0, len), r, ask.size)
}

/// Shows a piece, but for the own part where nobody needs it on the shelf.
fn show(ask: &Ask, cut: &Cut, i: u64, piece: Slice, s: &mut Schedule) {
    let (r, n) = (ask.rank, ask.size);
    let slot = cut.slot(r, i).part(0, piece.len);
    if seat(ask, r) == r {
        return s.copy(piece, slot);
    }
    for (from, to) in [(0, r), (r + 1, n)] {
        s.copy(parts_of(piece, from, to, n), parts_of(slot, from, to, n));
    }
}

/// Combines this rank's part of a piece on its seat.
fn fold(ask: &Ask, cut: &Cut, i: u64, piece: Slice, s: &mut Schedule) {
    let (r, seat) = (ask.rank, seat(ask, ask.rank));
    let sum = shown(ask, cut, i, piece.len, seat, r);
    for q in (0..ask.size).rev().filter(|&q| q != seat) {
        let operand = if q == r {
            part_of(piece, r, ask.size)
        } else {
            shown(ask, cut, i, piece.len, q, r)
        };
        s.reduce(operand, sum);
    }
}

/// Reads all parts of a combined piece.
fn collect(ask: &Ask, cut: &Cut, i: u64, piece: Slice, s: &mut Schedule) {
    for r in 0..ask.size {
        let sum = shown(ask, cut, i, piece.len, seat(ask, r), r);
        s.copy(sum, part_of(piece, r, ask.size));
    }
}
