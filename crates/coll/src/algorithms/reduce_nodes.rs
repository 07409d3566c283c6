//! Reduce of several nodes: inside each node to one rank of it, then from those to the root. Every node sends once. In the
//! order of ranks where that is the order of nodes.

use crate::among::Levels;
use crate::{Ask, Coll, Schedule, Slice};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let levels = Levels::of(ask);
    let home = if ask.is_root() {
        ask.output()
    } else if levels.is_hub && levels.here.len() > 1 {
        s.elements(ask.count)
    } else {
        ask.input()
    };
    let partial = inside(&levels, home, ask, s);
    if levels.is_hub {
        between(&levels, Coll::Reduce, partial, home, ask, s);
    }
}

/// Combines the contributions of a node at its hub, in `home`; returns where the result lies (a hub that is alone has it in
/// its input).
pub(super) fn inside(levels: &Levels, home: Slice, ask: &Ask, s: &mut Schedule) -> Slice {
    if levels.here.len() == 1 {
        return ask.input();
    }
    let inside = levels.inside(0).on(ask.input(), home);
    let part = Ask {
        root: inside.place(levels.hub),
        in_place: levels.is_hub && ask.input() == home,
        ..inside.ask(ask)
    };
    inside.run(Coll::Reduce, ask.bytes, &part, s);
    home
}

/// Combines what the hubs have in `partial`, into `home`.
pub(super) fn between(
    levels: &Levels,
    coll: Coll,
    partial: Slice,
    home: Slice,
    ask: &Ask,
    s: &mut Schedule,
) {
    let between = levels.between().on(partial, home);
    let receives = coll == Coll::Allreduce || ask.is_root();
    let part = Ask {
        in_place: receives && partial == home,
        ..between.ask(ask)
    };
    between.run(coll, ask.bytes, &part, s);
}
