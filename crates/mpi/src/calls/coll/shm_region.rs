//! How the ranks of a communicator agree on a shm region, and what they do without one.
//!
//! In the first blocking collective, which itself still uses messages, the leader of each node
//! claims a shm region and sends its number to the node. With several nodes all ranks learn the
//! result of all nodes, since either all have a shm region or none. Nothing is agreed on if no two
//! ranks share a node. A persistent collective gets a shm region of its own in the same way, when
//! it is created.

use crate::calls::p2p::running;
use crate::group_collectives::{Members, Purpose};
use kw_coll::Nodes;
use kw_engine::{ChannelId, Engine};
use kw_objects::Comm;
use kw_objects::comm::CommRegion;
use kw_objects::error::Res;
use kw_objects::handle::CommH;
use kw_objects::state::{Guard, Mpi, State};
use std::sync::Arc;

/// Number sent by a leader whose node has no free shm region.
const NO_SHM_REGION: u32 = u32::MAX;

/// Whether the communicator must still agree.
#[inline]
pub(super) fn is_unknown(state: &State, comm: CommH) -> bool {
    let found = state.above.comms.get(comm);
    found.is_ok_and(|c| c.shm_region == CommRegion::Unknown) && !state.above.checking
}

/// Agrees with the other ranks.
#[cold]
pub(super) fn agree<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, comm: CommH) -> Res<Guard<'a>> {
    guard.above.comms.get_mut(comm)?.shm_region = CommRegion::None;
    drop(guard);
    let shm_region = negotiate(mpi, comm, |engine| engine.messages.shm_regions()?.claim())?;
    let mut guard = mpi.lock();
    if let Some(shm_region) = shm_region {
        // Plans that use messages are for callers without a shm region: none is taken for this one.
        guard.above.comms.get_mut(comm)?.shm_region = CommRegion::Some(shm_region);
    }
    Ok(guard)
}

/// A shm region for one persistent collective. All ranks ask for it before they check the
/// arguments, so that ranks with valid arguments do not wait for one whose arguments are invalid.
pub(super) fn own(mpi: &Mpi, comm: CommH) -> Res<Option<ChannelId>> {
    let guard = mpi.lock();
    let none = guard.above.checking || guard.above.comms.get(comm)?.is_inter();
    drop(guard);
    match none {
        true => Ok(None),
        false => negotiate(mpi, comm, |engine| {
            engine.messages.shm_regions()?.claim_spare()
        }),
    }
}

fn negotiate(
    mpi: &Mpi,
    comm: CommH,
    claim: impl FnOnce(&mut Engine) -> Option<u32>,
) -> Res<Option<ChannelId>> {
    let mut guard = mpi.lock();
    let (engine, tables) = running(&mut guard)?;
    let c = tables.comms.get_mut(comm)?;
    let nodes = c.nodes(engine.job.agreed()).cloned();
    if shares_nothing(c, nodes.as_deref()) {
        return Ok(None);
    }
    let (rank, leader) = (c.rank, leader(c.rank, nodes.as_deref()));
    let mut members = Members::of(mpi, c);
    members.purpose = Purpose::ShmRegion;
    let mine = match rank == leader {
        true => claim(engine).unwrap_or(NO_SHM_REGION),
        false => NO_SHM_REGION,
    };
    drop(guard);
    let number = spread(&members, nodes.as_ref(), leader, mine)?;
    let mut guard = mpi.lock();
    let (engine, _) = running(&mut guard)?;
    let opened = number.and_then(|n| {
        let channels = &mut engine.parts.collectives.channels;
        channels.open(&mut engine.messages, n, &members.group)
    });
    if opened.is_none()
        && mine != NO_SHM_REGION
        && let Some(shm_regions) = engine.messages.shm_regions()
    {
        shm_regions.unclaim(mine);
    }
    Ok(opened)
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

/// The number of this node's shm region, unless some node has none. Every rank passes `mine`, which
/// counts on the leader.
fn spread(
    members: &Members,
    nodes: Option<&Arc<Nodes>>,
    leader: u32,
    mine: u32,
) -> Res<Option<u32>> {
    let mut word = mine.to_ne_bytes();
    let Some(nodes) = nodes else {
        members.bcast(&mut word)?;
        return Ok(Some(u32::from_ne_bytes(word)).filter(|&n| n != NO_SHM_REGION));
    };
    let all = members.allgather(&word)?;
    let number_of = |rank: u32| {
        word.copy_from_slice(&all[rank as usize * 4..][..4]);
        u32::from_ne_bytes(word)
    };
    let mut leaders = (0..nodes.count()).map(|n| nodes.leader(n)).map(number_of);
    if leaders.any(|n| n == NO_SHM_REGION) {
        return Ok(None);
    }
    word.copy_from_slice(&all[leader as usize * 4..][..4]);
    Ok(Some(u32::from_ne_bytes(word)))
}

/// Plans with this shm region instead of the communicator's.
pub(super) fn with<R>(
    state: &mut State,
    comm: CommH,
    shm_region: Option<ChannelId>,
    plan: impl FnOnce(&mut State) -> Res<R>,
) -> Res<R> {
    let shm_region = shm_region.map_or(CommRegion::None, CommRegion::Some);
    let kept = match state.above.comms.get_mut(comm) {
        Ok(c) => std::mem::replace(&mut c.shm_region, shm_region),
        Err(_) => return plan(state),
    };
    let planned = plan(state);
    state.above.comms.get_mut(comm)?.shm_region = kept;
    planned
}
