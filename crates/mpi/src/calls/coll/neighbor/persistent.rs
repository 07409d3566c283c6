//! Persistent neighbourhood collectives (MPI 5.0, 8.8). The info argument carries no hints that we know.

use super::plan;
use crate::calls::coll::keep_with;
use crate::error::Res;
use crate::handle::{CommH, InfoH, RequestH, TypeH};
use crate::state::Mpi;
use kw_sys::args::{Array, Ints, Out};
use kw_sys::buf::Addr;

/// MPI_Neighbor_allgather_init
#[allow(clippy::too_many_arguments)]
pub fn neighbor_allgather_init(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcount, recvtype),
    );
    keep_with(mpi, comm, request, None, |state| {
        plan::allgather(state, send, recv, comm)
    })
}

/// MPI_Neighbor_allgatherv_init
#[allow(clippy::too_many_arguments)]
pub fn neighbor_allgatherv_init(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcounts, displs, recvtype),
    );
    keep_with(mpi, comm, request, None, |state| {
        plan::allgatherv(state, send, recv, comm)
    })
}

/// MPI_Neighbor_alltoall_init
#[allow(clippy::too_many_arguments)]
pub fn neighbor_alltoall_init(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcount, recvtype),
    );
    keep_with(mpi, comm, request, None, |state| {
        plan::alltoall(state, send, recv, comm)
    })
}

/// MPI_Neighbor_alltoallv_init
#[allow(clippy::too_many_arguments)]
pub fn neighbor_alltoallv_init(
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
    let (send, recv) = (
        (sendbuf, sendcounts, sdispls, sendtype),
        (recvbuf, recvcounts, rdispls, recvtype),
    );
    keep_with(mpi, comm, request, None, |state| {
        plan::alltoallv(state, send, recv, comm)
    })
}

/// MPI_Neighbor_alltoallw_init
#[allow(clippy::too_many_arguments)]
pub fn neighbor_alltoallw_init(
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
    let (send, recv) = (
        (sendbuf, sendcounts, sdispls, sendtypes),
        (recvbuf, recvcounts, rdispls, recvtypes),
    );
    keep_with(mpi, comm, request, None, |state| {
        plan::alltoallw(state, send, recv, comm)
    })
}
