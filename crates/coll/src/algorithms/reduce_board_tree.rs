//! Reduce on a board by a tree of given fan-out: a rank combines what those show whom it leads, and
//! shows the result. For short messages and many ranks.

use super::reduce_board_parts;
use crate::tree::Tree;
use crate::{Ask, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.size < 2 || ask.count == 0 || ask.count > ask.shelf_units().0 {
        return reduce_board_parts::emit(ask, s);
    }
    s.use_short(ask.count);
    let home = ask.output();
    let all = fold_up(ask, s);
    let shown = ask.shelf(ask.rank, ask.count);
    if ask.rank == 0 && ask.is_root() {
        s.copy(all, home);
    } else {
        s.copy(all, shown);
        s.raise(1);
        if ask.is_root() {
            s.watch(0, 1);
            s.copy(ask.shelf(0, ask.count), home);
        }
    }
}

/// What this rank and all it leads contribute, combined; at rank 0 everything.
pub fn fold_up(ask: &Ask, s: &mut Schedule) -> Slice {
    let children = Tree::new(ask.param, ask.size).children(ask.rank);
    let Some((&last, others)) = children.split_last() else {
        return ask.input();
    };
    // The shelf of the last child is this rank's now: nobody else reads it.
    s.watch(last, 1);
    let sum = ask.shelf(last, ask.count);
    for &child in others.iter().rev() {
        s.watch(child, 1);
        s.reduce(ask.shelf(child, ask.count), sum);
    }
    s.reduce(ask.input(), sum);
    sum
}
