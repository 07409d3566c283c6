//! Reduce of several nodes: inside each node to one of its ranks, then from those to the root.
//! Every node sends once. In the order of ranks if that is the order of nodes.

use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{Ask, Coll, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let hierarchy = Hierarchy::of(ask);
    let home = if ask.is_root() {
        ask.output()
    } else if hierarchy.leads && hierarchy.here.len() > 1 {
        s.elements(ask.count)
    } else {
        ask.input()
    };
    let partial = inside(&hierarchy, home, ask, s);
    if hierarchy.leads {
        between(&hierarchy, Coll::Reduce, partial, home, ask, s);
    }
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let parts = Parts::of(ask, at);
    parts.inside(Coll::Reduce, ask.bytes) + parts.between(Coll::Reduce, ask.bytes, 1)
}

/// Combines the contributions of a node at its leader, in `home`; returns where the result lies (a
/// leader that is alone has it in its input).
pub(super) fn inside(hierarchy: &Hierarchy, home: Slice, ask: &Ask, s: &mut Schedule) -> Slice {
    if hierarchy.here.len() == 1 {
        return ask.input();
    }
    let inside = hierarchy.inside(0).on(ask.input(), home);
    let part = Ask {
        root: inside.place(hierarchy.leader),
        in_place: hierarchy.leads && ask.input() == home,
        ..inside.ask(ask)
    };
    inside.run(Coll::Reduce, ask.bytes, &part, s);
    home
}

/// Combines the leaders' results in `partial`, into `home`.
pub(super) fn between(
    hierarchy: &Hierarchy,
    coll: Coll,
    partial: Slice,
    home: Slice,
    ask: &Ask,
    s: &mut Schedule,
) {
    let between = hierarchy.between().on(partial, home);
    let receives = coll == Coll::Allreduce || ask.is_root();
    let part = Ask {
        in_place: receives && partial == home,
        ..between.ask(ask)
    };
    between.run(coll, ask.bytes, &part, s);
}
