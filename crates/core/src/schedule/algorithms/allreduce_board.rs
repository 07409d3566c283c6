//! Allreduce on a board: everybody shows its input, and combines what all show, from the last rank down to the first.

use crate::schedule::{Ask, Schedule, Shelf};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    if ask.size < 2 {
        if !ask.in_place {
            s.copy(ask.input(), ask.output());
        }
        return;
    }
    s.shelf = Shelf::Short;
    let (shelf, out) = (|r| ask.shelf(r, ask.count), ask.output());
    s.copy(ask.input(), shelf(ask.rank));
    s.raise(1);
    for r in (0..ask.size).rev() {
        if r != ask.rank {
            s.watch(r, 1);
        }
        if r + 1 == ask.size {
            s.copy(shelf(r), out);
        } else {
            s.reduce(shelf(r), out);
        }
    }
}
