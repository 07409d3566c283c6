//! Common entry of all collective calls. A call on an intracommunicator proceeds to its plan; one
//! on an intercommunicator is separated here, and with KW_CHECK=1 the ranks compare their calls
//! first.

use super::plan::{self, Plan, ReduceArgs, ScatterArgs};
use super::side::{Args, Side};
use super::{check, inter};
use kw_coll::Coll;
use kw_objects::handle::CommH;
use kw_objects::state::{State, Tables};

/// A collective call with its arguments, all but the communicator.
#[derive(Clone, Copy)]
pub(super) enum Call {
    Barrier,
    Bcast(Args, i32),
    /// With equal blocks, or with lists.
    Gather(Side, Side, i32),
    Scatter(Side, Side, i32),
    Allgather(Side, Side),
    Alltoall(Side, Side),
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
    use Side::Even;
    match call {
        Call::Barrier => plan::barrier(state, comm),
        Call::Bcast((buffer, count, datatype), root) => {
            plan::bcast(state, buffer, count, datatype, root, comm)
        }
        Call::Gather(Even(s), Even(r), root) => plan::rooted::<true>(state, (s, r), root, comm),
        Call::Gather(s, r, root) => plan::rooted_lists(state, (s, r), root, comm, Coll::Gather),
        Call::Scatter(Even(s), Even(r), root) => plan::rooted::<false>(state, (s, r), root, comm),
        Call::Scatter(s, r, root) => plan::rooted_lists(state, (s, r), root, comm, Coll::Scatter),
        Call::Allgather(Even(s), Even(r)) => plan::exchange(state, (s, r), comm, Coll::Allgather),
        Call::Allgather(s, r) => plan::exchange_lists(state, (s, r), comm, Coll::Allgather),
        Call::Alltoall(Even(s), Even(r)) => plan::exchange(state, (s, r), comm, Coll::Alltoall),
        Call::Alltoall(s, r) => plan::exchange_lists(state, (s, r), comm, Coll::Alltoall),
        Call::Reduce(args, root) => plan::reduce(state, args, root, comm),
        Call::Everywhere(args, coll) => plan::everywhere(state, args, comm, coll),
        Call::ReduceScatter(args) => plan::reduce_scatter(state, args, comm),
        Call::ReduceScatterBlock(args) => plan::reduce_scatter_block(state, args, comm),
    }
}
