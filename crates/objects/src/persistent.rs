//! Persistent and partitioned requests (MPI 5.0, 3.9 and 4.2): the data needed to start an
//! operation repeatedly.
//!
//! All functions here are called by the owner of the lock.

use crate::buffered::Buffers;
use crate::error::{Class, Fault, Res};
use crate::handle::{CommH, RequestH, SessionH};
use crate::hook::Hooked;
use crate::request::{Flight, Kind, Outgoing, Part, not_running, part, refuse_shared};
use crate::state::{State, Tables};
use crate::status::EMPTY;
use kw_base::Peer;
use kw_engine::{Collectives, Engine, PartId, Pattern, SendMode, Want};
use kw_sys::args::Status;
use kw_sys::buf::Buf;

/// How a persistent request is started.
pub enum Start {
    /// To or from MPI_PROC_NULL: ends at once with this status.
    Nothing(Status),
    /// A send.
    Send(Outgoing, SendMode),
    /// A buffered send, on a communicator of this session.
    Buffered(Outgoing, Option<SessionH>),
    /// A receive.
    Recv(Want, Buf),
    /// A collective operation: runs its schedule again.
    Collective(Pattern),
    /// A partitioned send to this process.
    PartSend(PartId, Peer),
    /// A partitioned receive from this process.
    PartRecv(PartId, Peer),
    /// A persistent operation with an observer.
    Hooked(Box<Hooked>),
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Start::Nothing(_) => "Nothing",
            Start::Send(..) => "Send",
            Start::Buffered(..) => "Buffered",
            Start::Recv(..) => "Recv",
            Start::Collective(_) => "Collective",
            Start::PartSend(..) => "PartSend",
            Start::PartRecv(..) => "PartRecv",
            Start::Hooked(_) => "Hooked",
        })
    }
}

/// A persistent request.
#[derive(Debug)]
pub struct Persistent {
    /// Its communicator.
    pub comm: CommH,
    /// Its operation.
    pub start: Start,
    /// Its state while active.
    pub active: Option<Part>,
    /// State of a partitioned send or receive (MPI 5.0, 4.2).
    pub partitions: Option<Partitions>,
}

/// The partitions of a partitioned operation, as counted by its user.
#[derive(Debug)]
pub struct Partitions {
    /// Those that the program has marked as ready; `None` for a receive.
    pub ready: Option<Vec<bool>>,
    /// Their number.
    pub count: usize,
}

/// Starts a persistent request (MPI_Start).
pub fn start(state: &mut State, handle: RequestH) -> Res {
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    let Tables {
        requests, buffers, ..
    } = &mut state.above;
    let Some(Kind::Persistent(p)) = requests.get_mut(handle) else {
        return Err(not_startable(handle));
    };
    if p.active.is_some() {
        return Err(Fault::new(
            Class::Request,
            format!(
                "request {:#x} is already active; complete it first",
                handle.0
            ),
        )
        .on(p.comm));
    }
    if let Some(ready) = p.partitions.as_mut().and_then(|parts| parts.ready.as_mut()) {
        ready.fill(false);
    }
    p.active = Some(p.start.run(engine, buffers, p.comm)?);
    // A send without partitions has one empty piece, which is never marked ready.
    let empty = p.partitions.as_ref().is_some_and(|parts| parts.count == 0);
    if let (Start::PartSend(id, _), true) = (&p.start, empty) {
        let messages = &mut engine.messages;
        engine.parts.partitioned.make_ready(messages, *id, 0, 0);
        engine.look_after_sending();
    }
    Ok(())
}

