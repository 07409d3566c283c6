//! Request objects: the meaning of an MPI_Request, when it has ended, and its result.
//!
//! A request that ended before its handle was returned needs no entry of its own: two entries at
//! the beginning of the table ([`RequestH::DONE`], [`RequestH::DONE_PROC_NULL`]) stand for all of
//! them, so an eager MPI_Isend allocates nothing and its MPI_Wait does not even take the lock.
//!
//! ```text
//! inactive --start--> active --ended--> complete --finish--> gone      (persistent: back to inactive)
//! ```
//!
//! All functions here are called by the owner of the lock.

mod outcome;

use crate::buffered::Owner;
use crate::error::{Class, Fault, Res, Scope};
use crate::handle::{CommH, RequestH};
use crate::left::Made;
pub use crate::persistent::{Persistent, Start};
use crate::state::{State, Tables};
use crate::status::{self, EMPTY, FROM_PROC_NULL};
use kw_base::{ContextId, Key, Peer, Slab};
use kw_engine::{Engine, ReqId, SendMode, Started};
use kw_sys::args::Status;
use kw_sys::buf::Buf;
use kw_sys::callback::{GrequestCancel, GrequestFree, GrequestQuery};
pub use outcome::{explain, fault_of, land};
use outcome::{scoped, status_of};

/// With KW_CHECK, refuses a `what` ("send" or "receive") in memory that a pending receive writes
/// (MPI 5.0, 3.7.2 and 3.7.3), or that an operation on a window uses (12.7).
#[inline]
pub fn refuse_shared(engine: &mut Engine, what: &str, buf: &Buf) -> Res {
    match engine.job.agreed().checks() {
        true => shared(engine, what, buf),
        false => Ok(()),
    }
}

#[cold]
fn shared(engine: &mut Engine, what: &str, buf: &Buf) -> Res {
    // A get is a receive as well, but the program does not know that.
    if let Some(found) = engine.parts.windows.misuse(buf, what == "receive") {
        return Err(crate::conflicts::report(engine, "", &[found]));
    }
    let Some((source, tag)) = engine.messages.writes(buf) else {
        return Ok(());
    };
    let source = source.map_or("MPI_ANY_SOURCE".into(), |s| format!("rank {s}"));
    let tag = tag.map_or("MPI_ANY_TAG".into(), |t| format!("tag {t}"));
    let text = format!(
        "the buffer of this {what} overlaps the one of a receive that has not ended (from {source}, {tag})"
    );
    Err(Fault::new(Class::Buffer, text))
}

/// A pending operation of the engine.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// The engine's request.
    pub id: ReqId,
    /// The communicator whose error handler is called after a failure.
    pub comm: CommH,
    /// The only peer that can complete it, if known.
    pub from: Option<Peer>,
    /// Whether the status describes a received message (otherwise it is empty).
    pub receives: bool,
}

/// One operation of a request.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// Ended at once, with this status.
    Ended(Status),
    /// Pending.
    Flying(Flight),
}

/// A send, ready to go.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The destination.
    pub to: Peer,
    /// Its context.
    pub context: ContextId,
    /// This process's rank in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// The data.
    pub buf: Buf,
}

impl Outgoing {
    /// Envelope of its message.
    #[inline]
    pub fn envelope(&self) -> (ContextId, u32, i32) {
        (self.context, self.source, self.tag)
    }

    /// Starts it.
    #[inline]
    pub fn start(&self, engine: &mut Engine, mode: SendMode) -> Started {
        let started = engine
            .messages
            .send(self.to, self.envelope(), mode, &self.buf);
        engine.look_after_sending();
        started
    }
}

/// A generalized request (MPI 5.0, 13.2). Its functions are called with the lock released.
#[derive(Clone, Copy, Debug)]
pub struct Generalized {
    /// Fills the status.
    pub query: Option<GrequestQuery>,
    /// Frees its data.
    pub free: Option<GrequestFree>,
    /// Cancels it.
    pub cancel: Option<GrequestCancel>,
    /// The user's state.
    pub extra: usize,
    /// Whether MPI_Grequest_complete was called.
    pub complete: bool,
    /// Whether MPI_Request_free was called.
    pub freed: bool,
}

