//! What every collective call passes through. A call on an intracommunicator goes on to its plan; one on an
//! intercommunicator is told apart here, and with KW_CHECK=1 the ranks compare their calls first.

use super::plan::{self, ApartArgs, Args, ListArgs, Plan, ReduceArgs, ScatterArgs};
use super::{check, inter};
use crate::handle::{CommH, TypeH};
use crate::state::{State, Tables};
use kw_coll::Coll;
use kw_sys::buf::Addr;

/// A collective call with its arguments, all but the communicator.
#[derive(Clone, Copy)]
pub(super) enum Call {
    Barrier,
    Bcast(Args, i32),
    Gather(Args, Args, i32),
    Gatherv(Args, ListArgs, i32),
    Scatter(Args, Args, i32),
    Scatterv(ListArgs, Args, i32),
    Allgather(Args, Args),
    Allgatherv(Args, ListArgs),
    Alltoall(Args, Args),
    Alltoallv(ListArgs, ListArgs),
    Alltoallw(ApartArgs, ApartArgs),
    Reduce(ReduceArgs, i32),
    /// Allreduce, scan and exscan.
    Everywhere(ReduceArgs, Coll),
    ReduceScatter(ScatterArgs),
    ReduceScatterBlock(ReduceArgs),
}

/// Plans a call. Where the variant is known, what is left of this is the test and the plan.
#[inline(always)]
fn make(state: &mut State, call: Call, comm: CommH) -> Plan {
    if is_special(&state.above, comm) {
        return special(state, call, comm);
    }
    plain(state, call, comm)
}

#[inline(always)]
fn is_special(tables: &Tables, comm: CommH) -> bool {
    tables.checking || tables.comm(comm).is_ok_and(|c| c.is_inter())
}

#[cold]
#[inline(never)]
fn special(state: &mut State, call: Call, comm: CommH) -> Plan {
    let planned = if state.above.comm(comm)?.is_inter() {
        inter::plan(state, &call, comm)
    } else {
        plain(state, call, comm)
    };
    if state.above.checking {
        return check::before(state, &call, comm, planned);
    }
    planned
}

#[inline(always)]
fn plain(state: &mut State, call: Call, comm: CommH) -> Plan {
    match call {
        Call::Barrier => plan::barrier(state, comm),
        Call::Bcast((buffer, count, datatype), root) => {
            plan::bcast(state, buffer, count, datatype, root, comm)
        }
        Call::Gather(s, r, root) => plan::gather(state, s, r, root, comm),
        Call::Gatherv(s, r, root) => plan::gatherv(state, s, r, root, comm),
        Call::Scatter(s, r, root) => plan::scatter(state, s, r, root, comm),
        Call::Scatterv(s, r, root) => plan::scatterv(state, s, r, root, comm),
        Call::Allgather(s, r) => plan::allgather(state, s, r, comm),
        Call::Allgatherv(s, r) => plan::allgatherv(state, s, r, comm),
        Call::Alltoall(s, r) => plan::alltoall(state, s, r, comm),
        Call::Alltoallv(s, r) => plan::alltoallv(state, s, r, comm),
        Call::Alltoallw(s, r) => plan::alltoallw(state, s, r, comm),
        Call::Reduce(args, root) => plan::reduce(state, args, root, comm),
        Call::Everywhere(args, coll) => plan::everywhere(state, args, comm, coll),
        Call::ReduceScatter(args) => plan::reduce_scatter(state, args, comm),
        Call::ReduceScatterBlock(args) => plan::reduce_scatter_block(state, args, comm),
    }
}

/// MPI_Barrier
#[inline]
pub(super) fn barrier(state: &mut State, comm: CommH) -> Plan {
    make(state, Call::Barrier, comm)
}

/// MPI_Bcast
#[inline]
pub(super) fn bcast(
    state: &mut State,
    buffer: Addr,
    count: i64,
    datatype: TypeH,
    root: i32,
    comm: CommH,
) -> Plan {
    make(state, Call::Bcast((buffer, count, datatype), root), comm)
}

/// MPI_Gather
#[inline]
pub(super) fn gather(state: &mut State, s: Args, r: Args, root: i32, comm: CommH) -> Plan {
    make(state, Call::Gather(s, r, root), comm)
}

/// MPI_Gatherv
#[inline]
pub(super) fn gatherv(state: &mut State, s: Args, r: ListArgs, root: i32, comm: CommH) -> Plan {
    make(state, Call::Gatherv(s, r, root), comm)
}

/// MPI_Scatter
#[inline]
pub(super) fn scatter(state: &mut State, s: Args, r: Args, root: i32, comm: CommH) -> Plan {
    make(state, Call::Scatter(s, r, root), comm)
}

/// MPI_Scatterv
#[inline]
pub(super) fn scatterv(state: &mut State, s: ListArgs, r: Args, root: i32, comm: CommH) -> Plan {
    make(state, Call::Scatterv(s, r, root), comm)
}

/// MPI_Allgather
#[inline]
pub(super) fn allgather(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    make(state, Call::Allgather(s, r), comm)
}

/// MPI_Allgatherv
#[inline]
pub(super) fn allgatherv(state: &mut State, s: Args, r: ListArgs, comm: CommH) -> Plan {
    make(state, Call::Allgatherv(s, r), comm)
}

/// MPI_Alltoall
#[inline]
pub(super) fn alltoall(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    make(state, Call::Alltoall(s, r), comm)
}

/// MPI_Alltoallv
#[inline]
pub(super) fn alltoallv(state: &mut State, s: ListArgs, r: ListArgs, comm: CommH) -> Plan {
    make(state, Call::Alltoallv(s, r), comm)
}

/// MPI_Alltoallw
#[inline]
pub(super) fn alltoallw(state: &mut State, s: ApartArgs, r: ApartArgs, comm: CommH) -> Plan {
    make(state, Call::Alltoallw(s, r), comm)
}

/// MPI_Reduce
#[inline]
pub(super) fn reduce(state: &mut State, args: ReduceArgs, root: i32, comm: CommH) -> Plan {
    make(state, Call::Reduce(args, root), comm)
}

/// MPI_Allreduce, MPI_Scan and MPI_Exscan
#[inline]
pub(super) fn everywhere(state: &mut State, args: ReduceArgs, comm: CommH, coll: Coll) -> Plan {
    make(state, Call::Everywhere(args, coll), comm)
}

/// MPI_Reduce_scatter
#[inline]
pub(super) fn reduce_scatter(state: &mut State, args: ScatterArgs, comm: CommH) -> Plan {
    make(state, Call::ReduceScatter(args), comm)
}

/// MPI_Reduce_scatter_block
#[inline]
pub(super) fn reduce_scatter_block(state: &mut State, args: ReduceArgs, comm: CommH) -> Plan {
    make(state, Call::ReduceScatterBlock(args), comm)
}
