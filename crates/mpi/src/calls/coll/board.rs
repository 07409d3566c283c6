//! How the ranks of a communicator come to a board, and how they do without.
//!
//! In the first blocking collective, which itself still goes by messages, the leader of each node claims a board and tells the
//! node its number. With several nodes everybody hears of everybody, since all have a board or nobody. Nothing is agreed upon
//! where no two ranks share a node.

use crate::calls::p2p::running;
use crate::error::Res;
use crate::handle::CommH;
use crate::internal::{Circle, Purpose};
use crate::objects::Comm;
use crate::objects::comm::Board;
use crate::state::{Guard, Mpi, State};
use kw_core::schedule::Nodes;
use std::sync::Arc;

/// Said by a leader whose node has no board to give.
const NO_BOARD: u32 = u32::MAX;

/// Whether the communicator must still agree.
#[inline]
pub(super) fn is_unknown(state: &State, comm: CommH) -> bool {
    let found = state.above.comm(comm);
    found.is_ok_and(|c| c.board == Board::Unknown) && !state.above.checking
}

/// Agrees with the other ranks.
#[cold]
pub(super) fn agree<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, comm: CommH) -> Res<Guard<'a>> {
    let (engine, tables) = running(&mut guard)?;
    let c = tables.comm_mut(comm)?;
    let nodes = c.nodes(engine.hosts()).cloned();
    c.board = Board::None;
    if shares_nothing(c, nodes.as_deref()) {
        return Ok(guard);
    }
    let (rank, leader) = (c.rank, leader(c.rank, nodes.as_deref()));
    let mut circle = Circle::of(mpi, c);
    circle.purpose = Purpose::Board;
    let mine = match rank == leader {
        true => engine.claim_board().unwrap_or(NO_BOARD),
        false => NO_BOARD,
    };
    drop(guard);
    let number = spread(&circle, nodes.as_ref(), leader, mine)?;
    let mut guard = mpi.lock();
    let (engine, tables) = running(&mut guard)?;
    let c = tables.comm_mut(comm)?;
    if let Some(number) = number
        && let Some(board) = engine.open_board(number, &c.local)
    {
        c.board = Board::Some(board);
    } else if mine != NO_BOARD {
        engine.unclaim_board(mine);
    }
    Ok(guard)
}

fn shares_nothing(c: &Comm, nodes: Option<&Nodes>) -> bool {
    match nodes {
        None => c.local.size() < 2,
        Some(nodes) => nodes.count() == c.local.size(),
    }
}

fn leader(rank: u32, nodes: Option<&Nodes>) -> u32 {
    nodes.map_or(0, |n| n.leader(n.of(rank)))
}

/// The number of this node's board, unless some node has none. Every rank says `mine`, which counts where it leads.
fn spread(circle: &Circle, nodes: Option<&Arc<Nodes>>, leader: u32, mine: u32) -> Res<Option<u32>> {
    let mut word = mine.to_ne_bytes();
    let Some(nodes) = nodes else {
        circle.bcast(&mut word)?;
        return Ok(Some(u32::from_ne_bytes(word)).filter(|&n| n != NO_BOARD));
    };
    let all = circle.allgather(&word)?;
    let said = |rank: u32| {
        word.copy_from_slice(&all[rank as usize * 4..][..4]);
        u32::from_ne_bytes(word)
    };
    let mut leaders = (0..nodes.count()).map(|n| nodes.leader(n)).map(said);
    if leaders.any(|n| n == NO_BOARD) {
        return Ok(None);
    }
    word.copy_from_slice(&all[leader as usize * 4..][..4]);
    Ok(Some(u32::from_ne_bytes(word)))
}

/// Plans as if there were no board.
pub(super) fn without<R>(
    state: &mut State,
    comm: CommH,
    plan: impl FnOnce(&mut State) -> Res<R>,
) -> Res<R> {
    let kept = match state.above.comm_mut(comm) {
        Ok(c) => std::mem::replace(&mut c.board, Board::None),
        Err(_) => return plan(state),
    };
    let planned = plan(state);
    state.above.comm_mut(comm)?.board = kept;
    planned
}
