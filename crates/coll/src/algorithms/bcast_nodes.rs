//! Broadcast to several nodes: from the root to one rank of every node, then inside each node.
//! Every byte enters a node once.

use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{Ask, Coll, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let hierarchy = Hierarchy::of(ask);
    if hierarchy.leads {
        let between = hierarchy.between();
        between.run(Coll::Bcast, ask.bytes, &between.ask(ask), s);
    }
    inside(&hierarchy, 0, ask.output(), ask, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let parts = Parts::of(ask, at);
    parts.between(Coll::Bcast, ask.bytes, 1) + parts.inside(Coll::Bcast, ask.bytes)
}

/// Brings `data` from the leader to the other ranks of its node.
pub(super) fn inside(hierarchy: &Hierarchy, turn: u32, data: Slice, ask: &Ask, s: &mut Schedule) {
    let inside = hierarchy.inside(turn).on(data, data);
    let part = Ask {
        root: inside.place(hierarchy.leader),
        count: data.len,
        ..inside.ask(ask)
    };
    inside.run(Coll::Bcast, data.len * ask.unit_bytes(), &part, s);
}
