//! Allreduce of several nodes: inside each node to its leader, among the leaders, and back into
//! each node. For short and middling messages; in the order of ranks if that is the order of nodes.

use super::{bcast_nodes, reduce_nodes};
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{Ask, Coll, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let ask = &Ask { root: 0, ..*ask };
    let hierarchy = Hierarchy::of(ask);
    let home = ask.output();
    let partial = reduce_nodes::inside(&hierarchy, home, ask, s);
    if hierarchy.leads {
        reduce_nodes::between(&hierarchy, Coll::Allreduce, partial, home, ask, s);
    }
    bcast_nodes::inside(&hierarchy, 1, home, ask, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let parts = Parts::of(ask, at);
    let bytes = ask.bytes;
    parts.inside(Coll::Reduce, bytes)
        + parts.between(Coll::Allreduce, bytes, 1)
        + parts.inside(Coll::Bcast, bytes)
}
