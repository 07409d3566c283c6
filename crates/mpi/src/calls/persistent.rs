//! Persistent requests (MPI 5.0, 3.9): arguments are checked and decoded once, and started often.

use crate::calls::p2p::{End, end, incoming, outgoing};
use crate::error::{Class, Res, fail};
use crate::handle::{CommH, RequestH, TypeH};
use crate::objects::persistent::{self, Persistent, Start};
use crate::objects::request::{Kind, Outgoing};
use crate::objects::status::{EMPTY, FROM_PROC_NULL};
use crate::state::Mpi;
use kw_engine::SendMode;
use kw_sys::args::{Array, Out};
use kw_sys::buf::Addr;

fn init_send(
    mpi: &Mpi,
    comm: CommH,
    end: End,
    request: Out<RequestH>,
    how: impl FnOnce(Outgoing) -> Start,
) -> Res {
    let mut guard = mpi.lock();
    let start = match outgoing(&guard.above, comm, &end)? {
        Some(out) => how(out),
        None => Start::Nothing(EMPTY),
    };
    request.set(guard.above.new_persistent(comm, start));
    Ok(())
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

/// MPI_Send_init
#[allow(clippy::too_many_arguments)]
pub fn send_init(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    dest: i32,
    tag: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    let end = end!(buf, count, datatype, dest, tag);
    init_send(mpi, comm, end, request, |out| {
        Start::Send(out, SendMode::Standard)
    })
}

/// MPI_Rsend_init
#[allow(clippy::too_many_arguments)]
pub fn rsend_init(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    dest: i32,
    tag: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    send_init(mpi, buf, count, datatype, dest, tag, comm, request)
}

/// MPI_Ssend_init
#[allow(clippy::too_many_arguments)]
pub fn ssend_init(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    dest: i32,
    tag: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    let end = end!(buf, count, datatype, dest, tag);
    init_send(mpi, comm, end, request, |out| {
        Start::Send(out, SendMode::Synchronous)
    })
}

/// MPI_Bsend_init
#[allow(clippy::too_many_arguments)]
pub fn bsend_init(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    dest: i32,
    tag: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    let end = end!(buf, count, datatype, dest, tag);
    let session = mpi.lock().above.comm(comm)?.session;
    init_send(mpi, comm, end, request, |out| Start::Buffered(out, session))
}

/// MPI_Recv_init
#[allow(clippy::too_many_arguments)]
pub fn recv_init(
    mpi: &Mpi,
    buf: Addr,
    count: i64,
    datatype: TypeH,
    source: i32,
    tag: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    let end = end!(buf, count, datatype, source, tag);
    let mut guard = mpi.lock();
    let start = match incoming(&guard.above, comm, &end)? {
        Some((want, buf)) => Start::Recv(want, buf),
        None => Start::Nothing(FROM_PROC_NULL),
    };
    request.set(guard.above.new_persistent(comm, start));
    Ok(())
}

/// MPI_Start
pub fn start(mpi: &Mpi, request: Out<RequestH>) -> Res {
    persistent::start(&mut mpi.lock(), request.get())
}

/// MPI_Startall
pub fn startall(mpi: &Mpi, count: i32, requests: Array<RequestH>) -> Res {
    if count < 0 {
        return fail(
            Class::Count,
            format!("count is {count}, but must not be negative"),
        );
    }
    let mut guard = mpi.lock();
    for i in 0..count as usize {
        persistent::start(&mut guard, requests.get(i))?;
    }
    Ok(())
}
