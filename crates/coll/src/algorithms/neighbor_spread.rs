//! Neighbourhood allgather and alltoall: all transfers along the edges are started at once; edges
//! from a rank to itself are copies. For any blocks (v and w forms too).

use crate::cost::StepCosts;
use crate::{CallView, Schedule, Slice};

/// Emits the schedule of an allgather: block 0 goes to every neighbour.
pub fn emit_allgather(call: &CallView, s: &mut Schedule) {
    spread(call, s, |_| call.send.block(0));
}

/// Emits the schedule of an alltoall: every neighbour gets a block of its own.
pub fn emit_alltoall(call: &CallView, s: &mut Schedule) {
    spread(call, s, |block| call.send.block(block));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(call: &CallView, at: &StepCosts) -> f64 {
    // Each rank knows only its own number of edges; there is no choice to make either.
    at.storm(2.0, call.bytes as f64)
}

fn spread(call: &CallView, s: &mut Schedule, out: impl Fn(u32) -> Slice) {
    let Some(neighbors) = call.neighbors else {
        return;
    };
    for edge in neighbors.from.iter().filter(|e| e.rank != call.rank) {
        let into = call.recv.block(edge.block);
        if !into.is_empty() {
            s.recv(edge.rank, into);
        }
    }
    for edge in neighbors.to.iter().filter(|e| e.rank != call.rank) {
        let what = out(edge.block);
        if !what.is_empty() {
            s.send(edge.rank, what);
        }
    }
    let own = |e: &&crate::Edge| e.rank == call.rank;
    let loops = neighbors.to.iter().filter(own);
    for (to, from) in loops.zip(neighbors.from.iter().filter(own)) {
        s.copy(out(to.block), call.recv.block(from.block));
    }
}