/// Action of a [`Kind::Then`], executed once when its operation has succeeded: on completion, or
/// when it is tested before that.
pub type Then = Box<dyn FnOnce(&mut State) -> Res + Send>;

/// Operation of a request.
pub enum Kind {
    /// None any more.
    Ended(Status),
    /// One operation of the engine: a send, a receive, a collective schedule.
    Flight(Flight),
    /// A send and a receive (MPI_Isendrecv); the second determines the status.
    Pair(Box<[Part; 2]>),
    /// An operation of the engine, and an action when it has ended (MPI_Comm_idup), until that was
    /// executed.
    Then(Flight, Option<Then>),
    /// One operation whose failure concerns a window or a file.
    Scoped(Flight, Scope),
    /// A persistent operation.
    Persistent(Box<Persistent>),
    /// A generalized request.
    Generalized(Box<Generalized>),
    /// Buffered sends up to a number (MPI_Buffer_iflush).
    Flush(Owner, u64),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Ended(s) => write!(f, "Ended({s:?})"),
            Kind::Flight(x) => write!(f, "{x:?}"),
            Kind::Pair(x) => write!(f, "{x:?}"),
            Kind::Then(x, _) => write!(f, "Then({x:?})"),
            Kind::Scoped(x, on) => write!(f, "Scoped({x:?}, {on:?})"),
            Kind::Persistent(x) => write!(f, "{x:?}"),
            Kind::Generalized(x) => write!(f, "{x:?}"),
            Kind::Flush(o, n) => write!(f, "Flush({o:?}, {n})"),
        }
    }
}

impl RequestH {
    /// A request that has ended with the empty status.
    pub const DONE: RequestH = RequestH(5 << 56);
    /// A receive from MPI_PROC_NULL, which has ended.
    pub const DONE_PROC_NULL: RequestH = RequestH(5 << 56 | 1);
}

/// The table of requests.
#[derive(Debug)]
pub struct Requests {
    slab: Slab<Kind>,
}

impl Default for Requests {
    fn default() -> Self {
        let mut slab = Slab::new();
        slab.insert(Kind::Ended(EMPTY));
        slab.insert(Kind::Ended(FROM_PROC_NULL));
        Requests { slab }
    }
}

impl Requests {
    /// Whether there is a persistent request whose communicator no longer exists: only the request
    /// itself knows which processes it names.
    pub fn has_orphans(&self, is_there: impl Fn(CommH) -> bool) -> bool {
        let orphan = |kind: &Kind| matches!(kind, Kind::Persistent(p) if !is_there(p.comm));
        self.slab.iter().any(|(_, kind)| orphan(kind))
    }

    /// The request of a handle.
    #[inline]
    pub fn get(&self, handle: RequestH) -> Option<&Kind> {
        self.slab.get(handle.key()?)
    }

    /// The request of a handle, mutable.
    #[inline]
    pub fn get_mut(&mut self, handle: RequestH) -> Option<&mut Kind> {
        self.slab.get_mut(handle.key()?)
    }

    /// Removes it from the table.
    #[inline]
    pub fn remove(&mut self, handle: RequestH) -> Option<Kind> {
        match at_once(handle) {
            Some(status) => Some(Kind::Ended(status)),
            None => self.slab.remove(handle.key()?),
        }
    }

    /// Drops it.
    #[inline]
    fn discard(&mut self, handle: RequestH) {
        handle.key().map(|key| self.slab.discard(key));
    }

    /// Full key of the live entry at `index` (for the Fortran form of handles).
    pub fn key_at(&self, index: u32) -> Option<Key> {
        self.slab.key_at(index)
    }