/// Marks partitions `low..=high` of an active partitioned send as ready: all of them, or none if
/// one cannot be marked.
pub fn make_ready(state: &mut State, handle: RequestH, low: i64, high: i64) -> Res {
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    let Some(Kind::Persistent(p)) = state.above.requests.get_mut(handle) else {
        return Err(not_partitioned(handle));
    };
    let (comm, active) = (p.comm, p.active.is_some());
    let parts = p.partitions.as_mut().filter(|_| active);
    let Some(ready) = parts.and_then(|parts| parts.ready.as_mut()) else {
        return Err(not_partitioned(handle).on(comm));
    };
    let wrong = |text: String| Err(Fault::new(Class::Arg, text).on(comm));
    if low < 0 || high >= ready.len() as i64 {
        return wrong(format!(
            "partitions {low} to {high} are named, but there are {} from 0 on",
            ready.len()
        ));
    }
    if low > high {
        return wrong(format!(
            "partitions {low} to {high} are named, but the first is above the last"
        ));
    }
    let named = low as usize..=high as usize;
    if let Some(i) = named.clone().find(|&i| ready[i]) {
        return wrong(format!(
            "partition {i} is ready already; mark it once in each start"
        ));
    }
    ready[named].fill(true);
    if let Start::PartSend(id, _) = p.start {
        let messages = &mut engine.messages;
        let partitioned = &mut engine.parts.partitioned;
        partitioned.make_ready(messages, id, low as u32, high as u32);
        engine.look_after_sending();
    }
    Ok(())
}

/// The fault of a request that is not partitioned.
#[cold]
pub fn not_partitioned(handle: RequestH) -> Box<Fault> {
    Fault::new(
        Class::Request,
        format!(
            "request is {:#x}, which is not an active partitioned send with partitions to make ready",
            handle.0
        ),
    )
}

#[cold]
fn not_startable(handle: RequestH) -> Box<Fault> {
    Fault::new(
        Class::Request,
        format!(
            "request is {:#x}, which is not a persistent request and cannot be started",
            handle.0
        ),
    )
}

impl Start {
    /// Handles the end of the request.
    pub fn forget(&self, engine: &mut Engine) {
        match self {
            Start::Collective(pattern) => {
                let Collectives {
                    patterns, channels, ..
                } = &mut engine.parts.collectives;
                patterns.forget(channels, pattern);
            }
            Start::PartSend(id, _) | Start::PartRecv(id, _) => engine.parts.partitioned.forget(*id),
            Start::Hooked(hooked) => hooked.forget(engine),
            _ => {}
        }
    }

    /// Starts the operation.
    pub fn run(&mut self, engine: &mut Engine, buffers: &mut Buffers, comm: CommH) -> Res<Part> {
        Ok(match self {
            Start::Nothing(status) => Part::Ended(*status),
            Start::Send(out, mode) => {
                refuse_shared(engine, "send", &out.buf).map_err(|f| f.on(comm))?;
                part(out.start(engine, *mode), comm, out.to)
            }
            Start::Buffered(out, session) => {
                buffers.send(engine, comm, *session, out)?;
                Part::Ended(EMPTY)
            }
            Start::Recv(want, buf) => {
                refuse_shared(engine, "receive", buf).map_err(|f| f.on(comm))?;
                Part::Flying(Flight {
                    id: engine.messages.recv(*want, buf.clone()),
                    comm,
                    from: want.source.map(|(_, peer)| peer),
                    receives: true,
                })
            }
            Start::Collective(pattern) => Part::Flying(Flight {
                id: engine.launch_pattern(pattern),
                comm,
                from: None,
                receives: false,
            }),
            Start::PartSend(id, peer) => Part::Flying(Flight {
                id: engine.parts.partitioned.start(&mut engine.messages, *id),
                comm,
                from: Some(*peer),
                receives: false,
            }),
            Start::PartRecv(id, peer) => Part::Flying(Flight {
                id: engine.parts.partitioned.start(&mut engine.messages, *id),
                comm,
                from: Some(*peer),
                receives: true,
            }),
            Start::Hooked(hooked) => hooked.run(engine, buffers, comm)?,
        })
    }
}

impl crate::state::Tables {
    /// A handle for an inactive persistent request.
    pub fn new_persistent(&mut self, comm: CommH, start: Start) -> RequestH {
        self.new_request(Kind::Persistent(Box::new(Persistent {
            comm,
            start,
            active: None,
            partitions: None,
        })))
    }
}
