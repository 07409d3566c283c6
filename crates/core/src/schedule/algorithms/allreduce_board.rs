//! Allreduce on a board: everybody shows its input, and combines what all show in the order of ranks. Only operations that
//! commute are combined on boards.

use crate::schedule::{Ask, Schedule, Shelf};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    if ask.size < 2 {
        return s.copy(ask.input(), ask.output());
    }
    s.shelf = Shelf::Short;
    let (shelf, out) = (|r| ask.shelf(r, ask.count), ask.output());
    s.copy(ask.input(), shelf(ask.rank));
    s.raise(1);
    for r in 0..ask.size {
        if r != ask.rank {
            s.watch(r, 1);
        }
        if r == 0 {
            s.copy(shelf(r), out);
        } else {
            s.reduce(shelf(r), out);
        }
    }
}
