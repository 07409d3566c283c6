//! Buffers for buffered sends (MPI 5.0, 3.6), of the process, a communicator or a session.

use crate::calls::p2p::running;
use kw_engine::WaitOn;
use kw_objects::buffered::Owner;
use kw_objects::error::{Class, Fault, Res};
use kw_objects::handle::{CommH, RequestH, SessionH};
use kw_objects::request::Kind;
use kw_objects::state::{Guard, Mpi};
use kw_sys::args::{Out, OutInt};
use kw_sys::buf::Addr;

/// The communicator as owner of a buffer, if it exists.
fn of_comm(guard: &Guard<'_>, comm: CommH) -> Res<Owner> {
    guard.above.comms.get(comm).map(|_| Owner::Comm(comm))
}

/// The session as owner of a buffer, if it exists.
fn of_session(guard: &Guard<'_>, session: SessionH) -> Res<Owner> {
    guard
        .above
        .sessions
        .get(session)
        .map(|_| Owner::Session(session))
}

/// Waits until every message in a buffer has left.
fn flush<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, owner: Owner) -> Res<Guard<'a>> {
    let mut lost = None;
    loop {
        let (engine, tables) = running(&mut guard)?;
        lost = lost.or(tables.buffers.sweep(owner, engine));
        let Some(id) = tables.buffers.oldest(owner, u64::MAX, engine) else {
            return lost.map_or(Ok(guard), Err);
        };
        let on = WaitOn {
            requests: &[id],
            from: None,
            ..WaitOn::default()
        };
        guard = mpi.lock.wait(guard, on, |s| {
            s.engine
                .as_ref()
                .is_none_or(|e| e.messages.requests().is_done(id))
        });
    }
}

fn detach<'a>(
    mpi: &'a Mpi,
    guard: Guard<'a>,
    owner: Owner,
    buffer_addr: Out<usize>,
    size: OutInt,
) -> Res {
    if !guard.above.buffers.is_attached(owner) {
        return Err(owner.on(Fault::new(Class::Buffer, "no buffer is attached here")));
    }
    let mut guard = flush(mpi, guard, owner)?;
    if let Some((addr, len)) = guard.above.buffers.detach(owner) {
        buffer_addr.set(addr);
        size.set(len as i64);
    }
    Ok(())
}

/// Detaches the buffer of an owner that is being freed, after it is empty.
pub(crate) fn let_go(mpi: &Mpi, owner: Owner) -> Res {
    let guard = mpi.lock();
    if !guard.above.buffers.is_attached(owner) {
        return Ok(());
    }
    // It is empty also when a message in it was lost.
    let flushed = flush(mpi, guard, owner).map(drop);
    mpi.lock().above.buffers.detach(owner);
    flushed
}

fn iflush(mut guard: Guard<'_>, owner: Owner, request: Out<RequestH>) -> Res {
    let (engine, tables) = running(&mut guard)?;
    let last = tables.buffers.last(owner);
    let handle = match tables.buffers.oldest(owner, last, engine) {
        Some(_) => tables.new_request(Kind::Flush(owner, last)),
        None => RequestH::DONE,
    };
    request.set(handle);
    Ok(())
}

/// MPI_Buffer_attach
pub fn buffer_attach(mpi: &Mpi, buffer: Addr, size: i64) -> Res {
    let mut guard = mpi.lock();
    guard
        .above
        .buffers
        .attach(Owner::Process, buffer.bits(), size)
}

/// MPI_Buffer_detach
pub fn buffer_detach(mpi: &Mpi, buffer_addr: Out<usize>, size: OutInt) -> Res {
    detach(mpi, mpi.lock(), Owner::Process, buffer_addr, size)
}

/// MPI_Buffer_flush
pub fn buffer_flush(mpi: &Mpi) -> Res {
    flush(mpi, mpi.lock(), Owner::Process).map(drop)
}

/// MPI_Buffer_iflush
pub fn buffer_iflush(mpi: &Mpi, request: Out<RequestH>) -> Res {
    iflush(mpi.lock(), Owner::Process, request)
}

/// MPI_Comm_attach_buffer
pub fn comm_attach_buffer(mpi: &Mpi, comm: CommH, buffer: Addr, size: i64) -> Res {
    let mut guard = mpi.lock();
    let owner = of_comm(&guard, comm)?;
    guard.above.buffers.attach(owner, buffer.bits(), size)
}

/// MPI_Comm_detach_buffer
pub fn comm_detach_buffer(mpi: &Mpi, comm: CommH, buffer_addr: Out<usize>, size: OutInt) -> Res {
    let guard = mpi.lock();
    let owner = of_comm(&guard, comm)?;
    detach(mpi, guard, owner, buffer_addr, size)
}

/// MPI_Comm_flush_buffer
pub fn comm_flush_buffer(mpi: &Mpi, comm: CommH) -> Res {
    let guard = mpi.lock();
    let owner = of_comm(&guard, comm)?;
    flush(mpi, guard, owner).map(drop)
}

/// MPI_Comm_iflush_buffer
pub fn comm_iflush_buffer(mpi: &Mpi, comm: CommH, request: Out<RequestH>) -> Res {
    let guard = mpi.lock();
    let owner = of_comm(&guard, comm)?;
    iflush(guard, owner, request)
}

/// MPI_Session_attach_buffer
pub fn session_attach_buffer(mpi: &Mpi, session: SessionH, buffer: Addr, size: i64) -> Res {
    let mut guard = mpi.lock();
    let owner = of_session(&guard, session)?;
    guard.above.buffers.attach(owner, buffer.bits(), size)
}

/// MPI_Session_detach_buffer
pub fn session_detach_buffer(
    mpi: &Mpi,
    session: SessionH,
    buffer_addr: Out<usize>,
    size: OutInt,
) -> Res {
    let guard = mpi.lock();
    let owner = of_session(&guard, session)?;
    detach(mpi, guard, owner, buffer_addr, size)
}

/// MPI_Session_flush_buffer
pub fn session_flush_buffer(mpi: &Mpi, session: SessionH) -> Res {
    let guard = mpi.lock();
    let owner = of_session(&guard, session)?;
    flush(mpi, guard, owner).map(drop)
}

/// MPI_Session_iflush_buffer
pub fn session_iflush_buffer(mpi: &Mpi, session: SessionH, request: Out<RequestH>) -> Res {
    let guard = mpi.lock();
    let owner = of_session(&guard, session)?;
    iflush(guard, owner, request)
}
