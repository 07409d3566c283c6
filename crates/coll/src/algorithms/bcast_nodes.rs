//! Broadcast to several nodes: from the root to one rank of every node, then inside each node.
//! Every byte enters a node once.

use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{CallView, Coll, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let hierarchy = Hierarchy::of(call);
    if hierarchy.leads {
        let between = hierarchy.between();
        between.run(Coll::Bcast, call.bytes, &between.call(call), s);
    }
    inside(&hierarchy, 0, call.output(), call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    parts.between(Coll::Bcast, call.bytes, 1) + parts.inside(Coll::Bcast, call.bytes)
}

/// Brings `data` from the leader to the other ranks of its node.
pub(super) fn inside(
    hierarchy: &Hierarchy,
    turn: u32,
    data: Slice,
    call: &CallView,
    s: &mut Schedule,
) {
    let inside = hierarchy.inside(turn).on(data, data);
    let part = CallView {
        root: inside.place(hierarchy.leader),
        count: data.len,
        ..inside.call(call)
    };
    inside.run(Coll::Bcast, data.len * call.unit_bytes(), &part, s);
}
