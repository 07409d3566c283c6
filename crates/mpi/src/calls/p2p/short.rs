//! Quick paths of ordinary sends and receives, which skip everything that only other calls need.
//!
//! The data is a contiguous range of bytes of a predefined type, the message goes through shared
//! memory, and the call ends without waiting. All other calls, those with wrong arguments included,
//! are left to the ordinary path, which starts from the beginning and reports errors; this path has
//! no effect then.

use super::{End, start_recv};
use kw_base::Peer;
use kw_engine::{Engine, Found, Want};
use kw_objects::comm::Comm;
use kw_objects::handle::CommH;
use kw_objects::request::Flight;
use kw_objects::state::{State, Tables};
use kw_objects::status::ANY_TAG;
use kw_sys::buf::{Addr, Buf};
use kw_sys::region::Region;
use kw_types::layout::basic;

/// Sends the message, if the call is simple.
#[inline(always)]
pub(super) fn send(state: &mut State, comm: CommH, end: &End) -> bool {
    try_send(state, comm, end).is_some()
}

#[inline(always)]
fn try_send(state: &mut State, comm: CommH, end: &End) -> Option<()> {
    let engine = state.engine.as_mut()?;
    let (c, peer) = other(&state.above, comm, end.rank)?;
    let data = Region::assume_lent(end.buf, flat(end)?);
    if end.tag < 0 {
        return None;
    }
    let envelope = (c.context, c.rank, end.tag);
    let messages = &mut engine.messages;
    if !messages.send_at_once(peer, envelope, data.len() as usize, |out| data.read(out)) {
        return None;
    }
    engine.look_after_sending();
    Some(())
}

/// Receives the message, if the call is simple and the message is there or arrives within a moment.
#[inline(always)]
pub(super) fn recv(state: &mut State, comm: CommH, end: &End) -> Option<Found> {
    let engine = state.engine.as_mut()?;
    let want = want(&state.above, comm, end)?;
    let into = Region::assume_lent(end.buf, flat(end)?);
    engine
        .messages
        .recv_at_once(want, into.len(), |body| into.write(body))
}

/// Starts the receive, if the call is simple.
#[inline(always)]
pub(super) fn post(state: &mut State, comm: CommH, end: &End) -> Option<Flight> {
    if state.above.checking {
        return None;
    }
    let engine = state.engine.as_mut()?;
    let want = want(&state.above, comm, end)?;
    let into = Buf::bytes(end.buf, flat(end)?);
    Some(start_recv(engine, comm, want, into))
}

/// Envelope of a receive from one rank.
#[inline(always)]
fn want(tables: &Tables, comm: CommH, end: &End) -> Option<Want> {
    let (c, peer) = other(tables, comm, end.rank)?;
    if end.tag < 0 && end.tag != ANY_TAG {
        return None;
    }
    Some(Want {
        context: c.context,
        source: Some((end.rank as u32, peer)),
        tag: (end.tag >= 0).then_some(end.tag),
    })
}

/// Like [`recv`], for noncontiguous data.
pub(super) fn recv_typed(engine: &mut Engine, want: Want, end: &End, buf: &Buf) -> Option<Found> {
    if basic::plain_size(end.datatype.0).is_some() {
        return None;
    }
    engine.messages.recv_at_once(want, buf.len(), |body| {
        buf.write(0, body);
    })
}

/// The communicator and its member of that rank; none if `rank` is not one (MPI_PROC_NULL,
/// MPI_ANY_SOURCE, invalid ones).
#[inline(always)]
fn other(tables: &Tables, comm: CommH, rank: i32) -> Option<(&Comm, Peer)> {
    let c = tables.comms.find(comm)?;
    let group = c.target();
    let there = (rank as u32) < group.size();
    there.then(|| (c, group.peer(rank as u32)))
}

/// The bytes of the data, if they are contiguous.
#[inline(always)]
fn flat(end: &End) -> Option<u64> {
    let size = basic::plain_size(end.datatype.0)?;
    let len = u64::try_from(end.count).ok()?.checked_mul(size)?;
    (end.buf != Addr::NULL || len == 0).then_some(len)
}
