//! Point-to-point communication (MPI 5.0, 3.2 to 3.7 and 3.10): sends, receives, and both at once.
//!
//! A blocking call that can end at once takes the lock once and allocates nothing; [`short`] does
//! this.

pub(crate) mod form;
mod short;

use crate::calls::coll::wait_serving;
use form::{Recv, Send, Started};
use kw_base::Peer;
use kw_engine::{Engine, SendMode, WaitOn, Want};
use kw_objects::comm::{ANY_SOURCE, Comm, PROC_NULL};
use kw_objects::error::{Res, fail};
use kw_objects::forms::{Blocking, Mode};
use kw_objects::handle::{CommH, RequestH, TypeH};
use kw_objects::request::{Flight, Outgoing, Part, land, not_running, part, refuse_shared};
use kw_objects::state::{Guard, Mpi, State, Tables};
use kw_objects::status::{ANY_TAG, EMPTY, FROM_PROC_NULL, received};
use kw_sys::args::{Out, Status, StatusOut};
use kw_sys::buf::{Addr, Buf};

/// The arguments that describe one end of a message.
#[derive(Clone, Copy)]
pub struct End {
    pub buf: Addr,
    pub count: i64,
    pub datatype: TypeH,
    pub rank: i32,
    pub tag: i32,
}

#[inline]
/// The engine and the tables, while MPI is running.
pub fn running(state: &mut State) -> Res<(&mut Engine, &mut Tables)> {
    match &mut state.engine {
        Some(engine) => Ok((engine, &mut state.above)),
        None => Err(not_running()),
    }
}

#[inline]
fn nonnegative(count: i64) -> Res {
    if count < 0 {
        return fail!(Count: "count is {count}, but must not be negative");
    }
    Ok(())
}

#[cold]
fn bad_tag<T>(tag: i32, but: &str) -> Res<T> {
    fail!(Tag: "tag is {tag}, but {but}")
}

/// The send that the arguments describe; `None` when it goes to MPI_PROC_NULL.
#[inline(always)]
pub(crate) fn outgoing(tables: &Tables, comm: CommH, end: &End) -> Res<Option<Outgoing>> {
    let c = tables.comms.get(comm)?;
    if end.tag < 0 {
        return bad_tag(end.tag, "the tag of a send must not be negative");
    }
    let Some(to) = c.peer(end.rank)? else {
        return nonnegative(end.count).map(|()| None);
    };
    Ok(Some(Outgoing {
        to,
        context: c.context,
        source: c.rank,
        tag: end.tag,
        buf: tables.message_buf(end.buf, end.count, end.datatype)?,
    }))
}

/// Envelope of a receive or probe; `None` when it is from MPI_PROC_NULL.
#[inline(always)]
pub(crate) fn want(c: &Comm, source: i32, tag: i32) -> Res<Option<Want>> {
    if tag < 0 && tag != ANY_TAG {
        return bad_tag(
            tag,
            "the tag of a receive must be 0 or more, or MPI_ANY_TAG",
        );
    }
    let source = match source {
        ANY_SOURCE => None,
        PROC_NULL => return Ok(None),
        rank => c.peer(rank)?.map(|peer| (rank as u32, peer)),
    };
    Ok(Some(Want {
        context: c.context,
        source,
        tag: (tag >= 0).then_some(tag),
    }))
}

/// The receive that the arguments describe; `None` when it is from MPI_PROC_NULL.
#[inline(always)]
pub(crate) fn incoming(tables: &Tables, comm: CommH, end: &End) -> Res<Option<(Want, Buf)>> {
    match want(tables.comms.get(comm)?, end.rank, end.tag)? {
        Some(want) => Ok(Some((
            want,
            tables.message_buf(end.buf, end.count, end.datatype)?,
        ))),
        None => nonnegative(end.count).map(|()| None),
    }
}

/// The only peer that can satisfy a receive, if there is one.
#[inline]
pub(crate) fn from(want: &Want) -> Option<Peer> {
    want.source.map(|(_, peer)| peer)
}

/// Waits until a part has ended; returns the guard with the part's result.
#[inline]
pub fn settle<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, part: Part) -> Res<(Guard<'a>, Status, Res)> {
    if let Part::Flying(f) = part {
        let on = WaitOn {
            requests: &[f.id],
            from: f.from,
            ..WaitOn::default()
        };
        guard = wait_serving(mpi, guard, on, |s| {
            s.engine
                .as_ref()
                .is_none_or(|e| e.messages.requests().is_done(f.id))
        });
    }
    let (engine, _) = running(&mut guard)?;
    let (status, fault) = land(engine, part);
    Ok((guard, status, fault.map_or(Ok(()), Err)))
}

#[inline(never)]
fn blocking_send(mpi: &Mpi, mut guard: Guard<'_>, comm: CommH, end: &End, mode: SendMode) -> Res {
    let (engine, tables) = running(&mut guard)?;
    let Some(out) = outgoing(tables, comm, end)? else {
        return Ok(());
    };
    refuse_shared(engine, "send", &out.buf)?;
    match out.start(engine, mode) {
        kw_engine::Started::Done => Ok(()),
        started => settle(mpi, guard, part(started, comm, out.to))?.2,
    }
}

#[inline(never)]
fn immediate_send(
    mut guard: Guard<'_>,
    comm: CommH,
    end: &End,
    mode: SendMode,
    request: Out<RequestH>,
) -> Res {
    let (engine, tables) = running(&mut guard)?;
    let handle = match outgoing(tables, comm, end)? {
        None => tables.ended_request(RequestH::DONE),
        Some(out) => {
            refuse_shared(engine, "send", &out.buf)?;
            tables.sending(out.start(engine, mode), comm, out.to)
        }
    };
    request.set(handle);
    Ok(())
}

