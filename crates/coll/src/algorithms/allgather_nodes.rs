//! Allgather of several nodes: each node gathers at its leader, the leaders exchange what their
//! nodes have, each leader spreads all. Goes through packed memory in the order of nodes; for equal
//! blocks.

use super::bcast_nodes;
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::{Hierarchy, SubComm};
use crate::{Blocks, CallView, Coll, Nodes, RECV, SEND, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (Some(nodes), true) = (call.nodes, call.block_bytes > 0) else {
        return;
    };
    let call = &CallView { root: 0, ..*call };
    let hierarchy = Hierarchy::of(call);
    let all = s.bytes(call.size as u64 * call.block_bytes);
    let here = node_part(nodes, nodes.of(call.rank), all, call.block_bytes);
    let own = here.part(
        hierarchy.inside(0).place(call.rank) as u64 * call.block_bytes,
        call.block_bytes,
    );
    s.copy(
        if call.in_place {
            call.recv.block(call.rank)
        } else {
            call.send.block(0)
        },
        own,
    );
    collect(&hierarchy, own, here, call, s);
    if hierarchy.leads {
        exchange(&hierarchy, nodes, all, call, s);
    }
    bcast_nodes::inside(&hierarchy, 1, all, call, s);
    put(nodes, all, call, s);
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    let all = call.bytes * u64::from(call.size);
    let copies = at.memory.copy(call.bytes as f64) + at.memory.copy(all as f64);
    parts.inside(Coll::Gather, call.bytes)
        + parts.between(
            Coll::Allgather,
            call.nodes.map_or(all, |n| gets(n, call.bytes)),
            1,
        )
        + parts.inside(Coll::Bcast, all)
        + copies
}

/// Bytes of a block among the leaders, for the leader that has to get least.
fn gets(nodes: &Nodes, each: u64) -> u64 {
    nodes.elsewhere(nodes.fewest(), each)
}

/// The part of `all`, in node order, that belongs to the ranks of a node: `each` bytes per rank.
pub(super) fn node_part(nodes: &Nodes, node: u32, all: Slice, each: u64) -> Slice {
    let count = nodes.ranks(node).len() as u64;
    all.part(nodes.start(node) as u64 * each, count * each)
}

/// Gathers the equal pieces `own` of a node's ranks in `here` of their leader, where the leader's
/// own lies already.
pub(super) fn collect(
    hierarchy: &Hierarchy,
    own: Slice,
    here: Slice,
    call: &CallView,
    s: &mut Schedule,
) {
    let inside = hierarchy.inside(0).on(own, here);
    let each = |buf| Blocks::Even { buf, each: own.len };
    let part = CallView {
        root: inside.place(hierarchy.leader),
        block_bytes: own.len,
        send: each(SEND),
        recv: each(RECV),
        in_place: hierarchy.leads,
        ..inside.call(call)
    };
    inside.run(Coll::Gather, own.len, &part, s);
}

/// Allgather among the leaders: each has its node's part of `all`.
fn exchange(hierarchy: &Hierarchy, nodes: &Nodes, all: Slice, call: &CallView, s: &mut Schedule) {
    let each = call.block_bytes;
    let parts = (0..nodes.count()).map(|node| node_part(nodes, node, all, each));
    let (at, counts): (Vec<i64>, Vec<u64>) = parts.map(|p| (p.at, p.len)).unzip();
    let between: SubComm = hierarchy.between().on(all, all);
    let part = CallView {
        in_place: true,
        send: Blocks::NONE,
        recv: Blocks::Listed {
            buf: RECV,
            counts: &counts,
            at: &at,
        },
        ..between.call(call)
    };
    between.run(Coll::Allgather, gets(nodes, each), &part, s);
}

/// From the order of nodes to the order of ranks.
fn put(nodes: &Nodes, all: Slice, call: &CallView, s: &mut Schedule) {
    if nodes.are_in_order() {
        return s.copy(all, call.recv.run(0, call.size));
    }
    let each = call.block_bytes;
    for (i, &r) in nodes.in_order().iter().enumerate() {
        s.copy(all.part(i as u64 * each, each), call.recv.block(r));
    }
}
