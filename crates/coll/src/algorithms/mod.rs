//! The algorithms: one file each, one row each in [`ALL`].

use super::cost::StepCosts;
use super::table::DEFAULT_PARAM;
use super::{CallView, Coll, Schedule};

pub mod allgather_bruck;
pub mod allgather_doubling;
pub mod allgather_fetch;
pub mod allgather_gather_bcast;
pub mod allgather_neighbour;
pub mod allgather_nodes;
pub mod allgather_ring;
pub mod allgather_shm;
pub mod allgather_spread;
pub mod allreduce_doubling;
pub mod allreduce_linear;
pub mod allreduce_nodes;
pub mod allreduce_nodes_split;
pub mod allreduce_rabenseifner;
pub mod allreduce_ring;
pub mod allreduce_shm;
pub mod allreduce_shm_levels;
pub mod allreduce_shm_parts;
pub mod allreduce_shm_root;
pub mod allreduce_shm_tree;
pub mod alltoall_bruck;
pub mod alltoall_fetch;
pub mod alltoall_in_place;
pub mod alltoall_nodes;
pub mod alltoall_pairwise;
pub mod alltoall_shm;
pub mod alltoall_spread;
pub mod barrier_dissemination;
pub mod barrier_nodes;
pub mod barrier_shm;
pub mod barrier_shm_levels;
pub mod barrier_tree;
pub mod bcast_binomial;
pub mod bcast_chain;
pub mod bcast_linear;
pub mod bcast_nodes;
pub mod bcast_nodes_chain;
pub mod bcast_scatter_doubling;
pub mod bcast_scatter_ring;
pub mod bcast_shm;
pub mod bcast_shm_levels;
pub mod bcast_shm_tree;
pub mod exscan_doubling;
pub mod gather_binomial;
pub mod gather_linear;
pub mod gather_shm;
pub mod neighbor_spread;
pub mod reduce_binomial;
pub mod reduce_chain;
pub mod reduce_linear;
pub mod reduce_nodes;
pub mod reduce_rabenseifner;
pub mod reduce_scatter_halving;
pub mod reduce_scatter_pairwise;
pub mod reduce_scatter_reduce_scatterv;
pub mod reduce_scatter_shm;
pub mod reduce_shm;
pub mod reduce_shm_levels;
pub mod reduce_shm_parts;
pub mod reduce_shm_tree;
pub mod scan_chain;
pub mod scan_doubling;
pub mod scan_shm;
pub mod scatter_binomial;
pub mod scatter_linear;
pub mod scatter_shm;

/// Requirement of an algorithm, evaluated alike by all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// The operation commutes.
    Commutes,
    /// Every rank's block has the same number of packed bytes.
    Even,
    /// Equal blocks, and a power of two of processes.
    EvenPowerOfTwo,
    /// An even number of processes.
    Pairs,
    /// MPI_IN_PLACE on all ranks.
    InPlace,
    /// Equal blocks, and not MPI_IN_PLACE.
    EvenApart,
    /// Not MPI_IN_PLACE.
    Apart,
    /// One node, and its ranks have a shm region whose long shm buffers hold the data in not too
    /// many pieces.
    Shm,
    /// A shm region, as for `Shm`, whose short shm buffers hold the data; not nothing, and several
    /// ranks.
    ShortShm,
    /// A shm region, as for `Shm`, and equal blocks.
    EvenShm,
    /// A shm region, as for `Shm`, and ranks in several domains of the host.
    Levels,
    /// A shm region, as for `ShortShm`, ranks in several domains of the host, and an operation that
    /// commutes or domains whose ranks follow one another.
    ShortLevelsFold,
    /// Several nodes.
    Nodes,
    /// Several nodes, and an operation that commutes or nodes whose ranks follow one another.
    NodesFold,
    /// Several nodes and equal blocks.
    NodesEven,
    /// Several nodes, equal blocks, and not MPI_IN_PLACE.
    NodesEvenApart,
}

