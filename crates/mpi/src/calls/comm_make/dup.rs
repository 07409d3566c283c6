//! Duplicates of communicators (MPI 5.0, 7.4.2).

use super::{Parent, precedes, spans};
use crate::calls::attr::{copy_all, delete_all};
use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm::{add_comm, forget, hints, same_hints};
use crate::calls::p2p::running;
use crate::group_collectives::Members;
use kw_base::ContextId;
use kw_objects::Comm;
use kw_objects::attributes::Owner;
use kw_objects::error::{Class, Fault, Res};
use kw_objects::handle::{CommH, InfoH, RequestH};
use kw_objects::info::Info;
use kw_objects::request::{self, Flight, Then};
use kw_objects::state::{Mpi, State};
use kw_sys::args::Out;
use kw_sys::buf::Buf;
use kw_types::comm::UNKNOWN;

/// MPI_Comm_dup
pub fn comm_dup(mpi: &Mpi, comm: CommH, newcomm: Out<CommH>) -> Res {
    check::agree(mpi, comm, "comm_dup")?;
    let hints = mpi.lock().above.comms.get(comm)?.info.clone();
    duplicate(mpi, comm, hints, newcomm)
}

/// MPI_Comm_dup_with_info
pub fn comm_dup_with_info(mpi: &Mpi, comm: CommH, info: InfoH, newcomm: Out<CommH>) -> Res {
    let guard = mpi.lock();
    guard.above.comms.get(comm)?;
    let hints = guard.above.infos.get_or_null(info).map(hints);
    drop(guard);
    let hints = check::agree_on(mpi, comm, "comm_dup_with_info", hints, |_| {
        CheckedArguments::default()
    })?;
    same_hints(&Parent::new(mpi, comm)?.members, hints.as_deref())?;
    duplicate(mpi, comm, hints, newcomm)
}

fn duplicate(mpi: &Mpi, comm: CommH, hints: Option<Box<Info>>, newcomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let mut made = parent.make(parent.members.clone(), parent.remote.clone())?;
    made.info = hints;
    let guard = mpi.lock();
    let old = guard.above.comms.get(comm)?;
    (made.topology, made.nodes) = (old.topology.clone(), old.nodes.clone());
    made.levels = old.levels.clone();
    drop(guard);
    adopt(mpi, comm, made, newcomm)
}

/// Puts a duplicate into the table and copies the attributes; without them there is no duplicate.
pub(crate) fn adopt(mpi: &Mpi, old: CommH, made: Comm, newcomm: Out<CommH>) -> Res {
    let new = add_comm(&mut mpi.lock(), made);
    let copied = copy_all(mpi, Owner::Comm(old), Owner::Comm(new));
    if copied.is_err() {
        // The caller must get the copy function's code; that of a delete function would hide it.
        let _ = delete_all(mpi, Owner::Comm(new));
        forget(mpi, new)?;
        newcomm.set(CommH::NULL);
        return copied;
    }
    newcomm.set(new);
    Ok(())
}

/// MPI_Comm_idup
pub fn comm_idup(mpi: &Mpi, comm: CommH, newcomm: Out<CommH>, request: Out<RequestH>) -> Res {
    let hints = mpi.lock().above.comms.get(comm)?.info.clone();
    duplicate_later(mpi, (comm, "comm_idup"), hints, newcomm, request)
}

/// MPI_Comm_idup_with_info
pub fn comm_idup_with_info(
    mpi: &Mpi,
    comm: CommH,
    info: InfoH,
    newcomm: Out<CommH>,
    request: Out<RequestH>,
) -> Res {
    let guard = mpi.lock();
    guard.above.comms.get(comm)?;
    let hints = hints(guard.above.infos.get_or_null(info)?);
    drop(guard);
    let call = (comm, "comm_idup_with_info");
    duplicate_later(mpi, call, hints, newcomm, request)
}

/// One process chooses a fresh context id and sends it to all others, each of which posts a receive
/// for it: no process needs to be in MPI at any time for the others to continue.
fn duplicate_later(
    mpi: &Mpi,
    (comm, name): (CommH, &str),
    hints: Option<Box<Info>>,
    newcomm: Out<CommH>,
    request: Out<RequestH>,
) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let Members { group, rank, .. } = parent.members.clone();
    if spans(mpi, &[&group, parent.remote.as_deref().unwrap_or(&group)]) {
        // No process can choose for several jobs: they agree now.
        duplicate(mpi, comm, hints, newcomm)?;
        request.set(RequestH::DONE);
        return Ok(());
    }
    let first = group.peer(0);
    let chooser = match &parent.remote {
        Some(remote) if precedes(mpi, remote.peer(0), first) => remote.peer(0),
        _ => first,
    };
    let chooses = group.peer(rank) == chooser;
    let id = if chooses { fresh(mpi)? } else { UNKNOWN };
    let mut made = parent.heir(Comm::new(id, group, parent.remote.clone(), rank));
    made.info = hints;
    made.topology = mpi.lock().above.comms.get(comm)?.topology.clone();
    adopt(mpi, comm, made, newcomm)?;
    let word = Buf::alloc(4);
    word.write(0, &id.0.to_ne_bytes());
    let mut guard = mpi.lock();
    let run = check::tell(&mut guard, comm, name, &word)?;
    let (engine, tables) = running(&mut guard)?;
    let flight = Flight {
        id: engine.launch(run),
        comm,
        from: None,
        receives: false,
    };
    let then = learn_context(newcomm.get(), word);
    request.set(tables.new_request(request::Kind::Then(flight, Some(then))));
    Ok(())
}

/// Action of the request when the id has arrived.
fn learn_context(comm: CommH, word: Buf) -> Then {
    Box::new(move |state: &mut State| {
        let mut id = [0; 4];
        word.read(0, &mut id);
        state.above.comms.get_mut(comm)?.context = ContextId(u32::from_ne_bytes(id));
        Ok(())
    })
}

fn fresh(mpi: &Mpi) -> Res<ContextId> {
    let mut guard = mpi.lock();
    let id = guard
        .above
        .comms
        .contexts
        .as_mut()
        .and_then(|p| p.propose_fresh());
    id.ok_or_else(|| {
        Fault::new(
            Class::Other,
            "every context id was used before; use MPI_Comm_dup",
        )
    })
}
