//! Broadcast to several nodes: from the root to one rank of every node, then inside each node. Every byte enters a node once.

use crate::among::Levels;
use crate::{Ask, Coll, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let levels = Levels::of(ask);
    if levels.is_hub {
        let between = levels.between();
        between.run(Coll::Bcast, ask.bytes, &between.ask(ask), s);
    }
    inside(&levels, 0, ask.output(), ask, s);
}

/// Brings `data` from the hub to the other ranks of its node.
pub(super) fn inside(levels: &Levels, turn: u32, data: Slice, ask: &Ask, s: &mut Schedule) {
    let inside = levels.inside(turn).on(data, data);
    let part = Ask {
        root: inside.place(levels.hub),
        count: data.len,
        ..inside.ask(ask)
    };
    inside.run(Coll::Bcast, data.len * ask.unit_bytes(), &part, s);
}
