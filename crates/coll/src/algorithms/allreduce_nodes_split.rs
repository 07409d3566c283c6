//! Allreduce of several nodes in which every rank takes a part of the data between the nodes:
//! reduce-scatter inside each node, an allreduce of every part among the ranks that have it,
//! allgather inside each node. For long messages; in the order of ranks if that is the order of
//! nodes. There are as many parts as the smallest node has ranks.

use crate::call_view::part_of;
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::{Hierarchy, SubComm};
use crate::{Blocks, CallView, Coll, RECV, SEND, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (Some(nodes), true) = (call.nodes, call.count > 0) else {
        return;
    };
    let hierarchy = Hierarchy::of(call);
    let (parts, me) = (nodes.fewest(), hierarchy.inside(0).place(call.rank));
    // The additional ranks of larger nodes get empty parts at the end.
    let cut = |i: u32| {
        if i < parts {
            part_of(call.output(), i, parts)
        } else {
            call.output().part(call.count, 0)
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
    let home = if call.in_place {
        s.elements(mine.len)
    } else {
        mine
    };
    let inside = hierarchy.inside(0).on(call.input(), home);
    let scatter = CallView {
        send: listed(SEND),
        in_place: false,
        ..inside.call(call)
    };
    inside.run(Coll::ReduceScatter, call.bytes, &scatter, s);
    if me < parts {
        let peers: Vec<u32> = (0..nodes.count())
            .map(|node| nodes.ranks(node)[me as usize])
            .collect();
        let between = SubComm::new(&peers).on(home, home);
        let part = CallView {
            count: mine.len,
            in_place: true,
            sharing: parts,
            ..between.call(call)
        };
        between.run(Coll::Allreduce, mine.len * call.unit_bytes(), &part, s);
    }
    if call.in_place {
        s.copy(home, mine);
    }
    let inside = hierarchy.inside(1);
    let gather = CallView {
        send: Blocks::NONE,
        recv: listed(RECV),
        in_place: true,
        ..inside.call(call)
    };
    inside.run(Coll::Allgather, call.bytes / parts as u64, &gather, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    let share = call.bytes / u64::from(parts.fewest);
    parts.inside(Coll::ReduceScatter, call.bytes)
        + parts.between(Coll::Allreduce, share, parts.fewest)
        + parts.inside(Coll::Allgather, share)
}
