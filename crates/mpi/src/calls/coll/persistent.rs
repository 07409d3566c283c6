//! Persistent collectives (MPI 5.0, 6.13). The info argument carries no hints that we know.

use super::call as plan;
use super::keep;
use crate::error::Res;
use crate::handle::{CommH, InfoH, OpH, RequestH, TypeH};
use crate::state::Mpi;
use kw_coll::Coll;
use kw_sys::args::{Array, Ints, Out};
use kw_sys::buf::Addr;

/// MPI_Barrier_init
pub fn barrier_init(mpi: &Mpi, comm: CommH, info: InfoH, request: Out<RequestH>) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| plan::barrier(s, comm))
}

/// MPI_Bcast_init
#[allow(clippy::too_many_arguments)]
pub fn bcast_init(
    mpi: &Mpi,
    buffer: Addr,
    count: i64,
    datatype: TypeH,
    root: i32,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::bcast(s, buffer, count, datatype, root, comm)
    })
}

/// MPI_Gather_init
#[allow(clippy::too_many_arguments)]
pub fn gather_init(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::gather(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Gatherv_init
#[allow(clippy::too_many_arguments)]
pub fn gatherv_init(
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
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::gatherv(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcounts, displs, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Scatter_init
#[allow(clippy::too_many_arguments)]
pub fn scatter_init(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    root: i32,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::scatter(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Scatterv_init
#[allow(clippy::too_many_arguments)]
pub fn scatterv_init(
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
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::scatterv(
            s,
            (sendbuf, sendcounts, displs, sendtype),
            (recvbuf, recvcount, recvtype),
            root,
            comm,
        )
    })
}

/// MPI_Allgather_init
#[allow(clippy::too_many_arguments)]
pub fn allgather_init(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::allgather(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            comm,
        )
    })
}

/// MPI_Allgatherv_init
#[allow(clippy::too_many_arguments)]
pub fn allgatherv_init(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcounts: Ints,
    displs: Ints,
    recvtype: TypeH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::allgatherv(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcounts, displs, recvtype),
            comm,
        )
    })
}

/// MPI_Alltoall_init
#[allow(clippy::too_many_arguments)]
pub fn alltoall_init(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::alltoall(
            s,
            (sendbuf, sendcount, sendtype),
            (recvbuf, recvcount, recvtype),
            comm,
        )
    })
}

/// MPI_Alltoallv_init
#[allow(clippy::too_many_arguments)]
pub fn alltoallv_init(
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
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::alltoallv(
            s,
            (sendbuf, sendcounts, sdispls, sendtype),
            (recvbuf, recvcounts, rdispls, recvtype),
            comm,
        )
    })
}

/// MPI_Alltoallw_init
#[allow(clippy::too_many_arguments)]
pub fn alltoallw_init(
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
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::alltoallw(
            s,
            (sendbuf, sendcounts, sdispls, sendtypes),
            (recvbuf, recvcounts, rdispls, recvtypes),
            comm,
        )
    })
}

/// MPI_Reduce_init
#[allow(clippy::too_many_arguments)]
pub fn reduce_init(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    root: i32,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::reduce(s, (sendbuf, recvbuf, count, datatype, op), root, comm)
    })
}

/// MPI_Allreduce_init
#[allow(clippy::too_many_arguments)]
pub fn allreduce_init(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::everywhere(
            s,
            (sendbuf, recvbuf, count, datatype, op),
            comm,
            Coll::Allreduce,
        )
    })
}

/// MPI_Reduce_scatter_init
#[allow(clippy::too_many_arguments)]
pub fn reduce_scatter_init(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    recvcounts: Ints,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::reduce_scatter(s, (sendbuf, recvbuf, recvcounts, datatype, op), comm)
    })
}

/// MPI_Reduce_scatter_block_init
#[allow(clippy::too_many_arguments)]
pub fn reduce_scatter_block_init(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    recvcount: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::reduce_scatter_block(s, (sendbuf, recvbuf, recvcount, datatype, op), comm)
    })
}

/// MPI_Scan_init
#[allow(clippy::too_many_arguments)]
pub fn scan_init(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::everywhere(s, (sendbuf, recvbuf, count, datatype, op), comm, Coll::Scan)
    })
}

/// MPI_Exscan_init
#[allow(clippy::too_many_arguments)]
pub fn exscan_init(
    mpi: &Mpi,
    sendbuf: Addr,
    recvbuf: Addr,
    count: i64,
    datatype: TypeH,
    op: OpH,
    comm: CommH,
    info: InfoH,
    request: Out<RequestH>,
) -> Res {
    mpi.lock().above.info_or_null(info)?;
    keep(mpi, comm, request, |s| {
        plan::everywhere(
            s,
            (sendbuf, recvbuf, count, datatype, op),
            comm,
            Coll::Exscan,
        )
    })
}
