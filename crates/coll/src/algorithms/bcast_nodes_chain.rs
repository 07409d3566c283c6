//! Broadcast along a chain that visits node after node, in pieces: every byte crosses from node to
//! node once, and all links are busy at the same time. For long messages. The table's `/number` is
//! the number of pieces.

use super::bcast_chain;
use crate::cost::{Parts, StepCosts};
use crate::sub_comm::SubComm;
use crate::{CallView, Schedule};

/// Emits the schedule.
pub fn emit(call: &CallView, s: &mut Schedule) {
    let mut order: Vec<u32> = match call.nodes {
        Some(nodes) => nodes.in_order().to_vec(),
        None => (0..call.size).collect(),
    };
    // The other ranks of the root's node come after the root and before other nodes; the ring is
    // cut where its node begins.
    let node = |r: u32| call.nodes.map_or(0, |n| n.of(r));
    let begin = order.iter().position(|&r| node(r) == node(call.root));
    order.rotate_left(begin.unwrap_or(0));
    let root = order.iter().position(|&r| r == call.root).unwrap_or(0);
    order.swap(0, root);
    let chain = SubComm::new(&order);
    chain.emit(s, |s| bcast_chain::emit(&chain.call(call), s));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    let parts = Parts::of(call, at);
    let (far, near) = (
        StepCosts::new(at.distances(), true, call),
        StepCosts::new(at.distances(), false, call),
    );
    let pieces = u64::from(call.param).min(call.bytes).max(1) as f64;
    let (b, hops) = (call.bytes as f64 / pieces, f64::from(parts.nodes) - 1.0);
    let here = f64::from(call.size) - 1.0 - hops;
    let way = hops * far.one_way(b) + here * near.one_way(b);
    // If nodes have several ranks, no rank both receives pieces over the network and sends them.
    let next = match (parts.per_node, parts.nodes) {
        (1, 2) => far.gap(b).max(far.take(b)),
        (1, _) => far.relay(b, b),
        _ => (far.gap(b) + near.take(b)).max(near.gap(b) + far.take(b)),
    };
    way + (pieces - 1.0) * next.max(near.relay(b, b))
}
