//! Neighbourhood allgather and alltoall: all transfers along the edges are started at once; edges
//! from a rank to itself are copies. For any blocks (v and w forms too).

use crate::cost::StepCosts;
use crate::{Ask, Schedule, Slice};

/// Emits the schedule of an allgather: block 0 goes to every neighbour.
pub fn emit_allgather(ask: &Ask, s: &mut Schedule) {
    spread(ask, s, |_| ask.send.block(0));
}

/// Emits the schedule of an alltoall: every neighbour gets a block of its own.
pub fn emit_alltoall(ask: &Ask, s: &mut Schedule) {
    spread(ask, s, |block| ask.send.block(block));
}

/// Nanoseconds, as [`crate::cost`] says.
pub fn cost(ask: &Ask, at: &StepCosts) -> f64 {
    // Each rank knows only its own number of edges; there is no choice to make either.
    at.storm(2.0, ask.bytes as f64)
}

fn spread(ask: &Ask, s: &mut Schedule, out: impl Fn(u32) -> Slice) {
    let Some(neighbors) = ask.neighbors else {
        return;
    };
    for edge in neighbors.from.iter().filter(|e| e.rank != ask.rank) {
        let into = ask.recv.block(edge.block);
        if !into.is_empty() {
            s.recv(edge.rank, into);
        }
    }
    for edge in neighbors.to.iter().filter(|e| e.rank != ask.rank) {
        let what = out(edge.block);
        if !what.is_empty() {
            s.send(edge.rank, what);
        }
    }
    let own = |e: &&crate::Edge| e.rank == ask.rank;
    let loops = neighbors.to.iter().filter(own);
    for (to, from) in loops.zip(neighbors.from.iter().filter(own)) {
        s.copy(out(to.block), ask.recv.block(from.block));
    }
}
