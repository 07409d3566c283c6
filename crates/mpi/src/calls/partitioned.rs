//! Partitioned communication (MPI 5.0, 4.2): a buffer whose sender marks each partition as ready.
//! The engine transfers it ([`kw_engine::PartId`]).

use crate::calls::p2p::{End, end, incoming, outgoing, running};
use crate::calls::request::doubt;
use kw_engine::PartId;
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{CommH, InfoH, RequestH, TypeH};
use kw_objects::persistent::{Partitions, Persistent, Start, make_ready};
use kw_objects::request::{Kind, pending};
use kw_objects::state::{Mpi, State, Tables};
use kw_objects::status::{EMPTY, FROM_PROC_NULL};
use kw_sys::args::{Ints, Out};
use kw_sys::buf::Addr;

fn check(partitions: i32, end: &mut End) -> Res {
    if partitions < 0 {
        return Err(Fault::new(
            Class::Arg,
            format!("partitions is {partitions}, but must not be negative"),
        ));
    }
    if end.tag < 0 {
        return Err(Fault::new(
            Class::Tag,
            format!("tag is {}, but must not be negative", end.tag),
        ));
    }
    end.count = end.count.checked_mul(partitions as i64).unwrap_or(-1);
    Ok(())
}

/// The transferred partitions: one empty one if there are none.
fn pieces(partitions: i32) -> u32 {
    partitions.max(1) as u32
}

fn put(tables: &mut Tables, comm: CommH, start: Start, partitions: i32, send: bool) -> RequestH {
    let count = partitions as usize;
    tables.new_request(Kind::Persistent(Box::new(Persistent {
        comm,
        start,
        active: None,
        partitions: Some(Partitions {
            ready: send.then(|| vec![false; count]),
            count,
        }),
    })))
}

/// MPI_Psend_init
pub fn psend_init(
    mpi: &Mpi,
    buf: Addr,
    partitions: i32,
    count: i64,
    datatype: TypeH,
    dest: i32,
    tag: i32,
    comm: CommH,
    _info: InfoH,
    request: Out<RequestH>,
) -> Res {
    let mut end = end!(buf, count, datatype, dest, tag);
    check(partitions, &mut end)?;
    let mut guard = mpi.lock();
    let start = match outgoing(&guard.above, comm, &end)? {
        Some(out) => {
            let engine = running(&mut guard)?.0;
            let polls = engine.polls_for(out.to);
            let (messages, envelope) = (&mut engine.messages, out.envelope());
            let (to, parts) = (out.to, pieces(partitions));
            let partitioned = &mut engine.parts.partitioned;
            let id = partitioned.send(messages, polls, to, envelope, &out.buf, parts);
            Start::PartSend(id, out.to)
        }
        None => Start::Nothing(EMPTY),
    };
    request.set(put(&mut guard.above, comm, start, partitions, true));
    Ok(())
}

/// MPI_Precv_init
pub fn precv_init(
    mpi: &Mpi,
    buf: Addr,
    partitions: i32,
    count: i64,
    datatype: TypeH,
    source: i32,
    tag: i32,
    comm: CommH,
    _info: InfoH,
    request: Out<RequestH>,
) -> Res {
    let mut end = end!(buf, count, datatype, source, tag);
    check(partitions, &mut end)?;
    let mut guard = mpi.lock();
    let start = match incoming(&guard.above, comm, &end)? {
        Some((want, buf)) => {
            let Some((_, peer)) = want.source else {
                return Err(Fault::new(
                    Class::Rank,
                    "source is MPI_ANY_SOURCE, which partitioned communication does not take",
                ));
            };
            let engine = running(&mut guard)?.0;
            let id =
                engine
                    .parts
                    .partitioned
                    .recv(&mut engine.messages, want, &buf, pieces(partitions));
            Start::PartRecv(id, peer)
        }
        None => Start::Nothing(FROM_PROC_NULL),
    };
    request.set(put(&mut guard.above, comm, start, partitions, false));
    Ok(())
}

/// MPI_Pready
pub fn pready(mpi: &Mpi, partition: i32, request: RequestH) -> Res {
    pready_range(mpi, partition, partition, request)
}

/// MPI_Pready_range
pub fn pready_range(mpi: &Mpi, partition_low: i32, partition_high: i32, request: RequestH) -> Res {
    let (low, high) = (partition_low as i64, partition_high as i64);
    make_ready(&mut mpi.lock(), request, low, high)
}

/// MPI_Pready_list
pub fn pready_list(mpi: &Mpi, length: i32, array_of_partitions: Ints, request: RequestH) -> Res {
    if length < 0 {
        return fail!(Arg: "length is {length}, but must not be negative");
    }
    let mut guard = mpi.lock();
    for i in 0..length as usize {
        let partition = array_of_partitions.get(i);
        make_ready(&mut guard, request, partition, partition)?;
    }
    Ok(())
}

/// MPI_Parrived. A null request has arrived, as an inactive one has (MPI 5.0, 4.2.2).
pub fn parrived(mpi: &Mpi, request: RequestH, partition: i32, flag: Out<i32>) -> Res {
    if request.is_null() {
        flag.set(1);
        return Ok(());
    }
    let mut guard = mpi.lock();
    let Some(Kind::Persistent(p)) = guard.above.requests.get(request) else {
        return Err(not_partitioned_receive(request));
    };
    let Some(Partitions { ready: None, count }) = p.partitions else {
        return Err(not_partitioned_receive(request).on(p.comm));
    };
    if partition < 0 || partition as usize >= count {
        let text = format!("partition is {partition}, but there are {count} from 0 on");
        return Err(Fault::new(Class::Arg, text).on(p.comm));
    }
    let Start::PartRecv(id, _) = p.start else {
        flag.set(1);
        return Ok(());
    };
    let found = |s: &mut State| has_arrived(s, request, id, partition).then_some(());
    let arrived = guard.poll(found, |s| doubt(s, request)).is_some();
    flag.set(arrived as i32);
    Ok(())
}

/// A partition of an inactive receive has arrived, by definition.
fn has_arrived(state: &mut State, request: RequestH, id: PartId, partition: i32) -> bool {
    if pending(state, request).is_none() {
        return true;
    }
    let engine = state.engine.as_mut();
    engine.is_some_and(|e| e.parts.partitioned.has_arrived(id, partition as u32))
}

#[cold]
fn not_partitioned_receive(handle: RequestH) -> Box<Fault> {
    let text = format!(
        "request is {:#x}, which is not a partitioned receive",
        handle.0
    );
    Fault::new(Class::Request, text)
}
