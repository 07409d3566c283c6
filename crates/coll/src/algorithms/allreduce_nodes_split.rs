//! Allreduce of several nodes in which every rank takes a part of the data between the nodes:
//! reduce-scatter inside each node, an allreduce of every part among the ranks that have it,
//! allgather inside each node. For long messages; in the order of ranks if that is the order of
//! nodes. There are as many parts as the smallest node has ranks.

use crate::ask::part_of;
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::{Hierarchy, SubComm};
use crate::{Ask, Blocks, Coll, RECV, SEND, Schedule};

/// Emits the schedule.
pub fn emit(ask: &Ask, s: &mut Schedule) {
    let (Some(nodes), true) = (ask.nodes, ask.count > 0) else {
        return;
    };
    let hierarchy = Hierarchy::of(ask);
    let (parts, me) = (nodes.fewest(), hierarchy.inside(0).place(ask.rank));
    // The additional ranks of larger nodes get empty parts at the end.
    let cut = |i: u32| {
        if i < parts {
            part_of(ask.output(), i, parts)
        } else {
            ask.output().part(ask.count, 0)
        }
    };
    let cuts = (0..hierarchy.here.len() as u32).map(cut);
    let (at, counts): (Vec<i64>, Vec<u64>) = cuts.map(|c| (c.at, c.len)).unzip();
    let listed = |buf| Blocks::Listed {
        buf,
        counts: &counts,
        at: &at,
    };
    let mine = cut(me);
    // In place, the part of the result would overwrite what others of the node still have to read.
    let home = if ask.in_place {
        s.elements(mine.len)
    } else {
        mine
    };
    let inside = hierarchy.inside(0).on(ask.input(), home);
    let scatter = Ask {
        send: listed(SEND),
        in_place: false,
        ..inside.ask(ask)
    };
    inside.run(Coll::ReduceScatter, ask.bytes, &scatter, s);
    if me < parts {
        let peers: Vec<u32> = (0..nodes.count())
            .map(|node| nodes.ranks(node)[me as usize])
            .collect();
        let between = SubComm::new(&peers).on(home, home);
        let part = Ask {
            count: mine.len,
            in_place: true,
            sharing: parts,
            ..between.ask(ask)
        };
        between.run(Coll::Allreduce, mine.len * ask.unit_bytes(), &part, s);
    }
    if ask.in_place {
        s.copy(home, mine);
    }
    let inside = hierarchy.inside(1);
    let gather = Ask {
        send: Blocks::NONE,
        recv: listed(RECV),
        in_place: true,
        ..inside.ask(ask)
    };
    inside.run(Coll::Allgather, ask.bytes / parts as u64, &gather, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    let parts = Parts::of(ask, at);
    let share = ask.bytes / u64::from(parts.fewest);
    parts.inside(Coll::ReduceScatter, ask.bytes)
        + parts.between(Coll::Allreduce, share, parts.fewest)
        + parts.inside(Coll::Allgather, share)
}
