//! Completion of one request (MPI 5.0, 3.7.3): wait, test, status, free, cancel.

use crate::calls::coll::{lock_serving, wait_serving};
use crate::calls::p2p::running;
use kw_engine::WaitOn;
use kw_objects::error::{Res, fail};
use kw_objects::handle::RequestH;
use kw_objects::request::{
    self, Ended, Kind, Part, Pending, at_once, finish, generalized, is_active, pending, unknown,
};
use kw_objects::state::{Guard, Mpi, State};
use kw_objects::status::EMPTY;
use kw_sys::args::{Out, Status, StatusOut};

/// Waits until a request has ended. A handle that names no request counts as ended.
#[inline]
pub(crate) fn wait_until_ended<'a>(
    mpi: &'a Mpi,
    mut guard: Guard<'a>,
    handle: RequestH,
) -> Guard<'a> {
    while let Some(left) = pending(&guard, handle) {
        guard = match left {
            Pending::On(id, from) => {
                let on = WaitOn {
                    requests: &[id],
                    from,
                    ..WaitOn::default()
                };
                wait_serving(mpi, guard, on, |s| {
                    s.engine
                        .as_ref()
                        .is_none_or(|e| e.messages.requests().is_done(id))
                })
            }
            Pending::Anything => wait_serving(mpi, guard, WaitOn::default(), |s| {
                pending(s, handle).is_none()
            }),
        };
    }
    guard
}

/// Whether a request has ended; progresses once when it has not.
#[inline]
pub(crate) fn has_ended(guard: &mut Guard<'_>, handle: RequestH) -> bool {
    let ended = |s: &mut State| pending(s, handle).is_none().then_some(());
    guard.poll(ended, |s| doubt(s, handle)).is_some()
}

/// Completes a request that nothing else can complete, because ranks have left.
pub(crate) fn doubt(state: &mut State, handle: RequestH) {
    if let Some(Pending::On(id, from)) = pending(state, handle)
        && let Some(engine) = &mut state.engine
    {
        engine.doubt(WaitOn {
            requests: &[id],
            from,
            ..WaitOn::default()
        });
    }
}

/// Calls the user's functions of a generalized request, with the lock released, for its status.
pub(crate) fn ask(ended: &mut Ended) {
    let Some(g) = ended.ask.take() else { return };
    let (status, asked) = g.ask();
    ended.status = status;
    let fault = asked.and(g.tell_gone()).err();
    ended.status.error = fault.as_ref().map_or(0, |f| f.code);
    ended.fault = fault;
}

/// Takes the result of one request that has ended.
#[inline]
pub(crate) fn conclude(
    mut guard: Guard<'_>,
    handle: RequestH,
    replace: impl FnOnce(RequestH),
    status: StatusOut,
) -> Res {
    let mut ended = finish(&mut guard, handle)?;
    drop(guard);
    if ended.gone {
        replace(RequestH::NULL);
    }
    if ended.ask.is_some() {
        ask(&mut ended);
    }
    status.set_keeping_error(ended.status);
    ended.fault.map_or(Ok(()), Err)
}

/// Writes a status. That of a null request is empty, its error included; any other keeps the
/// previous error field.
#[inline]
fn put_at_once(handle: RequestH, ended: Status, status: StatusOut) {
    if handle.is_null() {
        status.set(ended);
    } else {
        status.set_keeping_error(ended);
    }
}

/// MPI_Wait
#[inline]
pub fn wait(mpi: &Mpi, request: Out<RequestH>, status: StatusOut) -> Res {
    let handle = request.get();
    if let Some(ended) = at_once(handle) {
        request.set(RequestH::NULL);
        put_at_once(handle, ended, status);
        return Ok(());
    }
    let guard = mpi.lock();
    let guard = wait_until_ended(mpi, guard, handle);
    conclude(guard, handle, |null| request.set(null), status)
}

/// MPI_Test
#[inline]
pub fn test(mpi: &Mpi, request: Out<RequestH>, flag: Out<i32>, status: StatusOut) -> Res {
    let handle = request.get();
    if let Some(ended) = at_once(handle) {
        request.set(RequestH::NULL);
        put_at_once(handle, ended, status);
        flag.set(1);
        return Ok(());
    }
    let mut guard = lock_serving(mpi);
    if !has_ended(&mut guard, handle) {
        flag.set(0);
        return Ok(());
    }
    flag.set(1);
    conclude(guard, handle, |null| request.set(null), status)
}

/// The status of a request that has ended and stays in place; for a generalized one the user's
/// function is called.
pub(crate) fn look<'a>(
    mpi: &'a Mpi,
    mut guard: Guard<'a>,
    handle: RequestH,
    status: StatusOut,
) -> Res<Guard<'a>> {
    if let Some(g) = generalized(&guard.above, handle) {
        drop(guard);
        let (seen, end) = g.ask();
        status.set_keeping_error(seen);
        end?;
        return Ok(mpi.lock());
    }
    request::do_then(&mut guard, handle)?;
    status.set_keeping_error(request::peek(&guard, handle)?);
    Ok(guard)
}

/// MPI_Request_get_status
pub fn request_get_status(mpi: &Mpi, request: RequestH, flag: Out<i32>, status: StatusOut) -> Res {
    if let Some(ended) = at_once(request) {
        put_at_once(request, ended, status);
        flag.set(1);
        return Ok(());
    }
    let mut guard = lock_serving(mpi);
    if !is_active(&guard.above, request)? {
        status.set(EMPTY);
        flag.set(1);
        return Ok(());
    }
    let ended = has_ended(&mut guard, request);
    flag.set(ended as i32);
    if ended {
        drop(look(mpi, guard, request, status)?);
    }
    Ok(())
}

/// MPI_Request_free
pub fn request_free(mpi: &Mpi, request: Out<RequestH>) -> Res {
    let gone = request::release(&mut mpi.lock(), request.get())?;
    request.set(RequestH::NULL);
    gone.map_or(Ok(()), |g| g.tell_gone())
}

/// MPI_Cancel
pub fn cancel(mpi: &Mpi, request: Out<RequestH>) -> Res {
    let handle = request.get();
    let mut guard = mpi.lock();
    let (engine, tables) = running(&mut guard)?;
    let mut stop = |part: &Part| {
        if let Part::Flying(f) = part {
            engine.messages.cancel(f.id);
            // A message to oneself can be taken back before this call returns.
            while !engine.messages.requests().is_done(f.id) && engine.progress() {}
        }
    };
    match tables.requests.get(handle) {
        None => return Err(unknown(handle)),
        Some(Kind::Flight(f)) => stop(&Part::Flying(*f)),
        Some(Kind::Pair(parts)) => parts.iter().for_each(stop),
        Some(Kind::Persistent(p)) => match &p.active {
            Some(part) => stop(part),
            None => {
                return fail!(Request: "request {:#x} is inactive and cannot be cancelled", handle.0);
            }
        },
        Some(Kind::Generalized(g)) => {
            let g = **g;
            drop(guard);
            return g.tell_cancel();
        }
        Some(Kind::Ended(_)) => {}
        Some(Kind::Then(..) | Kind::Scoped(..) | Kind::Flush(..)) => {
            return fail!(Request: "request is of a collective operation or a flush, which cannot be cancelled");
        }
    }
    Ok(())
}
