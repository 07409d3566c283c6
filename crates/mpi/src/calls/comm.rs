//! Communicators: queries, hints, and freeing (MPI 5.0, 7.4).

use crate::calls::attr::delete_all;
use crate::calls::buffer::let_go;
use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm_make::Parent;
use crate::calls::p2p::running;
use crate::group_collectives::Members;
use kw_objects::attributes::Owner;
use kw_objects::buffered;
use kw_objects::error::{Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::info::{Info, ROWS_HINT};
use kw_objects::state::{Mpi, State};
use kw_objects::{Comm, Group};
use kw_sys::args::Out;
use kw_types::comm::UNKNOWN;

/// MPI_Comm_size
pub fn comm_size(mpi: &Mpi, comm: CommH, size: Out<i32>) -> Res {
    size.set(mpi.lock().above.comms.get(comm)?.local.size() as i32);
    Ok(())
}

/// MPI_Comm_rank
pub fn comm_rank(mpi: &Mpi, comm: CommH, rank: Out<i32>) -> Res {
    rank.set(mpi.lock().above.comms.get(comm)?.rank as i32);
    Ok(())
}

/// MPI_Comm_test_inter
pub fn comm_test_inter(mpi: &Mpi, comm: CommH, flag: Out<i32>) -> Res {
    flag.set(mpi.lock().above.comms.get(comm)?.is_inter() as i32);
    Ok(())
}

/// MPI_Comm_remote_size
pub fn comm_remote_size(mpi: &Mpi, comm: CommH, size: Out<i32>) -> Res {
    let guard = mpi.lock();
    let Some(remote) = &guard.above.comms.get(comm)?.remote else {
        return fail!(Comm: "comm is an intracommunicator, which has no remote group");
    };
    size.set(remote.size() as i32);
    Ok(())
}

/// MPI_Comm_set_info: unknown hints are ignored.
pub fn comm_set_info(mpi: &Mpi, comm: CommH, info: InfoH) -> Res {
    let guard = mpi.lock();
    guard.above.comms.get(comm)?;
    let new = guard.above.infos.get(info).cloned();
    drop(guard);
    let new = check::agree_on(mpi, comm, "comm_set_info", new, |_| {
        CheckedArguments::default()
    })?;
    let members = Members::of(mpi, mpi.lock().above.comms.get(comm)?);
    same_hints(&members, hints(Some(&new)).as_deref())?;
    let mut guard = mpi.lock();
    let (engine, tables) = running(&mut guard)?;
    let comm = tables.comms.get_mut(comm)?;
    comm.info.get_or_insert_default().take_comm_hints(&new);
    comm.read_hints();
    // They may select other algorithms.
    let plans = comm.plans.take();
    plans
        .into_iter()
        .for_each(|p| engine.parts.collectives.planner.close(p));
    Ok(())
}

/// MPI_Comm_get_info
pub fn comm_get_info(mpi: &Mpi, comm: CommH, info_used: Out<InfoH>) -> Res {
    let mut guard = mpi.lock();
    let hints = guard.above.comms.get(comm)?.info.as_deref().cloned();
    info_used.set(guard.above.infos.add(hints.unwrap_or_default()));
    Ok(())
}

/// Checks that hints by which ranks choose together are the same on all of them.
pub(crate) fn same_hints(members: &Members, hints: Option<&Info>) -> Res {
    let rows = hints.and_then(|h| h.get(ROWS_HINT));
    members.alike("the hint kw_coll", rows.unwrap_or_default())
}

/// The hints of a new communicator: those of the caller that we know.
pub(crate) fn hints(info: Option<&Info>) -> Option<Box<Info>> {
    let mut known = Info::default();
    known.take_comm_hints(info?);
    (!known.is_empty()).then(|| Box::new(known))
}

/// MPI_Comm_free. A buffer attached to it is detached when the messages in it have left.
pub fn comm_free(mpi: &Mpi, comm: Out<CommH>) -> Res {
    check_release(mpi, comm.get(), "comm_free")?;
    release(mpi, comm)
}

/// MPI_Comm_disconnect. Pending operations do not hold a communicator, but the processes of both
/// sides may separate afterwards: each waits for all to arrive here, so that earlier messages have
/// arrived.
pub fn comm_disconnect(mpi: &Mpi, comm: Out<CommH>) -> Res {
    check_release(mpi, comm.get(), "comm_disconnect")?;
    let parent = Parent::new(mpi, comm.get())?;
    match &parent.remote {
        None => parent.members.all(true)?,
        Some(remote) => parent.bridge(parent.members.clone(), remote).all(true)?,
    };
    release(mpi, comm)?;
    mpi.lock().above.part_from_spawned();
    Ok(())
}

/// Puts a communicator into the table, and tells the engine which processes send in it.
pub fn add_comm(state: &mut State, mut comm: Comm) -> CommH {
    if let Some(engine) = &mut state.engine {
        if let Some(remote) = &comm.remote {
            let leader = |g: &Group| engine.job.worlds.name_of(g.peer(0));
            comm.first = leader(&comm.local) < leader(remote);
        }
        let senders = comm.target();
        let others = senders.iter().any(|p| p.0 >= engine.job.size());
        let some = comm.remote.is_some() || senders.size() != engine.job.size() || others;
        // one of MPI_Comm_idup has no context yet, and is treated as one of the whole job
        if some && comm.context != UNKNOWN {
            engine.departed.set_senders(comm.context, senders.clone());
        }
    }
    state.above.add_comm(comm)
}

/// Removes a communicator from the table, and what the engine keeps for it.
pub fn forget(mpi: &Mpi, handle: CommH) -> Res {
    let mut guard = mpi.lock();
    let comm = guard.above.remove_comm(handle)?;
    if let Some(engine) = &mut guard.engine {
        engine.departed.forget_senders(comm.context);
        if let Some(shm_region) = comm.shm_region.id() {
            engine.parts.collectives.channels.leave(shm_region);
        }
        comm.plans
            .into_iter()
            .for_each(|p| engine.parts.collectives.planner.close(p));
    }
    Ok(())
}

fn check_release(mpi: &Mpi, handle: CommH, function: &str) -> Res {
    let guard = mpi.lock();
    let name = guard.above.comms.get(handle)?.name.clone();
    drop(guard);
    if handle.is_predefined() {
        return fail!(Comm: "comm is {name}, which cannot be freed");
    }
    check::agree(mpi, handle, function)
}

fn release(mpi: &Mpi, comm: Out<CommH>) -> Res {
    let handle = comm.get();
    delete_all(mpi, Owner::Comm(handle))?;
    let emptied = let_go(mpi, buffered::Owner::Comm(handle));
    forget(mpi, handle)?;
    comm.set(CommH::NULL);
    emptied
}

/// MPI_Comm_get_parent: MPI_COMM_NULL if this process was not spawned, or the communicator was
/// freed or disconnected.
pub fn comm_get_parent(mpi: &Mpi, parent: Out<CommH>) -> Res {
    let guard = mpi.lock();
    let there = guard
        .above
        .parent
        .filter(|&p| guard.above.comms.get(p).is_ok());
    parent.set(there.unwrap_or(CommH::NULL));
    Ok(())
}
