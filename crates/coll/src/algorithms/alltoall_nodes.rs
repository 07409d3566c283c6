//! Alltoall of several nodes: each rank gives all its blocks to its leader, the leaders exchange
//! bundles (one message for a pair of nodes), and each leader distributes the data that came. For
//! short equal blocks: every block is copied a few times.

use super::allgather_nodes::collect;
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::Hierarchy;
use crate::{Blocks, CallView, Coll, Nodes, RECV, SEND, Schedule, Slice};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let (Some(nodes), true) = (call.nodes, call.block_bytes > 0) else {
        return;
    };
    let call = &CallView { root: 0, ..*call };
    let (hierarchy, row) = (Hierarchy::of(call), call.size as u64 * call.block_bytes);
    let rows = if hierarchy.leads {
        hierarchy.here.len() as u64
    } else {
        1
    };
    let own = s.bytes(rows * row);
    s.copy(call.send.run(0, call.size), own.part(0, row));
    collect(&hierarchy, own.part(0, row), own, call, s);
    let came = s.bytes(rows * row);
    if hierarchy.leads {
        let (out, into) = (s.bytes(own.len), s.bytes(own.len));
        let leader = Leader {
            nodes,
            row,
            each: call.block_bytes,
            here: hierarchy.here,
        };
        leader.bundle(own, out, s);
        exchange(&hierarchy, &leader, out, into, call, s);
        leader.unbundle(into, came, s);
    }
    deal(&hierarchy, came, row, call, s);
    s.copy(came.part(0, row), call.recv.run(0, call.size));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    let row = call.bytes * u64::from(call.size);
    let cells = f64::from(call.size) * f64::from(parts.per_node);
    let bundle = call.nodes.map_or(row, |n| bundle(n, call.bytes));
    parts.inside(Coll::Gather, row)
        + parts.between(Coll::Alltoall, bundle, 1)
        + parts.inside(Coll::Scatter, row)
        + 2.0 * (cells * at.memory.copy(call.bytes as f64) + at.memory.copy(row as f64))
}

/// Bytes of a bundle, by the data that the leader of the largest node has to send.
fn bundle(nodes: &Nodes, each: u64) -> u64 {
    let most = nodes.most();
    u64::from(most) * nodes.elsewhere(most, each)
}

/// A leader's work on the rows of its node: row `l` has the data that the node's `l`th rank sends
/// to (or gets from) each rank.
struct Leader<'a> {
    nodes: &'a Nodes,
    /// Bytes of a row and of a block.
    row: u64,
    each: u64,
    here: &'a [u32],
}

impl Leader<'_> {
    /// The bundle for, or from, a node.
    fn bundle_of(&self, all: Slice, node: u32) -> Slice {
        let pair = (self.nodes.ranks(node).len() * self.here.len()) as u64;
        let before = self.nodes.start(node) as u64 * self.here.len() as u64;
        all.part(before * self.each, pair * self.each)
    }

    /// A block inside a row.
    fn cell(&self, rows: Slice, row: usize, rank: u32) -> Slice {
        rows.part(row as u64 * self.row + rank as u64 * self.each, self.each)
    }

    /// From rows to bundles: a bundle has, sender by sender, the blocks for each of the other
    /// node's ranks.
    fn bundle(&self, rows: Slice, out: Slice, s: &mut Schedule) {
        for node in 0..self.nodes.count() {
            let (mut at, bundle) = (0, self.bundle_of(out, node));
            for row in 0..self.here.len() {
                for &to in self.nodes.ranks(node) {
                    s.copy(self.cell(rows, row, to), bundle.part(at, self.each));
                    at += self.each;
                }
            }
        }
    }

    /// From bundles to rows.
    fn unbundle(&self, into: Slice, rows: Slice, s: &mut Schedule) {
        for node in 0..self.nodes.count() {
            let (mut at, bundle) = (0, self.bundle_of(into, node));
            for &from in self.nodes.ranks(node) {
                for row in 0..self.here.len() {
                    s.copy(bundle.part(at, self.each), self.cell(rows, row, from));
                    at += self.each;
                }
            }
        }
    }
}

/// Alltoall of the bundles among the leaders.
fn exchange(
    hierarchy: &Hierarchy,
    leader: &Leader,
    out: Slice,
    into: Slice,
    call: &CallView,
    s: &mut Schedule,
) {
    let bundles = (0..leader.nodes.count()).map(|node| leader.bundle_of(out, node));
    let (at, counts): (Vec<i64>, Vec<u64>) = bundles.map(|b| (b.at, b.len)).unzip();
    let listed = |buf| Blocks::Listed {
        buf,
        counts: &counts,
        at: &at,
    };
    let between = hierarchy.between().on(out, into);
    let part = CallView {
        in_place: false,
        send: listed(SEND),
        recv: listed(RECV),
        ..between.call(call)
    };
    let bundle = bundle(leader.nodes, leader.each);
    between.run(Coll::Alltoall, bundle, &part, s);
}

/// Gives every rank of the node its row, which it gets at the beginning of `rows`; the leader's row
/// is there already.
fn deal(hierarchy: &Hierarchy, rows: Slice, row: u64, call: &CallView, s: &mut Schedule) {
    let inside = hierarchy.inside(1).on(rows, rows);
    let even = |buf| Blocks::Even { buf, each: row };
    let part = CallView {
        block_bytes: row,
        send: even(SEND),
        recv: even(RECV),
        in_place: hierarchy.leads,
        ..inside.call(call)
    };
    inside.run(Coll::Scatter, row, &part, s);
}
