//! Blocking collectives (MPI 5.0, 6.3 to 6.11).

use super::block;
use super::call as plan;
use super::short::{self, Asked};
use crate::error::Res;
use crate::handle::{CommH, OpH, TypeH};
use crate::state::Mpi;
use kw_coll::Coll;
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// MPI_Barrier
#[inline]
pub fn barrier(mpi: &Mpi, comm: CommH) -> Res {
    let asked = Asked::nothing(Coll::Barrier);
    short::call(mpi, comm, asked, |s| plan::barrier(s, comm))
}

/// MPI_Bcast
#[inline]
pub fn bcast(mpi: &Mpi, buffer: Addr, count: i64, datatype: TypeH, root: i32, comm: CommH) -> Res {
    let asked = Asked::data(Coll::Bcast, buffer, count, datatype).root(root);
    short::call(mpi, comm, asked, |s| {
        plan::bcast(s, buffer, count, datatype, root, comm)
    })
}

/// MPI_Gather
#[allow(clippy::too_many_arguments)]
pub fn gather(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::gather(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Gatherv
#[allow(clippy::too_many_arguments)]
pub fn gatherv(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcounts: Ints,
    displs: Ints,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::gatherv(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcounts, displs, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Scatter
#[allow(clippy::too_many_arguments)]
pub fn scatter(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::scatter(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Scatterv
#[allow(clippy::too_many_arguments)]
pub fn scatterv(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcounts: Ints,
    displs: Ints,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::scatterv(
            s,
            (sendbuf, sendcounts, displs, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Allgather
#[allow(clippy::too_many_arguments)]
pub fn allgather(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::allgather(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            comm,
        )
    })
}

/// MPI_Allgatherv
#[allow(clippy::too_many_arguments)]
pub fn allgatherv(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcounts: Ints,
    displs: Ints,
    recvtype: TypeH,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::allgatherv(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcounts, displs, recvtype),
            comm,
        )
    })
}

/// MPI_Alltoall
#[allow(clippy::too_many_arguments)]
pub fn alltoall(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::alltoall(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            comm,
        )
    })
}

/// MPI_Alltoallv
#[allow(clippy::too_many_arguments)]
pub fn alltoallv(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcounts: Ints,
    sdispls: Ints,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcounts: Ints,
    rdispls: Ints,
    recvtype: TypeH,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::alltoallv(
            s,
            (sendbuf, sendcounts, sdispls, sendtype),
            (recvbuf, recvcounts, rdispls, recvtype),
            comm,
        )
    })
}

/// MPI_Alltoallw
#[allow(clippy::too_many_arguments)]
pub fn alltoallw(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcounts: Ints,
    sdispls: Ints,
    sendtypes: Array<TypeH>,
    recvbuf: Addr,
    recvcounts: Ints,
    rdispls: Ints,
    recvtypes: Array<TypeH>,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::alltoallw(
            s,
            (sendbuf, sendcounts, sdispls, sendtypes),
            (recvbuf, recvcounts, rdispls, recvtypes),
            comm,
        )
    })
}

/// MPI_Reduce
#[inline]
#[allow(clippy::too_many_arguments)]
pub fn reduce(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    root: i32,
    comm: CommH,
) -> Res {
    let buffers = (sendbuf, recvbuf);
    let asked = Asked::reduction(Coll::Reduce, buffers, count, datatype, op).root(root);
    short::call(mpi, comm, asked, |s| {
        plan::reduce(s, (sendbuf, recvbuf, count, datatype, op), root, comm)
    })
}

/// MPI_Allreduce
#[inline]
pub fn allreduce(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
) -> Res {
    let buffers = (sendbuf, recvbuf);
    let asked = Asked::reduction(Coll::Allreduce, buffers, count, datatype, op);
    short::call(mpi, comm, asked, |s| {
        plan::everywhere(
            s,
            (sendbuf, recvbuf, count, datatype, op),
            comm,
            Coll::Allreduce,
        )
    })
}

/// MPI_Reduce_scatter
#[inline]
pub fn reduce_scatter(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    recvcounts: Ints,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
) -> Res {
    let buffers = (sendbuf, recvbuf);
    let asked = Asked::reduction(Coll::ReduceScatter, buffers, 0, datatype, op).counts(recvcounts);
    short::call(mpi, comm, asked, |s| {
        plan::reduce_scatter(s, (sendbuf, recvbuf, recvcounts, datatype, op), comm)
    })
}

/// MPI_Reduce_scatter_block
pub fn reduce_scatter_block(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    recvcount: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
) -> Res {
    let buffers = (sendbuf, recvbuf);
    let asked = Asked::reduction(Coll::ReduceScatter, buffers, recvcount, datatype, op);
    short::call(mpi, comm, asked, |s| {
        plan::reduce_scatter_block(s, (sendbuf, recvbuf, recvcount, datatype, op), comm)
    })
}

/// MPI_Scan
pub fn scan(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::everywhere(s, (sendbuf, recvbuf, count, datatype, op), comm, Coll::Scan)
    })
}

/// MPI_Exscan
pub fn exscan(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
) -> Res {
    block(mpi, comm, |s| {
        plan::everywhere(
            s,
            (sendbuf, recvbuf, count, datatype, op),
            comm,
            Coll::Exscan,
        )
    })
}
