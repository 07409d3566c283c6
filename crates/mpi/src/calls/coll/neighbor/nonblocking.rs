//! Non-blocking neighbourhood collectives (MPI 5.0, 8.7).

use super::plan;
use crate::calls::coll::begin;
use crate::error::Res;
use crate::handle::{CommH, RequestH, TypeH};
use crate::state::Mpi;
use kw_sys::args::{Array, Ints, Out};
use kw_sys::buf::Addr;

/// MPI_Ineighbor_allgather
#[allow(clippy::too_many_arguments)]
pub fn ineighbor_allgather(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcount, recvtype),
    );
    begin(mpi, comm, request, |state| {
        plan::allgather(state, send, recv, comm)
    })
}

/// MPI_Ineighbor_allgatherv
#[allow(clippy::too_many_arguments)]
pub fn ineighbor_allgatherv(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcounts, displs, recvtype),
    );
    begin(mpi, comm, request, |state| {
        plan::allgatherv(state, send, recv, comm)
    })
}

/// MPI_Ineighbor_alltoall
#[allow(clippy::too_many_arguments)]
pub fn ineighbor_alltoall(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcount, recvtype),
    );
    begin(mpi, comm, request, |state| {
        plan::alltoall(state, send, recv, comm)
    })
}

/// MPI_Ineighbor_alltoallv
#[allow(clippy::too_many_arguments)]
pub fn ineighbor_alltoallv(
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
    let (send, recv) = (
        (sendbuf, sendcounts, sdispls, sendtype),
        (recvbuf, recvcounts, rdispls, recvtype),
    );
    begin(mpi, comm, request, |state| {
        plan::alltoallv(state, send, recv, comm)
    })
}

/// MPI_Ineighbor_alltoallw
#[allow(clippy::too_many_arguments)]
pub fn ineighbor_alltoallw(
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
    let (send, recv) = (
        (sendbuf, sendcounts, sdispls, sendtypes),
        (recvbuf, recvcounts, rdispls, recvtypes),
    );
    begin(mpi, comm, request, |state| {
        plan::alltoallw(state, send, recv, comm)
    })
}
