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
    /// One node, and its ranks have a board whose long shelves hold the data in not too many pieces.
    Board,
    /// The same, and equal blocks.
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

/// Whether board algorithms can do the call: long shelves must have some units for every rank, and the number of pieces
/// must fit into the stages.
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

const fn row(
    coll: Coll,
    name: &'static str,
    need: Need,
    emit: fn(&Ask, &mut Schedule),
) -> Algorithm {
    Algorithm {
        coll,
        name,
        need,
        emit,
    }
}

/// Every algorithm.
pub const ALL: &[Algorithm] = &[
    row(
        Coll::Barrier,
        "board_tree",
        Need::Board,
        barrier_board_tree::emit,
    ),
    row(Coll::Barrier, "board", Need::Board, barrier_board::emit),
    row(
        Coll::Barrier,
        "dissemination",
        Need::Nothing,
        barrier_dissemination::emit,
    ),
    row(Coll::Barrier, "nodes", Need::Nodes, barrier_nodes::emit),
    row(Coll::Barrier, "tree", Need::Nothing, barrier_tree::emit),
    row(
        Coll::Bcast,
        "board_tree",
        Need::Board,
        bcast_board_tree::emit,
    ),
    row(Coll::Bcast, "board", Need::Board, bcast_board::emit),
    row(Coll::Bcast, "binomial", Need::Nothing, bcast_binomial::emit),
    row(Coll::Bcast, "chain", Need::Nothing, bcast_chain::emit),
    row(Coll::Bcast, "nodes", Need::Nodes, bcast_nodes::emit),
    row(
        Coll::Bcast,
        "nodes_chain",
        Need::Nodes,
        bcast_nodes_chain::emit,
    ),
    row(Coll::Bcast, "linear", Need::Nothing, bcast_linear::emit),
    row(
        Coll::Bcast,
        "scatter_doubling",
        Need::Nothing,
        bcast_scatter_doubling::emit,
    ),
    row(
        Coll::Bcast,
        "scatter_ring",
        Need::Nothing,
        bcast_scatter_ring::emit,
    ),
    row(Coll::Gather, "binomial", Need::Even, gather_binomial::emit),
    row(Coll::Gather, "linear", Need::Nothing, gather_linear::emit),
    row(
        Coll::Scatter,
        "binomial",
        Need::Even,
        scatter_binomial::emit,
    ),
    row(Coll::Scatter, "linear", Need::Nothing, scatter_linear::emit),
    row(
        Coll::Allgather,
        "board",
        Need::EvenBoard,
        allgather_board::emit,
    ),
    row(Coll::Allgather, "bruck", Need::Even, allgather_bruck::emit),
    row(
        Coll::Allgather,
        "doubling",
        Need::EvenPowerOfTwo,
        allgather_doubling::emit,
    ),
    row(
        Coll::Allgather,
        "gather_bcast",
        Need::Even,
        allgather_gather_bcast::emit,
    ),
    row(
        Coll::Allgather,
        "neighbour",
        Need::Pairs,
        allgather_neighbour::emit,
    ),
    row(
        Coll::Allgather,
        "nodes",
        Need::NodesEven,
        allgather_nodes::emit,
    ),
    row(Coll::Allgather, "ring", Need::Nothing, allgather_ring::emit),
    row(
        Coll::Allgather,
        "spread",
        Need::Nothing,
        allgather_spread::emit,
    ),
    row(
        Coll::Allgather,
        "fetch",
        Need::Nothing,
        allgather_fetch::emit,
    ),
    row(
        Coll::Alltoall,
        "board",
        Need::EvenBoard,
        alltoall_board::emit,
    ),
    row(
        Coll::Alltoall,
        "bruck",
        Need::EvenApart,
        alltoall_bruck::emit,
    ),
    row(
        Coll::Alltoall,
        "in_place",
        Need::InPlace,
        alltoall_in_place::emit,
    ),
    row(
        Coll::Alltoall,
        "nodes",
        Need::NodesEvenApart,
        alltoall_nodes::emit,
    ),
    row(
        Coll::Alltoall,
        "pairwise",
        Need::Apart,
        alltoall_pairwise::emit,
    ),
    row(Coll::Alltoall, "spread", Need::Apart, alltoall_spread::emit),
    row(Coll::Alltoall, "fetch", Need::Apart, alltoall_fetch::emit),
    row(
        Coll::Reduce,
        "board_tree",
        Need::Board,
        reduce_board_tree::emit,
    ),
    row(
        Coll::Reduce,
        "board_parts",
        Need::Board,
        reduce_board_parts::emit,
    ),
    row(Coll::Reduce, "board", Need::Board, reduce_board::emit),
    row(
        Coll::Reduce,
        "binomial",
        Need::Nothing,
        reduce_binomial::emit,
    ),
    row(Coll::Reduce, "chain", Need::Nothing, reduce_chain::emit),
    row(Coll::Reduce, "nodes", Need::NodesFold, reduce_nodes::emit),
    row(Coll::Reduce, "linear", Need::Nothing, reduce_linear::emit),
    row(
        Coll::Reduce,
        "rabenseifner",
        Need::Commutes,
        reduce_rabenseifner::emit,
    ),
    row(
        Coll::Allreduce,
        "board_tree",
        Need::Board,
        allreduce_board_tree::emit,
    ),
    row(
        Coll::Allreduce,
        "board_parts",
        Need::Board,
        allreduce_board_parts::emit,
    ),
    row(
        Coll::Allreduce,
        "board_root",
        Need::Board,
        allreduce_board_root::emit,
    ),
    row(Coll::Allreduce, "board", Need::Board, allreduce_board::emit),
    row(
        Coll::Allreduce,
        "doubling",
        Need::Nothing,
        allreduce_doubling::emit,
    ),
    row(
        Coll::Allreduce,
        "nodes",
        Need::NodesFold,
        allreduce_nodes::emit,
    ),
    row(
        Coll::Allreduce,
        "nodes_split",
        Need::NodesFold,
        allreduce_nodes_split::emit,
    ),
    row(
        Coll::Allreduce,
        "linear",
        Need::Nothing,
        allreduce_linear::emit,
    ),
    row(
        Coll::Allreduce,
        "rabenseifner",
        Need::Commutes,
        allreduce_rabenseifner::emit,
    ),
    row(
        Coll::Allreduce,
        "reduce_bcast",
        Need::Nothing,
        allreduce_reduce_bcast::emit,
    ),
    row(
        Coll::Allreduce,
        "ring",
        Need::Commutes,
        allreduce_ring::emit,
    ),
    row(
        Coll::ReduceScatter,
        "board",
        Need::Board,
        reduce_scatter_board::emit,
    ),
    row(
        Coll::ReduceScatter,
        "halving",
        Need::Commutes,
        reduce_scatter_halving::emit,
    ),
    row(
        Coll::ReduceScatter,
        "pairwise",
        Need::Commutes,
        reduce_scatter_pairwise::emit,
    ),
    row(
        Coll::ReduceScatter,
        "reduce_scatterv",
        Need::Nothing,
        reduce_scatter_reduce_scatterv::emit,
    ),
    row(Coll::Scan, "chain", Need::Nothing, scan_chain::emit),
    row(Coll::Scan, "doubling", Need::Nothing, scan_doubling::emit),
    row(
        Coll::Exscan,
        "chain",
        Need::Nothing,
        scan_chain::emit_exclusive,
    ),
    row(
        Coll::Exscan,
        "doubling",
        Need::Nothing,
        exscan_doubling::emit,
    ),
    row(
        Coll::NeighborAllgather,
        "spread",
        Need::Nothing,
        neighbor_spread::emit_allgather,
    ),
    row(
        Coll::NeighborAlltoall,
        "spread",
        Need::Nothing,
        neighbor_spread::emit_alltoall,
    ),
];