    /// Removes all requests: their engine is gone.
    pub fn clear(&mut self) {
        let fixed = [RequestH::DONE.key(), RequestH::DONE_PROC_NULL.key()];
        self.slab.retain(|k| fixed.contains(&Some(k)));
    }

    /// Pending operations of requests that the user still holds.
    pub fn unfinished(&self, engine: &Engine) -> usize {
        let flies =
            |p: &Part| matches!(p, Part::Flying(f) if !engine.messages.requests().is_done(f.id));
        let count = |kind: &Kind| match kind {
            Kind::Flight(f) | Kind::Scoped(f, _) => {
                !engine.messages.requests().is_done(f.id) as usize
            }
            Kind::Pair(parts) => parts.iter().filter(|p| flies(p)).count(),
            _ => 0,
        };
        self.slab.iter().map(|(_, kind)| count(kind)).sum()
    }
}

/// The status of a handle that needs no look-up: null, or one of the two that have ended.
#[inline]
pub fn at_once(handle: RequestH) -> Option<Status> {
    match handle {
        RequestH::NULL | RequestH::DONE => Some(EMPTY),
        RequestH::DONE_PROC_NULL => Some(FROM_PROC_NULL),
        _ => None,
    }
}

/// The fault of a handle that names no request.
#[cold]
pub fn unknown(handle: RequestH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_REQUEST_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no request {}",
            handle.0,
            crate::handle::amiss(handle.0, "completed or freed")
        )
    };
    Fault::new(Class::Request, format!("request is {what}"))
}

/// The fault if MPI is not initialised, or finalised.
#[cold]
pub fn not_running() -> Box<Fault> {
    Fault::new(
        Class::Other,
        "MPI is not running: call MPI_Init or MPI_Session_init first",
    )
}

impl Tables {
    /// A handle for a request.
    #[inline]
    pub fn new_request(&mut self, kind: Kind) -> RequestH {
        let handle = RequestH::from_key(self.requests.slab.insert(kind));
        self.note_made(Made::Request(handle));
        handle
    }

    /// A handle for an operation that has already ended. With KW_CHECK it has an entry of its own,
    /// so that it is known whether the program completes it.
    #[inline]
    pub fn ended_request(&mut self, handle: RequestH) -> RequestH {
        match at_once(handle).filter(|_| self.checking) {
            Some(status) => self.new_request(Kind::Ended(status)),
            None => handle,
        }
    }

    /// A handle for a send that was started on `comm`.
    #[inline]
    pub fn sending(&mut self, started: Started, comm: CommH, to: Peer) -> RequestH {
        match part(started, comm, to) {
            Part::Ended(_) => self.ended_request(RequestH::DONE),
            Part::Flying(flight) => self.new_request(Kind::Flight(flight)),
        }
    }
}

/// The part for a started send.
#[inline]
pub fn part(started: Started, comm: CommH, to: Peer) -> Part {
    match started {
        Started::Done => Part::Ended(EMPTY),
        Started::Request(id) => Part::Flying(Flight {
            id,
            comm,
            from: Some(to),
            receives: false,
        }),
    }
}

/// Condition for which a thread must wait before a request has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pending {
    /// This operation, which that peer ends (if known).
    On(ReqId, Option<Peer>),
    /// An action of another thread.
    Anything,
}

impl Part {
    #[inline]
    fn pending(&self, engine: &Engine) -> Option<Pending> {
        match self {
            Part::Flying(f) if !engine.messages.requests().is_done(f.id) => {
                Some(Pending::On(f.id, f.from))
            }
            _ => None,
        }
    }
}

