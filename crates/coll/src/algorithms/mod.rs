//! The algorithms: one file each, one row each in [`ALL`].

use super::{Ask, Coll, Schedule};

pub mod allgather_board;
pub mod allgather_bruck;
pub mod allgather_doubling;
pub mod allgather_fetch;
pub mod allgather_gather_bcast;
pub mod allgather_neighbour;
pub mod allgather_nodes;
pub mod allgather_ring;
pub mod allgather_spread;
pub mod allreduce_board;
pub mod allreduce_board_parts;
pub mod allreduce_board_root;
pub mod allreduce_board_tree;
pub mod allreduce_doubling;
pub mod allreduce_linear;
pub mod allreduce_nodes;
pub mod allreduce_nodes_split;
pub mod allreduce_rabenseifner;
pub mod allreduce_reduce_bcast;
pub mod allreduce_ring;
pub mod alltoall_board;
pub mod alltoall_bruck;
pub mod alltoall_fetch;
pub mod alltoall_in_place;
pub mod alltoall_nodes;
pub mod alltoall_pairwise;
pub mod alltoall_spread;
pub mod barrier_board;
pub mod barrier_board_tree;
pub mod barrier_dissemination;
pub mod barrier_nodes;
pub mod barrier_tree;
pub mod bcast_binomial;
pub mod bcast_board;
pub mod bcast_board_tree;
pub mod bcast_chain;
pub mod bcast_linear;
pub mod bcast_nodes;
pub mod bcast_nodes_chain;
pub mod bcast_scatter_doubling;
pub mod bcast_scatter_ring;
pub mod exscan_doubling;
pub mod gather_binomial;
pub mod gather_linear;
pub mod neighbor_spread;
pub mod reduce_binomial;
pub mod reduce_board;
pub mod reduce_board_parts;
pub mod reduce_board_tree;
pub mod reduce_chain;
pub mod reduce_linear;
pub mod reduce_nodes;
pub mod reduce_rabenseifner;
pub mod reduce_scatter_board;
pub mod reduce_scatter_halving;
pub mod reduce_scatter_pairwise;
pub mod reduce_scatter_reduce_scatterv;
pub mod scan_chain;
pub mod scan_doubling;
pub mod scatter_binomial;
pub mod scatter_linear;

/// What an algorithm cannot do without. All ranks judge it alike.
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
    /// One node, and its ranks have a board whose long shelves hold the data in not too many
    /// pieces.
    Board,
    /// A board, as for `Board`, and equal blocks.
    EvenBoard,
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
    /// Whether the call gives it.
    pub fn met(self, ask: &Ask) -> bool {
        let even = || ask.send.is_even() && ask.recv.is_even();
        match self {
            Need::Nothing => true,
            Need::Commutes => ask.commutative,
            Need::Even => even(),
            Need::EvenPowerOfTwo => even() && ask.size.is_power_of_two(),
            Need::Pairs => ask.size.is_multiple_of(2),
            Need::InPlace => ask.in_place,
            Need::EvenApart => even() && !ask.in_place,
            Need::Apart => !ask.in_place,
            Need::Board => on_board(ask),
            Need::EvenBoard => even() && on_board(ask),
            Need::Nodes => ask.nodes.is_some(),
            Need::NodesFold => ask
                .nodes
                .is_some_and(|n| ask.commutative || n.are_in_order()),
            Need::NodesEven => ask.nodes.is_some() && even(),
            Need::NodesEvenApart => ask.nodes.is_some() && even() && !ask.in_place,
        }
    }
}

/// Whether board algorithms can do the call: long shelves must have some units for every rank, and
/// the number of pieces must fit into the stages.
fn on_board(ask: &Ask) -> bool {
    if ask.board.is_none() || ask.nodes.is_some() {
        return false;
    }
    let quarter = ask.shelf_units().1 / 4;
    let data = ask
        .count
        .max(ask.block_bytes.saturating_mul(ask.size as u64));
    quarter >= ask.size as u64 && data < MOST_PIECES * quarter
}

/// Quarters of a long shelf that the data of one collective may fill.
const MOST_PIECES: u64 = 10_000;

/// One algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// Which collective it performs.
    pub coll: Coll,
    /// Its name in the table.
    pub name: &'static str,
    /// What it needs.
    pub need: Need,
    /// Emits one rank's schedule.
    pub emit: fn(&Ask, &mut Schedule),
}

macro_rules! algorithms {
    ($($coll:ident, $name:literal, $need:ident, $emit:path;)*) => {
        /// Every algorithm.
        pub const ALL: &[Algorithm] = &[$(Algorithm {
            coll: Coll::$coll,
            name: $name,
            need: Need::$need,
            emit: $emit,
        },)*];
    };
}

