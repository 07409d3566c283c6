//! Reduce on a board: everybody shows its input, the root combines in the order of ranks. Nobody but the root waits; for
//! short messages and not too many ranks.

use super::reduce_board_parts;
use crate::schedule::{Ask, Schedule, Shelf, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.size < 2 || ask.count == 0 || ask.count > ask.shelf_units().0 {
        return reduce_board_parts::emit(ask, s);
    }
    s.shelf = Shelf::Short;
    let shown = ask.shelf(ask.rank, ask.count);
    if !ask.is_root() {
        s.copy(ask.input(), shown);
        s.raise(1);
        return;
    }
    let mine = if ask.in_place { shown } else { ask.input() };
    if ask.in_place {
        s.copy(ask.output(), shown);
    }
    fold(ask, mine, ask.output(), s);
}

/// Combines what all show from stage 1 on, and `mine`, into `home`.
pub fn fold(ask: &Ask, mine: Slice, home: Slice, s: &mut Schedule) {
    for r in (0..ask.size).rev() {
        let operand = if r == ask.rank {
            mine
        } else {
            s.watch(r, 1);
            ask.shelf(r, home.len)
        };
        if r == ask.size - 1 {
            s.copy(operand, home);
        } else {
            s.reduce(operand, home);
        }
    }
}
