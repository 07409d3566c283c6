//! Broadcast on a board by a tree of given fan-out: whoever leads others shows them on its own
//! shelf what it has read. For short messages and so many ranks that reading one shelf would keep
//! all waiting.

use super::bcast_board;
use crate::cost::{Place, children, subtrees};
use crate::tree::Tree;
use crate::{Ask, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let data = ask.output();
    if ask.size < 2 || data.is_empty() || data.len > ask.shelf_units().0 {
        return bcast_board::emit(ask, s);
    }
    s.use_short(data.len);
    let (tree, v) = (Tree::new(ask.param, ask.size), ask.relative());
    if let Some(parent) = tree.parent(v) {
        let parent = ask.absolute(parent);
        s.watch(parent, 1);
        s.copy(ask.shelf(parent, data.len), data);
    }
    if !tree.children(v).is_empty() {
        s.copy(data, ask.shelf(ask.rank, data.len));
        s.raise(1);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &Place) -> f64 {
    if ask.size < 2 || ask.count > ask.shelf_units().0 {
        return bcast_board::cost(ask, at);
    }
    let (b, mut n, mut ns) = (ask.bytes as f64, ask.size, 0.0);
    while n > 1 {
        let readers = children(ask.param, n).map(f64::from).sum();
        ns += at.memory.show(b) + at.p.step + at.memory.see(readers, b);
        let (full, last) = subtrees(ask.param, n);
        n = if full + last < n { full } else { last };
    }
    ns
}