/// Remaining condition of a request; `None` if it has ended, is inactive, or null.
#[inline]
pub fn pending(state: &State, handle: RequestH) -> Option<Pending> {
    if at_once(handle).is_some() {
        return None;
    }
    let engine = state.engine.as_ref()?;
    match state.above.requests.get(handle)? {
        Kind::Flight(f) | Kind::Then(f, _) | Kind::Scoped(f, _) => Part::Flying(*f).pending(engine),
        Kind::Ended(_) => None,
        Kind::Pair(parts) => parts.iter().find_map(|p| p.pending(engine)),
        Kind::Persistent(p) => p.active.as_ref().and_then(|a| a.pending(engine)),
        Kind::Generalized(g) => (!g.complete).then_some(Pending::Anything),
        Kind::Flush(owner, upto) => {
            let left = state.above.buffers.oldest(*owner, *upto, engine)?;
            Some(Pending::On(left, None))
        }
    }
}

/// Whether it makes sense to wait for the handle: it is neither null nor an inactive persistent
/// request. `Err` for a handle that names no request.
#[inline]
pub fn is_active(tables: &Tables, handle: RequestH) -> Res<bool> {
    if handle.is_null() {
        return Ok(false);
    }
    match tables.requests.get(handle) {
        None => Err(unknown(handle)),
        Some(Kind::Persistent(p)) => Ok(p.active.is_some()),
        Some(_) => Ok(true),
    }
}

/// Result of a request.
#[derive(Debug)]
pub struct Ended {
    /// Its status; `error` is set.
    pub status: Status,
    /// The error.
    pub fault: Option<Box<Fault>>,
    /// Whether the handle is invalid now (a persistent request's remains valid).
    pub gone: bool,
    /// The user's functions that must be called for the status, with the lock released.
    pub ask: Option<Box<Generalized>>,
}

impl Ended {
    #[inline]
    fn well(status: Status, gone: bool) -> Ended {
        Ended {
            status,
            fault: None,
            gone,
            ask: None,
        }
    }

    #[inline]
    fn from(result: (Status, Option<Box<Fault>>), gone: bool) -> Ended {
        let (mut status, fault) = result;
        if let Some(fault) = &fault {
            status.error = fault.code;
        }
        Ended {
            status,
            fault,
            gone,
            ask: None,
        }
    }
}

/// Takes the status of a single operation that has succeeded, the usual case, and frees its
/// request. `None` if it is another kind of request, or has not ended; then this has no effect.
#[inline]
pub fn finish_plain(state: &mut State, handle: RequestH) -> Option<Status> {
    if let Some(status) = at_once(handle) {
        return Some(status);
    }
    let engine = state.engine.as_mut()?;
    let requests = &mut state.above.requests;
    let Kind::Flight(flight) = requests.get(handle)? else {
        return None;
    };
    let receives = flight.receives;
    let found = engine.requests().take_clean(flight.id)?;
    requests.discard(handle);
    Some(match receives {
        true => status::received(found.source, found.tag, found.len),
        false => EMPTY,
    })
}

/// Takes the result of a request that has ended ([`pending`] is `None`); frees it unless it is
/// persistent.
#[inline]
pub fn finish(state: &mut State, handle: RequestH) -> Res<Ended> {
    if let Some(status) = finish_plain(state, handle) {
        return Ok(Ended::well(status, true));
    }
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    match state.above.requests.get_mut(handle) {
        None => return Err(unknown(handle)),
        Some(Kind::Persistent(p)) => {
            return Ok(match p.active.take() {
                None => Ended::well(EMPTY, false),
                Some(part) => Ended::from(land(engine, part), false),
            });
        }
        Some(_) => {}
    }
    let Some(kind) = state.above.requests.remove(handle) else {
        return Err(unknown(handle));
    };
    finish_kind(state, kind)
}

