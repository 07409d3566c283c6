//! The collective operations (MPI 5.0, 6.3 to 6.13): each takes C's arguments and its form.

use super::call::Call;
use super::form::Form;
use super::side::Side::{Apart, Even, Listed};
use kw_coll::Coll;
use kw_objects::error::Res;
use kw_objects::handle::{CommH, OpH, TypeH};
use kw_objects::state::Mpi;
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// Defines a function for each operation: its parameters without the communicator, and the
/// resulting call.
macro_rules! operations {
    ($($name:ident($($param:ident: $type:ty),*) = $call:expr;)*) => {$(
        #[doc = concat!("The operation `", stringify!($name), "`.")]
        #[inline(always)]
        pub fn $name(mpi: &Mpi, $($param: $type,)* comm: CommH, form: impl Form) -> Res {
            form.run(mpi, comm, $call)
        }
    )*};
}
pub(super) use operations;

/// Operations that exist twice with the same parameters: of all ranks, and along the edges of a
/// virtual topology.
macro_rules! exchanges {
    ($call:ident, $allgather:ident, $allgatherv:ident, $alltoall:ident, $alltoallv:ident, $alltoallw:ident) => {
        operations! {
            $allgather(
                sendbuf: Addr, sendcount: i64, sendtype: TypeH,
                recvbuf: Addr, recvcount: i64, recvtype: TypeH
            ) = $call::Allgather(Even((sendbuf, sendcount, sendtype)), Even((recvbuf, recvcount, recvtype)));
            $allgatherv(
                sendbuf: Addr, sendcount: i64, sendtype: TypeH,
                recvbuf: Addr, recvcounts: Ints, displs: Ints, recvtype: TypeH
            ) = $call::Allgather(Even((sendbuf, sendcount, sendtype)), Listed((recvbuf, recvcounts, displs, recvtype)));
            $alltoall(
                sendbuf: Addr, sendcount: i64, sendtype: TypeH,
                recvbuf: Addr, recvcount: i64, recvtype: TypeH
            ) = $call::Alltoall(Even((sendbuf, sendcount, sendtype)), Even((recvbuf, recvcount, recvtype)));
            $alltoallv(
                sendbuf: Addr, sendcounts: Ints, sdispls: Ints, sendtype: TypeH,
                recvbuf: Addr, recvcounts: Ints, rdispls: Ints, recvtype: TypeH
            ) = $call::Alltoall(
                Listed((sendbuf, sendcounts, sdispls, sendtype)),
                Listed((recvbuf, recvcounts, rdispls, recvtype)),
            );
            $alltoallw(
                sendbuf: Addr, sendcounts: Ints, sdispls: Ints, sendtypes: Array<TypeH>,
                recvbuf: Addr, recvcounts: Ints, rdispls: Ints, recvtypes: Array<TypeH>
            ) = $call::Alltoall(
                Apart((sendbuf, sendcounts, sdispls, sendtypes)),
                Apart((recvbuf, recvcounts, rdispls, recvtypes)),
            );
        }
    };
}
pub(super) use exchanges;

exchanges!(Call, allgather, allgatherv, alltoall, alltoallv, alltoallw);

operations! {
    barrier() = Call::Barrier;
    bcast(buffer: Addr, count: i64, datatype: TypeH, root: i32) =
        Call::Bcast((buffer, count, datatype), root);
    gather(
        sendbuf: Addr, sendcount: i64, sendtype: TypeH,
        recvbuf: Addr, recvcount: i64, recvtype: TypeH, root: i32
    ) = Call::Gather(Even((sendbuf, sendcount, sendtype)), Even((recvbuf, recvcount, recvtype)), root);
    gatherv(
        sendbuf: Addr, sendcount: i64, sendtype: TypeH,
        recvbuf: Addr, recvcounts: Ints, displs: Ints, recvtype: TypeH, root: i32
    ) = Call::Gather(Even((sendbuf, sendcount, sendtype)), Listed((recvbuf, recvcounts, displs, recvtype)), root);
    scatter(
        sendbuf: Addr, sendcount: i64, sendtype: TypeH,
        recvbuf: Addr, recvcount: i64, recvtype: TypeH, root: i32
    ) = Call::Scatter(Even((sendbuf, sendcount, sendtype)), Even((recvbuf, recvcount, recvtype)), root);
    scatterv(
        sendbuf: Addr, sendcounts: Ints, displs: Ints, sendtype: TypeH,
        recvbuf: Addr, recvcount: i64, recvtype: TypeH, root: i32
    ) = Call::Scatter(Listed((sendbuf, sendcounts, displs, sendtype)), Even((recvbuf, recvcount, recvtype)), root);
    reduce(sendbuf: Addr, recvbuf: Addr, count: i64, datatype: TypeH, op: OpH, root: i32) =
        Call::Reduce((sendbuf, recvbuf, count, datatype, op), root);
    allreduce(sendbuf: Addr, recvbuf: Addr, count: i64, datatype: TypeH, op: OpH) =
        Call::Everywhere((sendbuf, recvbuf, count, datatype, op), Coll::Allreduce);
    reduce_scatter(sendbuf: Addr, recvbuf: Addr, recvcounts: Ints, datatype: TypeH, op: OpH) =
        Call::ReduceScatter((sendbuf, recvbuf, recvcounts, datatype, op));
    reduce_scatter_block(sendbuf: Addr, recvbuf: Addr, recvcount: i64, datatype: TypeH, op: OpH) =
        Call::ReduceScatterBlock((sendbuf, recvbuf, recvcount, datatype, op));
    scan(sendbuf: Addr, recvbuf: Addr, count: i64, datatype: TypeH, op: OpH) =
        Call::Everywhere((sendbuf, recvbuf, count, datatype, op), Coll::Scan);
    exscan(sendbuf: Addr, recvbuf: Addr, count: i64, datatype: TypeH, op: OpH) =
        Call::Everywhere((sendbuf, recvbuf, count, datatype, op), Coll::Exscan);
}
