//! Persistent and partitioned requests (MPI 5.0, 3.9 and 4.2): what is kept to start an operation again and again.
//!
//! All functions here are called by the owner of the lane.

use crate::error::{Class, Fault, Res};
use crate::handle::{CommH, RequestH, SessionH};
use crate::objects::buffered::Buffers;
use crate::objects::request::{Flight, Kind, Outgoing, Part, not_running, part};
use crate::objects::status::EMPTY;
use crate::state::{State, Tables};
use kw_engine::{Engine, Pattern, SendMode, Want};
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
    /// A collective operation: runs its schedule once more.
    Collective(Pattern),
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Start::Nothing(_) => "Nothing",
            Start::Send(..) => "Send",
            Start::Buffered(..) => "Buffered",
            Start::Recv(..) => "Recv",
            Start::Collective(_) => "Collective",
        })
    }
}

/// A persistent request.
#[derive(Debug)]
pub struct Persistent {
    /// Its communicator.
    pub comm: CommH,
    /// What it does.
    pub start: Start,
    /// What it is doing, while active.
    pub active: Option<Part>,
    /// Of a partitioned send or receive (MPI 5.0, 4.2).
    pub partitions: Option<Partitions>,
}

/// The partitions of a partitioned operation. The data travels as one message once the last one is ready.
#[derive(Debug)]
pub struct Partitions {
    /// Which are ready; empty for a receive.
    pub ready: Vec<bool>,
    /// How many there are.
    pub count: usize,
    /// How many are not ready.
    pub left: usize,
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
    p.active = Some(match &mut p.partitions {
        Some(parts) if !parts.ready.is_empty() => {
            parts.ready.fill(false);
            parts.left = parts.count;
            Part::Held
        }
        _ => p.start.run(engine, buffers, p.comm)?,
    });
    Ok(())
}

/// Marks partitions `low..=high` of an active partitioned send as ready; says whether the message goes out now.
pub fn make_ready(state: &mut State, handle: RequestH, low: i64, high: i64) -> Res<bool> {
    let engine = state.engine.as_mut().ok_or_else(not_running)?;
    let Tables {
        requests, buffers, ..
    } = &mut state.above;
    let Some(Kind::Persistent(p)) = requests.get_mut(handle) else {
        return Err(not_partitioned(handle));
    };
    let (Some(parts), Some(Part::Held)) = (&mut p.partitions, &p.active) else {
        return Err(not_partitioned(handle));
    };
    if low < 0 || high >= parts.count as i64 {
        return Err(Fault::new(
            Class::Arg,
            format!(
                "partitions {low} to {high} are named, but there are 0 to {}",
                parts.count as i64 - 1
            ),
        ));
    }
    for i in low..=high {
        if std::mem::replace(&mut parts.ready[i as usize], true) {
            return Err(Fault::new(
                Class::Arg,
                format!("partition {i} was ready already"),
            ));
        }
        parts.left -= 1;
    }
    let go = parts.left == 0;
    if go {
        p.active = Some(p.start.run(engine, buffers, p.comm)?);
    }
    Ok(go)
}

#[cold]
pub(crate) fn not_partitioned(handle: RequestH) -> Box<Fault> {
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
    fn run(&mut self, engine: &mut Engine, buffers: &mut Buffers, comm: CommH) -> Res<Part> {
        Ok(match self {
            Start::Nothing(status) => Part::Ended(*status),
            Start::Send(out, mode) => part(out.start(engine, *mode), comm, out.to),
            Start::Buffered(out, session) => {
                buffers.send(engine, comm, *session, out)?;
                Part::Ended(EMPTY)
            }
            Start::Recv(want, buf) => Part::Flying(Flight {
                id: engine.recv(*want, buf),
                comm,
                from: want.source.map(|(_, peer)| peer),
                receives: true,
            }),
            Start::Collective(pattern) => Part::Flying(Flight {
                id: engine.launch_pattern(pattern),
                comm,
                from: None,
                receives: false,
            }),
        })
    }
}
