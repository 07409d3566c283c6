//! Allreduce of several nodes: inside each node to its leader, among the leaders, and back into
//! each node. For short and middling messages; in the order of ranks if that is the order of nodes.

use super::{bcast_nodes, reduce_nodes};
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{CallView, Coll, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let call = &CallView { root: 0, ..*call };
    let hierarchy = Hierarchy::of(call);
    let home = call.output();
    let partial = reduce_nodes::inside(&hierarchy, home, call, s);
    if hierarchy.leads {
        reduce_nodes::between(&hierarchy, Coll::Allreduce, partial, home, call, s);
    }
    bcast_nodes::inside(&hierarchy, 1, home, call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    let bytes = call.bytes;
    parts.inside(Coll::Reduce, bytes)
        + parts.between(Coll::Allreduce, bytes, 1)
        + parts.inside(Coll::Bcast, bytes)
}
