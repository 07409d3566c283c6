//! Costs of the parts of composed algorithms: the ranks of a node, and the node leaders.

use super::{Distances, StepCosts};
use crate::{Blocks, CallView, Coll, Levels, Nodes, SEND};

/// The two levels of a communicator on several nodes.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    call: &'a CallView<'a>,
    at: &'a StepCosts<'a>,
    /// Nodes.
    pub nodes: u32,
    /// Ranks of the largest node.
    pub per_node: u32,
    /// Ranks of the smallest one.
    pub fewest: u32,
    /// Domains inside a node.
    levels: Option<&'a Levels>,
}

impl<'a> Parts<'a> {
    /// The levels of a call.
    pub fn of(call: &'a CallView<'a>, at: &'a StepCosts<'a>) -> Parts<'a> {
        let [nodes, per_node, fewest] = match call.nodes {
            Some(nodes) => [nodes.count(), nodes.most(), nodes.fewest()],
            None => [1, call.size, call.size],
        };
        Parts {
            call,
            at,
            nodes,
            per_node,
            fewest,
            levels: call.nodes.and_then(Nodes::priced_levels),
        }
    }

    /// A collective inside each node; nothing if each has one rank.
    pub fn inside(&self, coll: Coll, bytes: u64) -> f64 {
        match self.per_node {
            1 => 0.0,
            n => self.part(coll, bytes, n, false, 1),
        }
    }

    /// A collective among one rank of every node; `sharing` of them on each node at the same time.
    pub fn between(&self, coll: Coll, bytes: u64, sharing: u32) -> f64 {
        let call = CallView {
            shm_region: None,
            ..*self.call
        };
        let levels = None;
        Parts {
            call: &call,
            levels,
            ..*self
        }
        .part(coll, bytes, self.nodes, true, sharing)
    }

    fn part(&self, coll: Coll, bytes: u64, size: u32, net: bool, sharing: u32) -> f64 {
        let call = self.call;
        let unit = call.unit_bytes().max(1);
        // Blocks of parts are listed, except where each rank gives or gets its own whole.
        let listed = matches!(coll, Coll::Allgather | Coll::Alltoall | Coll::ReduceScatter);
        let blocks = match listed {
            true => Blocks::Listed {
                buf: SEND,
                counts: &[],
                at: &[],
            },
            false => Blocks::NONE,
        };
        let part = CallView {
            rank: 0,
            root: 0,
            size,
            bytes,
            block_bytes: bytes,
            count: bytes / unit,
            nodes: None,
            levels: self.levels,
            send: blocks,
            recv: blocks,
            in_place: false,
            sharing,
            ..*call
        };
        let (algorithm, param) = part.choose(coll, bytes, net);
        let net = net || call.chooser.is_some_and(|c| c.site.network);
        let cost = |sharing: u32, at: &Distances| {
            let part = CallView { param, ..part };
            let at = StepCosts::new(at, net, &CallView { sharing, ..part });
            (algorithm.cost)(&part, &at)
        };
        let distances = self.at.distances();
        if sharing < 2 {
            return cost(sharing, distances);
        }
        // While one rank waits for a message, the link carries those of the others: it is busy with
        // all of them in a row, or one rank's messages follow each other as if it were alone.
        let p = self.at.p;
        let once = p.net_send + p.latency + p.net_recv;
        let busy = once + cost(sharing, &distances.without_ways());
        busy.max(cost(1, distances))
    }
}
