//! Barrier of several nodes: each node reports to its leader, the leaders meet, each leader lets
//! its node go. A node whose ranks have a board reports and releases there.

use super::barrier_tree::{release, report};
use crate::sub_comm::Hierarchy;
use crate::{Ask, Coll, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let hierarchy = Hierarchy::of(ask);
    let inside = hierarchy.inside(0);
    let part = inside.ask(ask);
    if ask.board.is_some() {
        s.use_short(0);
        s.raise(1);
    } else {
        inside.emit(s, |s| report(&part, s));
    }
    if hierarchy.leads {
        if ask.board.is_some() {
            s.watch_all(1);
        }
        let between = hierarchy.between();
        between.run(Coll::Barrier, 0, &between.ask(ask), s);
    }
    if ask.board.is_none() {
        inside.emit(s, |s| release(&part, s));
    } else if hierarchy.leads {
        s.raise(2);
    } else {
        s.watch(hierarchy.leader, 2);
    }
}