// The collective, the algorithm's name in the table, what it needs, and what emits it.
algorithms! {
    Barrier, "board_tree", Board, barrier_board_tree::emit;
    Barrier, "board", Board, barrier_board::emit;
    Barrier, "dissemination", Nothing, barrier_dissemination::emit;
    Barrier, "nodes", Nodes, barrier_nodes::emit;
    Barrier, "tree", Nothing, barrier_tree::emit;
    Bcast, "board_tree", Board, bcast_board_tree::emit;
    Bcast, "board", Board, bcast_board::emit;
    Bcast, "binomial", Nothing, bcast_binomial::emit;
    Bcast, "chain", Nothing, bcast_chain::emit;
    Bcast, "nodes", Nodes, bcast_nodes::emit;
    Bcast, "nodes_chain", Nodes, bcast_nodes_chain::emit;
    Bcast, "linear", Nothing, bcast_linear::emit;
    Bcast, "scatter_doubling", Nothing, bcast_scatter_doubling::emit;
    Bcast, "scatter_ring", Nothing, bcast_scatter_ring::emit;
    Gather, "binomial", Even, gather_binomial::emit;
    Gather, "linear", Nothing, gather_linear::emit;
    Scatter, "binomial", Even, scatter_binomial::emit;
    Scatter, "linear", Nothing, scatter_linear::emit;
    Allgather, "board", EvenBoard, allgather_board::emit;
    Allgather, "bruck", Even, allgather_bruck::emit;
    Allgather, "doubling", EvenPowerOfTwo, allgather_doubling::emit;
    Allgather, "gather_bcast", Even, allgather_gather_bcast::emit;
    Allgather, "neighbour", Pairs, allgather_neighbour::emit;
    Allgather, "nodes", NodesEven, allgather_nodes::emit;
    Allgather, "ring", Nothing, allgather_ring::emit;
    Allgather, "spread", Nothing, allgather_spread::emit;
    Allgather, "fetch", Nothing, allgather_fetch::emit;
    Alltoall, "board", EvenBoard, alltoall_board::emit;
    Alltoall, "bruck", EvenApart, alltoall_bruck::emit;
    Alltoall, "in_place", InPlace, alltoall_in_place::emit;
    Alltoall, "nodes", NodesEvenApart, alltoall_nodes::emit;
    Alltoall, "pairwise", Apart, alltoall_pairwise::emit;
    Alltoall, "spread", Apart, alltoall_spread::emit;
    Alltoall, "fetch", Apart, alltoall_fetch::emit;
    Reduce, "board_tree", Board, reduce_board_tree::emit;
    Reduce, "board_parts", Board, reduce_board_parts::emit;
    Reduce, "board", Board, reduce_board::emit;
    Reduce, "binomial", Nothing, reduce_binomial::emit;
    Reduce, "chain", Nothing, reduce_chain::emit;
    Reduce, "nodes", NodesFold, reduce_nodes::emit;
    Reduce, "linear", Nothing, reduce_linear::emit;
    Reduce, "rabenseifner", Commutes, reduce_rabenseifner::emit;
    Allreduce, "board_tree", Board, allreduce_board_tree::emit;
    Allreduce, "board_parts", Board, allreduce_board_parts::emit;
    Allreduce, "board_root", Board, allreduce_board_root::emit;
    Allreduce, "board", Board, allreduce_board::emit;
    Allreduce, "doubling", Nothing, allreduce_doubling::emit;
    Allreduce, "nodes", NodesFold, allreduce_nodes::emit;
    Allreduce, "nodes_split", NodesFold, allreduce_nodes_split::emit;
    Allreduce, "linear", Nothing, allreduce_linear::emit;
    Allreduce, "rabenseifner", Commutes, allreduce_rabenseifner::emit;
    Allreduce, "reduce_bcast", Nothing, allreduce_reduce_bcast::emit;
    Allreduce, "ring", Commutes, allreduce_ring::emit;
    ReduceScatter, "board", Board, reduce_scatter_board::emit;
    ReduceScatter, "halving", Commutes, reduce_scatter_halving::emit;
    ReduceScatter, "pairwise", Commutes, reduce_scatter_pairwise::emit;
    ReduceScatter, "reduce_scatterv", Nothing, reduce_scatter_reduce_scatterv::emit;
    Scan, "chain", Nothing, scan_chain::emit;
    Scan, "doubling", Nothing, scan_doubling::emit;
    Exscan, "chain", Nothing, scan_chain::emit_exclusive;
    Exscan, "doubling", Nothing, exscan_doubling::emit;
    NeighborAllgather, "spread", Nothing, neighbor_spread::emit_allgather;
    NeighborAlltoall, "spread", Nothing, neighbor_spread::emit_alltoall;
}
