//! Reduce of several nodes: inside each node to one of its ranks, then from those to the root.
//! Every node sends once. In the order of ranks if that is the order of nodes.

use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{CallView, Coll, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    if call.count == 0 {
        return;
    }
    let hierarchy = Hierarchy::of(call);
    let home = if call.is_root() {
        call.output()
    } else if hierarchy.leads && hierarchy.here.len() > 1 {
        s.elements(call.count)
    } else {
        call.input()
    };
    let partial = inside(&hierarchy, home, call, s);
    if hierarchy.leads {
        between(&hierarchy, Coll::Reduce, partial, home, call, s);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    parts.inside(Coll::Reduce, call.bytes) + parts.between(Coll::Reduce, call.bytes, 1)
}

/// Combines the contributions of a node at its leader, in `home`; returns where the result lies (a
/// leader that is alone has it in its input).
pub(super) fn inside(
    hierarchy: &Hierarchy,
    home: Slice,
    call: &CallView,
    s: &mut Schedule,
) -> Slice {
    if hierarchy.here.len() == 1 {
        return call.input();
    }
    let inside = hierarchy.inside(0).on(call.input(), home);
    let part = CallView {
        root: inside.place(hierarchy.leader),
        in_place: hierarchy.leads && call.input() == home,
        ..inside.call(call)
    };
    inside.run(Coll::Reduce, call.bytes, &part, s);
    home
}

/// Combines the leaders' results in `partial`, into `home`.
pub(super) fn between(
    hierarchy: &Hierarchy,
    coll: Coll,
    partial: Slice,
    home: Slice,
    call: &CallView,
    s: &mut Schedule,
) {
    let between = hierarchy.between().on(partial, home);
    let receives = coll == Coll::Allreduce || call.is_root();
    let part = CallView {
        in_place: receives && partial == home,
        ..between.call(call)
    };
    between.run(coll, call.bytes, &part, s);
}
