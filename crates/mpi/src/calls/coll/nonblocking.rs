//! Non-blocking collectives (MPI 5.0, 6.12).

use super::begin;
use super::call as plan;
use crate::error::Res;
use crate::handle::{CommH, OpH, RequestH, TypeH};
use crate::state::Mpi;
use kw_coll::Coll;
use kw_sys::args::{Array, Ints, Out};
use kw_sys::buf::Addr;

/// MPI_Ibarrier
pub fn ibarrier(mpi: &Mpi, comm: CommH, request: Out<RequestH>) -> Res {
    begin(mpi, comm, request, |s| plan::barrier(s, comm))
}

/// MPI_Ibcast
pub fn ibcast(
    mpi: &Mpi,
    buffer: Addr,
    count: i64,
    datatype: TypeH,
    root: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::bcast(s, buffer, count, datatype, root, comm)
    })
}

/// MPI_Igather
#[allow(clippy::too_many_arguments)]
pub fn igather(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::gather(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Igatherv
#[allow(clippy::too_many_arguments)]
pub fn igatherv(
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
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::gatherv(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcounts, displs, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Iscatter
#[allow(clippy::too_many_arguments)]
pub fn iscatter(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::scatter(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Iscatterv
#[allow(clippy::too_many_arguments)]
pub fn iscatterv(
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
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::scatterv(
            s,
            (sendbuf, sendcounts, displs, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Iallgather
#[allow(clippy::too_many_arguments)]
pub fn iallgather(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::allgather(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            comm,
        )
    })
}

/// MPI_Iallgatherv
#[allow(clippy::too_many_arguments)]
pub fn iallgatherv(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcounts: Ints,
    displs: Ints,
    recvtype: TypeH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::allgatherv(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcounts, displs, recvtype),
            comm,
        )
    })
}

/// MPI_Ialltoall
#[allow(clippy::too_many_arguments)]
pub fn ialltoall(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::alltoall(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            comm,
        )
    })
}

/// MPI_Ialltoallv
#[allow(clippy::too_many_arguments)]
pub fn ialltoallv(
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
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::alltoallv(
            s,
            (sendbuf, sendcounts, sdispls, sendtype),
            (recvbuf, recvcounts, rdispls, recvtype),
            comm,
        )
    })
}

/// MPI_Ialltoallw
#[allow(clippy::too_many_arguments)]
pub fn ialltoallw(
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
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::alltoallw(
            s,
            (sendbuf, sendcounts, sdispls, sendtypes),
            (recvbuf, recvcounts, rdispls, recvtypes),
            comm,
        )
    })
}

/// MPI_Ireduce
#[allow(clippy::too_many_arguments)]
pub fn ireduce(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    root: i32,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::reduce(s, (sendbuf, recvbuf, count, datatype, op), root, comm)
    })
}

/// MPI_Iallreduce
#[allow(clippy::too_many_arguments)]
pub fn iallreduce(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::everywhere(
            s,
            (sendbuf, recvbuf, count, datatype, op),
            comm,
            Coll::Allreduce,
        )
    })
}

/// MPI_Ireduce_scatter
#[allow(clippy::too_many_arguments)]
pub fn ireduce_scatter(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    recvcounts: Ints,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::reduce_scatter(s, (sendbuf, recvbuf, recvcounts, datatype, op), comm)
    })
}

/// MPI_Ireduce_scatter_block
#[allow(clippy::too_many_arguments)]
pub fn ireduce_scatter_block(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    recvcount: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::reduce_scatter_block(s, (sendbuf, recvbuf, recvcount, datatype, op), comm)
    })
}

/// MPI_Iscan
#[allow(clippy::too_many_arguments)]
pub fn iscan(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::everywhere(s, (sendbuf, recvbuf, count, datatype, op), comm, Coll::Scan)
    })
}

/// MPI_Iexscan
#[allow(clippy::too_many_arguments)]
pub fn iexscan(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    request: Out<RequestH>,
) -> Res {
    begin(mpi, comm, request, |s| {
        plan::everywhere(
            s,
            (sendbuf, recvbuf, count, datatype, op),
            comm,
            Coll::Exscan,
        )
    })
}