#[inline]
fn buffered_send(mpi: &Mpi, comm: CommH, end: &End) -> Res {
    let mut guard = mpi.lock();
    let (engine, tables) = running(&mut guard)?;
    match outgoing(tables, comm, end)? {
        None => Ok(()),
        Some(out) => {
            let session = tables.comms.get(comm)?.session;
            tables.buffers.send(engine, comm, session, &out)
        }
    }
}

macro_rules! end {
    ($buf:ident, $count:ident, $datatype:ident, $rank:ident, $tag:ident) => {
        End {
            buf: $buf,
            count: $count,
            datatype: $datatype,
            rank: $rank,
            tag: $tag,
        }
    };
}
pub(crate) use end;

/// MPI_Send
#[inline(always)]
pub fn send(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    dest: i32,
    tag: i32,
    comm: CommH,
    mode: Mode,
    form: impl Send,
) -> Res {
    form.send(mpi, comm, end!(buf, count, datatype, dest, tag), mode)
}

#[inline]
fn start_recv(engine: &mut Engine, comm: CommH, want: Want, buf: Buf) -> Flight {
    Flight {
        id: engine.messages.recv(want, buf),
        comm,
        from: from(&want),
        receives: true,
    }
}

/// MPI_Recv
#[inline(always)]
pub fn recv(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    source: i32,
    tag: i32,
    comm: CommH,
    form: impl Recv,
) -> Res {
    form.recv(mpi, comm, end!(buf, count, datatype, source, tag))
}

#[inline(never)]
fn recv_slow(mpi: &Mpi, mut guard: Guard<'_>, comm: CommH, end: &End, status: StatusOut) -> Res {
    let (engine, tables) = running(&mut guard)?;
    let Some((want, buf)) = incoming(tables, comm, end)? else {
        status.set_keeping_error(FROM_PROC_NULL);
        return Ok(());
    };
    if let Some(found) = short::recv_typed(engine, want, end, &buf) {
        status.set_keeping_error(received(found.source, found.tag, found.len));
        return Ok(());
    }
    refuse_shared(engine, "receive", &buf)?;
    let flight = start_recv(engine, comm, want, buf);
    Blocking((status,)).receive(mpi, guard, Some(flight))
}

/// Starts a receive; none if it is from MPI_PROC_NULL.
#[inline(never)]
fn post(state: &mut State, comm: CommH, end: &End) -> Res<Option<Flight>> {
    let (engine, tables) = running(state)?;
    let found = incoming(tables, comm, end)?;
    if let Some((_, buf)) = &found {
        refuse_shared(engine, "receive", buf)?;
    }
    Ok(found.map(|(want, buf)| start_recv(engine, comm, want, buf)))
}

/// Starts a receive and a send, the receive first; nothing is started if an argument of either is
/// wrong.
fn start_both(state: &mut State, comm: CommH, out: End, into: End) -> Res<[Part; 2]> {
    let (engine, tables) = running(state)?;
    let out = outgoing(tables, comm, &out)?;
    let into = incoming(tables, comm, &into)?;
    if let Some((_, buf)) = &into {
        refuse_shared(engine, "receive", buf)?;
    }
    if let Some(out) = &out {
        refuse_shared(engine, "send", &out.buf)?;
    }
    Ok(launch(engine, comm, out, into))
}

fn launch(
    engine: &mut Engine,
    comm: CommH,
    out: Option<Outgoing>,
    into: Option<(Want, Buf)>,
) -> [Part; 2] {
    let recv = match into {
        Some((want, buf)) => Part::Flying(start_recv(engine, comm, want, buf)),
        None => Part::Ended(FROM_PROC_NULL),
    };
    let send = match out {
        Some(out) => part(out.start(engine, SendMode::Standard), comm, out.to),
        None => Part::Ended(EMPTY),
    };
    [send, recv]
}

/// [`start_both`] with one buffer for both: the data to send is copied aside first.
fn start_replace(state: &mut State, comm: CommH, out: End, into: End) -> Res<[Part; 2]> {
    let (engine, tables) = running(state)?;
    let mut out = outgoing(tables, comm, &out)?;
    let into = incoming(tables, comm, &into)?;
    if let Some(out) = &mut out {
        out.buf = out.buf.packed(tables.checking);
    }
    Ok(launch(engine, comm, out, into))
}

/// MPI_Sendrecv
pub fn sendrecv(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    dest: i32,
    sendtag: i32,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    source: i32,
    recvtag: i32,
    comm: CommH,
    form: impl Started,
) -> Res {
    let out = end!(sendbuf, sendcount, sendtype, dest, sendtag);
    let into = end!(recvbuf, recvcount, recvtype, source, recvtag);
    let mut guard = mpi.lock();
    let parts = start_both(&mut guard, comm, out, into)?;
    form.both(mpi, guard, parts)
}

/// MPI_Sendrecv_replace
pub fn sendrecv_replace(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: CommH,
    form: impl Started,
) -> Res {
    let out = end!(buf, count, datatype, dest, sendtag);
    let into = end!(buf, count, datatype, source, recvtag);
    let mut guard = mpi.lock();
    let parts = start_replace(&mut guard, comm, out, into)?;
    form.both(mpi, guard, parts)
}