impl Need {
    /// In words, for users; empty: nothing.
    pub fn text(self) -> &'static str {
        match self {
            Need::Nothing => "",
            Need::Commutes => "an operation that commutes",
            Need::Even => "blocks of equal size",
            Need::EvenPowerOfTwo => "blocks of equal size, 2^n processes",
            Need::Pairs => "an even number of processes",
            Need::InPlace => "MPI_IN_PLACE on all ranks",
            Need::EvenApart => "blocks of equal size, no MPI_IN_PLACE",
            Need::Apart => "no MPI_IN_PLACE",
            Need::Shm => "one host with shared memory",
            Need::ShortShm => "one host with shared memory, short data",
            Need::EvenShm => "one host with shared memory, blocks of equal size",
            Need::Levels => "one host with shared memory and several sockets or caches",
            Need::ShortLevelsFold => {
                "one host with shared memory and several sockets or caches, short data, \
                 an operation that commutes or consecutive ranks in each"
            }
            Need::Nodes => "several hosts",
            Need::NodesFold => {
                "several hosts, an operation that commutes or consecutive ranks on each"
            }
            Need::NodesEven => "several hosts, blocks of equal size",
            Need::NodesEvenApart => "several hosts, blocks of equal size, no MPI_IN_PLACE",
        }
    }

    /// Whether the call meets it.
    pub fn met(self, call: &CallView) -> bool {
        let even = || call.send.is_even() && call.recv.is_even();
        match self {
            Need::Nothing => true,
            Need::Commutes => call.commutative,
            Need::Even => even(),
            Need::EvenPowerOfTwo => even() && call.size.is_power_of_two(),
            Need::Pairs => call.size.is_multiple_of(2),
            Need::InPlace => call.in_place,
            Need::EvenApart => even() && !call.in_place,
            Need::Apart => !call.in_place,
            Need::Shm => on_shm_region(call),
            Need::ShortShm => on_short_shm_region(call),
            Need::EvenShm => even() && on_shm_region(call),
            Need::Levels => has_levels(call) && on_shm_region(call),
            Need::ShortLevelsFold => {
                let in_order = call.levels.is_some_and(|l| l.shape().in_order);
                has_levels(call) && (call.commutative || in_order) && on_short_shm_region(call)
            }
            Need::Nodes => call.nodes.is_some(),
            Need::NodesFold => call
                .nodes
                .is_some_and(|n| call.commutative || n.are_in_order()),
            Need::NodesEven => call.nodes.is_some() && even(),
            Need::NodesEvenApart => call.nodes.is_some() && even() && !call.in_place,
        }
    }
}

/// Whether the ranks are in several domains of their host.
fn has_levels(call: &CallView) -> bool {
    call.levels.is_some_and(|l| !l.tiers().is_empty())
}

/// Whether shm region algorithms can do the call: long shm buffers must have some units for every
/// rank, and the number of pieces must fit into the stages.
fn on_shm_region(call: &CallView) -> bool {
    if call.shm_region.is_none() || call.nodes.is_some() {
        return false;
    }
    let quarter = call.shm_buffer_units().1 / 4;
    let data = call
        .count
        .max(call.block_bytes.saturating_mul(call.size as u64));
    quarter >= call.size as u64 && data < MOST_PIECES * quarter
}

/// Whether shm region algorithms that need all data in a short shm buffer at once can do the call.
fn on_short_shm_region(call: &CallView) -> bool {
    let fits = (1..=call.shm_buffer_units().0).contains(&call.count);
    call.size > 1 && fits && on_shm_region(call)
}

/// Quarters of a long shm buffer that the data of one collective may fill.
const MOST_PIECES: u64 = 10_000;

/// One algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The collective that it performs.
    pub coll: Coll,
    /// Its name in the table.
    pub name: &'static str,
    /// Its requirement.
    pub need: Need,
    /// Emits one rank's schedule.
    pub emit: fn(&CallView, &mut Schedule),
    /// Its cost: nanoseconds from the call on all ranks until the last one has ended, the same on
    /// all ranks.
    pub cost: fn(&CallView, &StepCosts) -> f64,
    /// The numbers behind the slash that are tried where the cheapest algorithm is chosen.
    pub params: &'static [u32],
    /// All ranks move data at the same time, so that they share the memory of their socket.
    pub at_once: bool,
}

/// Kilobytes of a piece that goes through a shm region's long shm buffer; if pieces make no
/// difference, the first is taken.
const KILOBYTES: [u32; 7] = [256, 512, 128, 64, 32, 16, 8];

macro_rules! algorithms {
    ($(
        $coll:ident, $name:literal $(/ $params:tt)?, $need:ident, $emit:path, $cost:path
        $(, $at_once:ident)?;
    )*) => {
        /// Every algorithm.
        pub const ALL: &[Algorithm] = &[$(Algorithm {
            coll: Coll::$coll,
            name: $name,
            need: Need::$need,
            emit: $emit,
            cost: $cost,
            params: algorithms!(params $($params)?),
            at_once: algorithms!(at_once $($at_once)?),
        },)*];
    };
    (params) => { &[DEFAULT_PARAM] };
    (params $params:tt) => { &$params };
    (at_once) => { false };
    (at_once at_once) => { true };
}

