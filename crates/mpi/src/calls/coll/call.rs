//! Common entry of all collective calls. A call on an intracommunicator proceeds to its plan; one
//! on an intercommunicator is separated here, and with KW_CHECK=1 the ranks compare their calls
//! first.

use super::plan::{self, ApartArgs, Args, ListArgs, Plan, ReduceArgs, ScatterArgs};
use super::{check, inter};
use kw_coll::Coll;
use kw_objects::handle::CommH;
use kw_objects::state::{State, Tables};

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

/// Plans a call. If the variant is known at compile time, only the test and the plan remain.
#[inline(always)]
pub(super) fn make(state: &mut State, call: Call, comm: CommH) -> Plan {
    if is_special(&state.above, comm) {
        return special(state, call, comm);
    }
    plain(state, call, comm)
}

#[inline(always)]
fn is_special(tables: &Tables, comm: CommH) -> bool {
    tables.checking || tables.comms.get(comm).is_ok_and(|c| c.is_inter())
}

#[cold]
#[inline(never)]
fn special(state: &mut State, call: Call, comm: CommH) -> Plan {
    let planned = if state.above.comms.get(comm)?.is_inter() {
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
