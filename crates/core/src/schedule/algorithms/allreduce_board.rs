//! Allreduce on a board: everybody shows its input, and combines what all show in the order of ranks (so all have the same
//! bits). Each rank waits once; for short messages and not too many ranks.

use super::{allreduce_board_parts, reduce_board};
use crate::schedule::{Ask, Schedule, Shelf};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.size < 2 || ask.count == 0 || ask.count > ask.shelf_units().0 {
        return allreduce_board_parts::emit(ask, s);
    }
    s.shelf = Shelf::Short;
    let shown = ask.shelf(ask.rank, ask.count);
    s.copy(ask.input(), shown);
    s.raise(1);
    // In place, the first operand overwrites the input.
    let mine = if ask.in_place { shown } else { ask.input() };
    reduce_board::fold(ask, mine, ask.output(), s);
}
