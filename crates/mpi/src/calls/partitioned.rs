//! Partitioned communication (MPI 5.0, 4.2): one message, whose sender says piece by piece what is ready.
//!
//! The message goes out when the last partition is ready, so both sides may cut it as they like. Operations match in
//! the order in which they were made, for each communicator, rank and tag; so each carries its number among those, in a
//! tag of the library's own that no other receive sees.

use crate::calls::p2p::{End, end, incoming, outgoing};
use crate::calls::request::has_ended;
use crate::error::{Class, Fault, Res};
use crate::handle::{CommH, InfoH, RequestH, TypeH};
use crate::objects::persistent::{Partitions, Persistent, Start, make_ready, not_partitioned};
use crate::objects::request::Kind;
use crate::objects::status::{EMPTY, FROM_PROC_NULL};
use crate::state::{Mpi, Tables};
use kw_engine::SendMode;
use kw_sys::args::{Ints, Out};
use kw_sys::buf::Addr;

/// Tags of partitioned operations lie below this.
const TAG_BITS: u32 = 20;

/// The library's own tag for the next operation with this rank and tag.
fn own_tag(tables: &mut Tables, context: u32, end: &End, send: bool) -> Res<i32> {
    if end.tag >= 1 << TAG_BITS {
        return Err(Fault::new(
            Class::Tag,
            format!(
                "tag is {}, but partitioned communication takes tags below {}",
                end.tag,
                1 << TAG_BITS
            ),
        ));
    }
    let made = tables
        .partitioned
        .entry((context, end.rank, end.tag, send))
        .or_insert(0);
    let number = (*made & 0x1ff) as i32;
    *made += 1;
    Ok(i32::MIN + (number << TAG_BITS | end.tag))
}

fn check(partitions: i32, end: &mut End) -> Res {
    if partitions < 1 {
        return Err(Fault::new(
            Class::Arg,
            format!("partitions is {partitions}, but there must be one at least"),
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

fn put(tables: &mut Tables, comm: CommH, start: Start, partitions: i32, send: bool) -> RequestH {
    let count = partitions as usize;
    tables.new_request(Kind::Persistent(Box::new(Persistent {
        comm,
        start,
        active: None,
        partitions: Some(Partitions {
            ready: vec![false; if send { count } else { 0 }],
            count,
            left: 0,
        }),
    })))
}

/// MPI_Psend_init
#[allow(clippy::too_many_arguments)]
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
    let tables = &mut guard.above;
    let start = match outgoing(tables, comm, &end)? {
        Some(mut out) => {
            out.tag = own_tag(tables, out.context.0, &end, true)?;
            Start::Send(out, SendMode::Standard)
        }
        None => Start::Nothing(EMPTY),
    };
    request.set(put(tables, comm, start, partitions, true));
    Ok(())
}

/// MPI_Precv_init
#[allow(clippy::too_many_arguments)]
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
    let tables = &mut guard.above;
    let start = match incoming(tables, comm, &end)? {
        Some((want, _)) if want.source.is_none() => {
            return Err(Fault::new(
                Class::Rank,
                "source is MPI_ANY_SOURCE, which partitioned communication does not take",
            ));
        }
        Some((mut want, buf)) => {
            want.tag = Some(own_tag(tables, want.context.0, &end, false)?);
            Start::Recv(want, buf)
        }
        None => Start::Nothing(FROM_PROC_NULL),
    };
    request.set(put(tables, comm, start, partitions, false));
    Ok(())
}

/// Marks ranges of partitions as ready, and wakes a thread that waits for the send to go.
fn ready(mpi: &Mpi, request: RequestH, ranges: impl Iterator<Item = (i64, i64)>) -> Res {
    let mut guard = mpi.lock();
    let mut gone = false;
    for (low, high) in ranges {
        gone |= make_ready(&mut guard, request, low, high)?;
    }
    drop(guard);
    if gone {
        mpi.wake_all();
    }
    Ok(())
}

/// MPI_Pready
pub fn pready(mpi: &Mpi, partition: i32, request: RequestH) -> Res {
    ready(
        mpi,
        request,
        std::iter::once((partition as i64, partition as i64)),
    )
}

/// MPI_Pready_range
pub fn pready_range(mpi: &Mpi, partition_low: i32, partition_high: i32, request: RequestH) -> Res {
    ready(
        mpi,
        request,
        std::iter::once((partition_low as i64, partition_high as i64)),
    )
}

/// MPI_Pready_list
pub fn pready_list(mpi: &Mpi, length: i32, array_of_partitions: Ints, request: RequestH) -> Res {
    let one = |i: usize| (array_of_partitions.get(i), array_of_partitions.get(i));
    ready(mpi, request, (0..length.max(0) as usize).map(one))
}

/// MPI_Parrived
pub fn parrived(mpi: &Mpi, request: RequestH, partition: i32, flag: Out<i32>) -> Res {
    let mut guard = mpi.lock();
    match guard.above.requests.get(request) {
        Some(Kind::Persistent(p)) => match &p.partitions {
            Some(parts) if parts.ready.is_empty() => {
                if partition < 0 || partition as usize >= parts.count {
                    return Err(Fault::new(
                        Class::Arg,
                        format!(
                            "partition is {partition}, but there are 0 to {}",
                            parts.count as i64 - 1
                        ),
                    ));
                }
            }
            _ => return Err(not_partitioned(request)),
        },
        _ => return Err(not_partitioned(request)),
    }
    flag.set(has_ended(&mut guard, request) as i32);
    Ok(())
}
