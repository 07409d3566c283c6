//! Blocking neighbourhood collectives (MPI 5.0, 8.6).

use super::plan;
use crate::calls::coll::block;
use crate::error::Res;
use crate::handle::{CommH, TypeH};
use crate::state::Mpi;
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// MPI_Neighbor_allgather
#[allow(clippy::too_many_arguments)]
pub fn neighbor_allgather(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
) -> Res {
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcount, recvtype),
    );
    block(mpi, comm, |state| plan::allgather(state, send, recv, comm))
}

/// MPI_Neighbor_allgatherv
#[allow(clippy::too_many_arguments)]
pub fn neighbor_allgatherv(
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
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcounts, displs, recvtype),
    );
    block(mpi, comm, |state| plan::allgatherv(state, send, recv, comm))
}

/// MPI_Neighbor_alltoall
#[allow(clippy::too_many_arguments)]
pub fn neighbor_alltoall(
    mpi: &Mpi,
    sendbuf: Addr,
    sendcount: i64,
    sendtype: TypeH,
    recvbuf: Addr,
    recvcount: i64,
    recvtype: TypeH,
    comm: CommH,
) -> Res {
    let (send, recv) = (
        (sendbuf, sendcount, sendtype),
        (recvbuf, recvcount, recvtype),
    );
    block(mpi, comm, |state| plan::alltoall(state, send, recv, comm))
}

/// MPI_Neighbor_alltoallv
#[allow(clippy::too_many_arguments)]
pub fn neighbor_alltoallv(
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
    let (send, recv) = (
        (sendbuf, sendcounts, sdispls, sendtype),
        (recvbuf, recvcounts, rdispls, recvtype),
    );
    block(mpi, comm, |state| plan::alltoallv(state, send, recv, comm))
}

/// MPI_Neighbor_alltoallw
#[allow(clippy::too_many_arguments)]
pub fn neighbor_alltoallw(
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
    let (send, recv) = (
        (sendbuf, sendcounts, sdispls, sendtypes),
        (recvbuf, recvcounts, rdispls, recvtypes),
    );
    block(mpi, comm, |state| plan::alltoallw(state, send, recv, comm))
}
