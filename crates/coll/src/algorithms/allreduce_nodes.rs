//! Allreduce of several nodes: inside each node to its leader, among the leaders, and back into each node. For short and
//! middling messages; in the order of ranks where that is the order of nodes.

use super::{bcast_nodes, reduce_nodes};
use crate::among::Levels;
use crate::{Ask, Coll, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    if ask.count == 0 {
        return;
    }
    let ask = &Ask { root: 0, ..*ask };
    let levels = Levels::of(ask);
    let home = ask.output();
    let partial = reduce_nodes::inside(&levels, home, ask, s);
    if levels.is_hub {
        reduce_nodes::between(&levels, Coll::Allreduce, partial, home, ask, s);
    }
    bcast_nodes::inside(&levels, 1, home, ask, s);
}
