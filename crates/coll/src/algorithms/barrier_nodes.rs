//! Barrier of several nodes: each node reports to its leader, the leaders meet, each leader
//! releases its node. A node whose ranks have a shm region reports and releases there.

use super::barrier_tree::{self, release, report};
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{CallView, Coll, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let hierarchy = Hierarchy::of(call);
    let inside = hierarchy.inside(0);
    let part = inside.call(call);
    if call.shm_region.is_some() {
        s.use_short(0);
        s.raise(1);
    } else {
        inside.emit(s, |s| report(&part, s));
    }
    if hierarchy.leads {
        if call.shm_region.is_some() {
            s.watch_all(1);
        }
        let between = hierarchy.between();
        between.run(Coll::Barrier, 0, &between.call(call), s);
    }
    if call.shm_region.is_none() {
        inside.emit(s, |s| release(&part, s));
    } else if hierarchy.leads {
        s.raise(2);
    } else {
        s.watch(hierarchy.leader, 2);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    let here = f64::from(parts.per_node);
    let inside = match call.shm_region {
        Some(_) => at.memory.look_at_all(here) + at.memory.looks(here - 1.0) + 2.0 * at.p.step,
        None => {
            2.0 * barrier_tree::cost(
                &CallView {
                    size: parts.per_node,
                    ..*call
                },
                at,
            )
        }
    };
    let inside = if parts.per_node > 1 { inside } else { 0.0 };
    inside + parts.between(Coll::Barrier, 0, 1)
}