#[inline]
fn finish_kind(state: &mut State, kind: Kind) -> Res<Ended> {
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    Ok(match kind {
        Kind::Flight(f) => Ended::from(land(engine, Part::Flying(f)), true),
        Kind::Scoped(f, scope) => {
            let (status, fault) = land(engine, Part::Flying(f));
            let fault = fault.map(|fault| scoped(&state.above, fault, scope));
            Ended::from((status, fault), true)
        }
        Kind::Ended(status) => Ended::well(status, true),
        Kind::Pair(parts) => {
            let [send, recv] = *parts;
            let (_, lost) = land(engine, send);
            let (status, fault) = land(engine, recv);
            Ended::from((status, fault.or(lost)), true)
        }
        Kind::Then(f, then) => {
            let (status, mut fault) = land(engine, Part::Flying(f));
            if let (None, Some(then)) = (&fault, then) {
                fault = then(state).err();
            }
            Ended::from((status, fault), true)
        }
        Kind::Generalized(g) => Ended {
            ask: Some(g),
            ..Ended::well(EMPTY, true)
        },
        Kind::Flush(owner, _) => {
            let lost = state.above.buffers.sweep(owner, engine);
            Ended::from((EMPTY, lost), true)
        }
        // `finish` has handled it.
        Kind::Persistent(_) => Ended::well(EMPTY, true),
    })
}

/// Handles a test of a request that has ended: its final action is executed now, because the caller
/// may continue with its result.
pub fn do_then(state: &mut State, handle: RequestH) -> Res {
    let Some(Kind::Then(flight, then)) = state.above.requests.get_mut(handle) else {
        return Ok(());
    };
    let engine = state.engine.as_ref().ok_or_else(not_running)?;
    let well = engine.peek(flight.id).is_some_and(|o| o.failure.is_none());
    match then.take_if(|_| well) {
        Some(then) => then(state),
        None => Ok(()),
    }
}

/// The status of a request that has ended and stays in place (MPI_Request_get_status).
pub fn peek(state: &State, handle: RequestH) -> Res<Status> {
    if let Some(status) = at_once(handle) {
        return Ok(status);
    }
    let engine = state.engine.as_ref().ok_or_else(not_running)?;
    let seen = |part: &Part| match part {
        Part::Ended(status) => *status,
        Part::Flying(f) => match engine.peek(f.id) {
            Some(outcome) => status_of(f, &outcome),
            None => EMPTY,
        },
    };
    Ok(match state.above.requests.get(handle) {
        None => return Err(unknown(handle)),
        Some(Kind::Flight(f) | Kind::Scoped(f, _)) => seen(&Part::Flying(*f)),
        Some(Kind::Pair(parts)) => seen(&parts[1]),
        Some(Kind::Persistent(p)) => p.active.as_ref().map_or(EMPTY, seen),
        Some(_) => EMPTY,
    })
}

/// The generalized request behind a handle, if it is one.
pub fn generalized(tables: &Tables, handle: RequestH) -> Option<Generalized> {
    match tables.requests.get(handle)? {
        Kind::Generalized(g) => Some(**g),
        _ => None,
    }
}

/// Frees a request (MPI_Request_free): its operation continues without an observer. Returns a
/// generalized request that has ended, whose free function the caller must call.
pub fn release(state: &mut State, handle: RequestH) -> Res<Option<Generalized>> {
    if handle.is_null() {
        return Err(unknown(handle));
    }
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    if let Some(Kind::Generalized(g)) = state.above.requests.get_mut(handle)
        && !g.complete
    {
        g.freed = true;
        return Ok(None);
    }
    let removed = state.above.requests.remove(handle);
    if let Some(Kind::Persistent(p)) = &removed {
        p.start.forget(engine);
    }
    let mut drop_part = |part: &Part| {
        if let Part::Flying(f) = part {
            engine.requests().release(f.id);
        }
    };
    match removed {
        None => return Err(unknown(handle)),
        Some(Kind::Generalized(g)) => return Ok(Some(*g)),
        Some(Kind::Flight(f) | Kind::Then(f, _) | Kind::Scoped(f, _)) => {
            drop_part(&Part::Flying(f))
        }
        Some(Kind::Pair(parts)) => parts.iter().for_each(drop_part),
        Some(Kind::Persistent(p)) => p.active.iter().for_each(drop_part),
        Some(Kind::Ended(_) | Kind::Flush(..)) => {}
    }
    Ok(None)
}