// The collective, the algorithm's name in the table and the numbers behind the slash that are worth
// trying, its requirement, its function, its cost, and whether all ranks move data at once. If no
// row of the table fits a call, the last algorithm of its collective that can do it runs, with the
// first number.
algorithms! {
    Barrier, "shm_levels" / [4, 8, 16], Levels, barrier_shm_levels::emit, barrier_shm_levels::cost;
    Barrier, "shm", Shm, barrier_shm::emit, barrier_shm::cost;
    Barrier, "dissemination", Nothing, barrier_dissemination::emit, barrier_dissemination::cost;
    Barrier, "nodes", Nodes, barrier_nodes::emit, barrier_nodes::cost;
    Barrier, "tree" / [4, 2, 8, 16, 32], Nothing, barrier_tree::emit, barrier_tree::cost;
    Bcast, "shm" / KILOBYTES, Shm, bcast_shm::emit, bcast_shm::cost, at_once;
    Bcast, "shm_levels" / [4, 8, 16], Levels, bcast_shm_levels::emit, bcast_shm_levels::cost, at_once;
    Bcast, "shm_tree" / [4, 8, 16], ShortShm, bcast_shm_tree::emit, bcast_shm_tree::cost, at_once;
    Bcast, "nodes", Nodes, bcast_nodes::emit, bcast_nodes::cost, at_once;
    Bcast, "nodes_chain" / [4, 16, 64], Nodes, bcast_nodes_chain::emit, bcast_nodes_chain::cost, at_once;
    Bcast, "linear", Nothing, bcast_linear::emit, bcast_linear::cost, at_once;
    Bcast, "scatter_doubling", Nothing, bcast_scatter_doubling::emit, bcast_scatter_doubling::cost, at_once;
    Bcast, "scatter_ring", Nothing, bcast_scatter_ring::emit, bcast_scatter_ring::cost, at_once;
    Bcast, "binomial", Nothing, bcast_binomial::emit, bcast_binomial::cost, at_once;
    Bcast, "chain" / [2, 4, 8, 16, 64], Nothing, bcast_chain::emit, bcast_chain::cost, at_once;
    Gather, "binomial", Even, gather_binomial::emit, gather_binomial::cost;
    Gather, "linear", Nothing, gather_linear::emit, gather_linear::cost;
    Gather, "shm" / KILOBYTES, EvenShm, gather_shm::emit, gather_shm::cost;
    Scatter, "binomial", Even, scatter_binomial::emit, scatter_binomial::cost;
    Scatter, "shm" / KILOBYTES, EvenShm, scatter_shm::emit, scatter_shm::cost;
    Scatter, "linear", Nothing, scatter_linear::emit, scatter_linear::cost;
    Allgather, "shm" / KILOBYTES, EvenShm, allgather_shm::emit, allgather_shm::cost, at_once;
    Allgather, "bruck", Even, allgather_bruck::emit, allgather_bruck::cost, at_once;
    Allgather, "doubling", EvenPowerOfTwo, allgather_doubling::emit, allgather_doubling::cost, at_once;
    Allgather, "gather_bcast" / [4, 32], Even, allgather_gather_bcast::emit, allgather_gather_bcast::cost, at_once;
    Allgather, "neighbour", Pairs, allgather_neighbour::emit, allgather_neighbour::cost, at_once;
    Allgather, "nodes", NodesEven, allgather_nodes::emit, allgather_nodes::cost, at_once;
    Allgather, "spread", Nothing, allgather_spread::emit, allgather_spread::cost, at_once;
    Allgather, "fetch", Nothing, allgather_fetch::emit, allgather_fetch::cost, at_once;
    Allgather, "ring", Nothing, allgather_ring::emit, allgather_ring::cost, at_once;
    Alltoall, "shm" / KILOBYTES, EvenShm, alltoall_shm::emit, alltoall_shm::cost, at_once;
    Alltoall, "bruck", EvenApart, alltoall_bruck::emit, alltoall_bruck::cost, at_once;
    Alltoall, "in_place", InPlace, alltoall_in_place::emit, alltoall_in_place::cost, at_once;
    Alltoall, "nodes", NodesEvenApart, alltoall_nodes::emit, alltoall_nodes::cost, at_once;
    Alltoall, "spread", Apart, alltoall_spread::emit, alltoall_spread::cost, at_once;
    Alltoall, "fetch", Apart, alltoall_fetch::emit, alltoall_fetch::cost, at_once;
    Alltoall, "pairwise", Apart, alltoall_pairwise::emit, alltoall_pairwise::cost, at_once;
    Reduce, "shm_levels" / [4, 8, 16], ShortLevelsFold, reduce_shm_levels::emit, reduce_shm_levels::cost, at_once;
    Reduce, "shm_tree" / [4, 8, 16], ShortShm, reduce_shm_tree::emit, reduce_shm_tree::cost, at_once;
    Reduce, "shm_parts" / KILOBYTES, Shm, reduce_shm_parts::emit, reduce_shm_parts::cost, at_once;
    Reduce, "nodes", NodesFold, reduce_nodes::emit, reduce_nodes::cost;
    Reduce, "linear", Nothing, reduce_linear::emit, reduce_linear::cost, at_once;
    Reduce, "rabenseifner", Commutes, reduce_rabenseifner::emit, reduce_rabenseifner::cost, at_once;
    Reduce, "binomial", Nothing, reduce_binomial::emit, reduce_binomial::cost, at_once;
    Reduce, "chain" / [2, 4, 8, 16, 64], Nothing, reduce_chain::emit, reduce_chain::cost, at_once;
    Reduce, "shm" / KILOBYTES, Shm, reduce_shm::emit, reduce_shm::cost, at_once;
    Allreduce, "shm_levels" / [4, 8, 16], ShortLevelsFold, allreduce_shm_levels::emit, allreduce_shm_levels::cost, at_once;
    Allreduce, "shm_tree" / [4, 8, 16], ShortShm, allreduce_shm_tree::emit, allreduce_shm_tree::cost, at_once;
    Allreduce, "shm_parts" / KILOBYTES, Shm, allreduce_shm_parts::emit, reduce_shm_parts::cost, at_once;
    Allreduce, "shm" / KILOBYTES, Shm, allreduce_shm::emit, allreduce_shm::cost, at_once;
    Allreduce, "doubling", Nothing, allreduce_doubling::emit, allreduce_doubling::cost, at_once;
    Allreduce, "nodes", NodesFold, allreduce_nodes::emit, allreduce_nodes::cost, at_once;
    Allreduce, "nodes_split", NodesFold, allreduce_nodes_split::emit, allreduce_nodes_split::cost, at_once;
    Allreduce, "linear", Nothing, allreduce_linear::emit, allreduce_linear::cost, at_once;
    Allreduce, "ring", Commutes, allreduce_ring::emit, allreduce_ring::cost, at_once;
    Allreduce, "rabenseifner", Commutes, allreduce_rabenseifner::emit, allreduce_rabenseifner::cost, at_once;
    Allreduce, "shm_root" / KILOBYTES, Shm, allreduce_shm_root::emit, allreduce_shm_root::cost, at_once;
    ReduceScatter, "pairwise", Commutes, reduce_scatter_pairwise::emit, reduce_scatter_pairwise::cost, at_once;
    ReduceScatter, "reduce_scatterv" / [4, 32], Nothing, reduce_scatter_reduce_scatterv::emit, reduce_scatter_reduce_scatterv::cost, at_once;
    ReduceScatter, "halving", Commutes, reduce_scatter_halving::emit, reduce_scatter_halving::cost, at_once;
    ReduceScatter, "shm" / KILOBYTES, Shm, reduce_scatter_shm::emit, reduce_scatter_shm::cost, at_once;
    Scan, "doubling", Nothing, scan_doubling::emit, scan_doubling::cost, at_once;
    Scan, "chain", Nothing, scan_chain::emit, scan_chain::cost;
    Scan, "shm" / KILOBYTES, Shm, scan_shm::emit, scan_shm::cost;
    Exscan, "doubling", Nothing, exscan_doubling::emit, exscan_doubling::cost, at_once;
    Exscan, "chain", Nothing, scan_chain::emit_exclusive, scan_chain::cost;
    Exscan, "shm" / KILOBYTES, Shm, scan_shm::emit_exclusive, scan_shm::cost_exclusive;
    NeighborAllgather, "spread", Nothing, neighbor_spread::emit_allgather, neighbor_spread::cost;
    NeighborAlltoall, "spread", Nothing, neighbor_spread::emit_alltoall, neighbor_spread::cost;
}
