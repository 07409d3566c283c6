//! Probes, and receives of matched messages (MPI 5.0, 3.8).

use crate::calls::coll::wait_serving;
use crate::calls::p2p::form::Started;
use crate::calls::p2p::{from, running, want};
use kw_engine::{Engine, Failure, Found, MessageId, WaitOn, Want};
use kw_objects::error::Res;
use kw_objects::handle::{CommH, MessageH, TypeH};
use kw_objects::message::Message;
use kw_objects::request::{Flight, explain};
use kw_objects::state::{Guard, Mpi, State};
use kw_objects::status::{FROM_PROC_NULL, received};
use kw_sys::args::{Out, Status, StatusOut};
use kw_sys::buf::{Addr, Buf};

fn status_of(found: &Found) -> Status {
    received(found.source, found.tag, found.len)
}

/// Probes; if nothing is there, progresses and probes again. Returns an error if the source has
/// left and this has gone on for long.
#[inline]
fn look<T>(
    guard: &mut Guard<'_>,
    want: &Want,
    comm: CommH,
    mut find: impl FnMut(&mut Engine) -> Option<T>,
) -> Res<Option<T>> {
    running(guard)?;
    let mut end = Ok(());
    let found = guard.poll(
        |s| s.engine.as_mut().and_then(&mut find),
        |s| {
            // From any source: the program may continue to probe until no message has arrived for a
            // while.
            if let (Some(engine), Some(_)) = (&mut s.engine, want.source) {
                engine.doubt(on(want));
                end = hopeless(engine, want, comm);
            }
        },
    );
    match found {
        Some(found) => Ok(Some(found)),
        None => end.map(|()| None),
    }
}

fn on(want: &Want) -> WaitOn<'_> {
    WaitOn {
        requests: &[],
        from: from(want),
        probe: Some(want),
        ..WaitOn::default()
    }
}

/// Reason why no message can arrive: all possible senders have left.
fn never_comes(engine: &Engine, want: &Want) -> Option<Failure> {
    engine.departed.never_comes(&engine.messages, want)
}

fn hopeless(engine: &Engine, want: &Want, comm: CommH) -> Res {
    never_comes(engine, want).map_or(Ok(()), |f| Err(explain(f).on(comm)))
}

/// MPI_Probe
pub fn probe(mpi: &Mpi, source: i32, tag: i32, comm: CommH, status: StatusOut) -> Res {
    let guard = mpi.lock();
    let Some(want) = want(guard.above.comms.get(comm)?, source, tag)? else {
        status.set_keeping_error(FROM_PROC_NULL);
        return Ok(());
    };
    let mut found = None;
    let mut guard = wait_serving(mpi, guard, on(&want), |s| match &mut s.engine {
        Some(engine) => {
            found = engine.messages.probe(want);
            found.is_some() || never_comes(engine, &want).is_some()
        }
        None => true,
    });
    let (engine, _) = running(&mut guard)?;
    match found {
        Some(found) => {
            status.set_keeping_error(status_of(&found));
            Ok(())
        }
        None => hopeless(engine, &want, comm),
    }
}

/// MPI_Iprobe
pub fn iprobe(
    mpi: &Mpi,
    source: i32,
    tag: i32,
    comm: CommH,
    flag: Out<i32>,
    status: StatusOut,
) -> Res {
    let mut guard = mpi.lock();
    let Some(want) = want(guard.above.comms.get(comm)?, source, tag)? else {
        status.set_keeping_error(FROM_PROC_NULL);
        flag.set(1);
        return Ok(());
    };
    let found = look(&mut guard, &want, comm, |engine| {
        engine.messages.probe(want)
    })?;
    flag.set(found.is_some() as i32);
    if let Some(found) = found {
        status.set_keeping_error(status_of(&found));
    }
    Ok(())
}

/// Returns a message taken off the queue to the caller.
fn hand_over(
    state: &mut State,
    comm: CommH,
    taken: (MessageId, Found),
    message: Out<MessageH>,
    status: StatusOut,
) -> Res {
    let (id, found) = taken;
    let from = state.above.comms.get(comm)?.target().peer(found.source);
    let key = state.above.messages.insert(Message { id, comm, from });
    message.set(MessageH::from_key(key));
    status.set_keeping_error(status_of(&found));
    Ok(())
}

/// MPI_Mprobe
pub fn mprobe(
    mpi: &Mpi,
    source: i32,
    tag: i32,
    comm: CommH,
    message: Out<MessageH>,
    status: StatusOut,
) -> Res {
    let guard = mpi.lock();
    let Some(want) = want(guard.above.comms.get(comm)?, source, tag)? else {
        message.set(MessageH::NO_PROC);
        status.set_keeping_error(FROM_PROC_NULL);
        return Ok(());
    };
    let mut taken = None;
    let mut guard = wait_serving(mpi, guard, on(&want), |s| match &mut s.engine {
        Some(engine) => {
            taken = engine.messages.take_message(want);
            taken.is_some() || never_comes(engine, &want).is_some()
        }
        None => true,
    });
    let (engine, _) = running(&mut guard)?;
    match taken {
        Some(taken) => hand_over(&mut guard, comm, taken, message, status),
        None => hopeless(engine, &want, comm),
    }
}

/// MPI_Improbe
pub fn improbe(
    mpi: &Mpi,
    source: i32,
    tag: i32,
    comm: CommH,
    flag: Out<i32>,
    message: Out<MessageH>,
    status: StatusOut,
) -> Res {
    let mut guard = mpi.lock();
    let Some(want) = want(guard.above.comms.get(comm)?, source, tag)? else {
        message.set(MessageH::NO_PROC);
        status.set_keeping_error(FROM_PROC_NULL);
        flag.set(1);
        return Ok(());
    };
    let taken = look(&mut guard, &want, comm, |engine| {
        engine.messages.take_message(want)
    })?;
    flag.set(taken.is_some() as i32);
    match taken {
        Some(taken) => hand_over(&mut guard, comm, taken, message, status),
        None => Ok(()),
    }
}

/// Starts to receive a matched message; its handle is invalid from then on. `None` for
/// MPI_MESSAGE_NO_PROC.
fn start(
    state: &mut State,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    message: Out<MessageH>,
) -> Res<Option<Flight>> {
    let handle = message.get();
    if handle == MessageH::NO_PROC {
        message.set(MessageH::NULL);
        return Ok(None);
    }
    let (engine, tables) = running(state)?;
    let taken = tables.message(handle)?;
    let buf: Buf = tables
        .message_buf(buf, count, datatype)
        .map_err(|f| f.on(taken.comm))?;
    if let Some(key) = handle.key() {
        tables.messages.remove(key);
    }
    message.set(MessageH::NULL);
    let id = engine.messages.recv_message(taken.id, &buf);
    let id = id.ok_or_else(|| {
        kw_objects::Fault::new(kw_objects::Class::Request, "message was received already")
    })?;
    Ok(Some(Flight {
        id,
        comm: taken.comm,
        from: Some(taken.from),
        receives: true,
    }))
}

/// MPI_Mrecv
pub fn mrecv(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    message: Out<MessageH>,
    form: impl Started,
) -> Res {
    let mut guard = mpi.lock();
    let flight = start(&mut guard, buf, count, datatype, message)?;
    form.receive(mpi, guard, flight)
}
