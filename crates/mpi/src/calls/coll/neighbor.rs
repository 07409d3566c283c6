//! Collectives along the edges of a virtual topology (MPI 5.0, 8.6 to 8.8): a block for each edge,
//! in the order of the topology.

use crate::calls::coll::arguments::{Data, apart, read_lists, refuse_same};
use crate::calls::coll::arguments::{refuse_same_apart, refuse_same_blocks, refuse_same_start};
use crate::calls::coll::check::{self, Block};
use crate::calls::coll::form::{Form, Operation};
use crate::calls::coll::operations::{exchanges, operations};
use crate::calls::coll::plan::{ApartArgs, Args, ListArgs, Plan, even, lay_out_apart, listed};
use crate::calls::coll::short::Asked;
use kw_coll::{Blocks, CallView, Coll, RECV, SEND};
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::{CommH, TypeH};
use kw_objects::state::{Mpi, State, Tables};
use kw_objects::topology::Neighborhood;
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// A call with its arguments, all but the communicator.
#[derive(Clone, Copy)]
enum Along {
    Allgather(Args, Args),
    Allgatherv(Args, ListArgs),
    Alltoall(Args, Args),
    Alltoallv(ListArgs, ListArgs),
    Alltoallw(ApartArgs, ApartArgs),
}

impl Operation for Along {
    const OWN_SHM_REGION: bool = false;

    #[inline(always)]
    fn plan(self, state: &mut State, comm: CommH) -> Plan {
        match self {
            Along::Allgather(s, r) => allgather(state, s, r, comm),
            Along::Allgatherv(s, r) => allgatherv(state, s, r, comm),
            Along::Alltoall(s, r) => alltoall(state, s, r, comm),
            Along::Alltoallv(s, r) => alltoallv(state, s, r, comm),
            Along::Alltoallw(s, r) => alltoallw(state, s, r, comm),
        }
    }

    #[inline(always)]
    fn asked(&self) -> Option<Asked> {
        None
    }
}

exchanges!(
    Along,
    neighbor_allgather,
    neighbor_allgatherv,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw
);

/// The edges of this process, which the topologies of all ranks describe consistently.
fn around(tables: &Tables, comm: CommH) -> Res<Neighborhood> {
    let c = tables.comms.get(comm)?;
    let Some(topology) = &c.topology else {
        return fail(
            Class::Topology,
            "comm has no topology; make one with MPI_Cart_create or MPI_Dist_graph_create_adjacent",
        );
    };
    let Some(found) = topology.neighborhood(c.rank) else {
        return fail(
            Class::Topology,
            "comm is a graph with edges that only one endpoint has specified; specify them on both",
        );
    };
    Ok(found)
}

fn call_view<'a>(tables: &Tables, comm: CommH, around: &'a Neighborhood) -> Res<CallView<'a>> {
    let c = tables.comms.get(comm)?;
    Ok(CallView {
        neighbors: Some(&around.edges),
        ..CallView::new(c.rank, c.local.size())
    })
}

/// A buffer of equal blocks; without blocks it is not examined, but a negative count is still
/// wrong.
fn blocks(tables: &Tables, name: &str, (addr, count, datatype): Args, blocks: u32) -> Res<Data> {
    let count = if blocks == 0 { count.min(0) } else { count };
    Data::of(tables, name, addr, count, datatype)
}

/// With KW_CHECK=1 the ranks first compare the data along their edges.
#[inline]
fn checked(
    state: &mut State,
    comm: CommH,
    name: &str,
    planned: Plan,
    give: impl Fn(usize) -> Block,
    take: impl Fn(usize) -> Block,
) -> Plan {
    if !state.above.checking {
        return planned;
    }
    check::along(state, comm, name, planned, (&give, &take))
}

/// MPI_Neighbor_allgather
fn allgather(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    let planned = plan_allgather(state, s, r, comm);
    let (give, take) = (|_| (s.1, s.2), |_| (r.1, r.2));
    checked(state, comm, "neighbor_allgather", planned, give, take)
}

fn plan_allgather(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    let around = around(&state.above, comm)?;
    let send = blocks(&state.above, "sendbuf", s, around.destinations.min(1))?;
    equal(
        state,
        send,
        (s, r),
        comm,
        (Coll::NeighborAllgather, &around),
    )
}

/// MPI_Neighbor_alltoall
fn alltoall(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    let planned = plan_alltoall(state, s, r, comm);
    let (give, take) = (|_| (s.1, s.2), |_| (r.1, r.2));
    checked(state, comm, "neighbor_alltoall", planned, give, take)
}

fn plan_alltoall(state: &mut State, s: Args, r: Args, comm: CommH) -> Plan {
    let around = around(&state.above, comm)?;
    let send = blocks(&state.above, "sendbuf", s, around.destinations)?;
    equal(state, send, (s, r), comm, (Coll::NeighborAlltoall, &around))
}

fn equal(
    state: &mut State,
    send: Data,
    (s, r): (Args, Args),
    comm: CommH,
    (coll, around): (Coll, &Neighborhood),
) -> Plan {
    let tables = &state.above;
    let recv = blocks(tables, "recvbuf", r, around.sources)?;
    refuse_same(s.0, r.0, send.bytes.min(recv.bytes))?;
    let call = CallView {
        send: even(SEND, send.count),
        recv: even(RECV, recv.count),
        ..call_view(tables, comm, around)?
    };
    lay_out_apart(state, comm, coll, &call, [send.memory, recv.memory])
}

/// MPI_Neighbor_allgatherv
fn allgatherv(state: &mut State, s: Args, r: ListArgs, comm: CommH) -> Plan {
    let planned = plan_allgatherv(state, s, r, comm);
    let (give, take) = (|_| (s.1, s.2), |i| (r.1.get(i), r.3));
    checked(state, comm, "neighbor_allgatherv", planned, give, take)
}

fn plan_allgatherv(state: &mut State, s: Args, r: ListArgs, comm: CommH) -> Plan {
    let around = around(&state.above, comm)?;
    let tables = &state.above;
    let send = blocks(tables, "sendbuf", s, around.destinations.min(1))?;
    let names = ("recvbuf", "recvcounts", "displs");
    let recv = read_lists(tables, names, r, around.sources)?;
    refuse_same_start(s.0, send.bytes, r, around.sources)?;
    let call = CallView {
        send: even(SEND, send.count),
        recv: listed(RECV, &recv.1),
        ..call_view(tables, comm, &around)?
    };
    let memories = [send.memory, recv.0];
    lay_out_apart(state, comm, Coll::NeighborAllgather, &call, memories)
}

/// MPI_Neighbor_alltoallv
fn alltoallv(state: &mut State, s: ListArgs, r: ListArgs, comm: CommH) -> Plan {
    let planned = plan_alltoallv(state, s, r, comm);
    let (give, take) = (|i| (s.1.get(i), s.3), |i| (r.1.get(i), r.3));
    checked(state, comm, "neighbor_alltoallv", planned, give, take)
}

fn plan_alltoallv(state: &mut State, s: ListArgs, r: ListArgs, comm: CommH) -> Plan {
    let around = around(&state.above, comm)?;
    let tables = &state.above;
    let names = ("sendbuf", "sendcounts", "sdispls");
    let send = read_lists(tables, names, s, around.destinations)?;
    let names = ("recvbuf", "recvcounts", "rdispls");
    let recv = read_lists(tables, names, r, around.sources)?;
    refuse_same_blocks(s, r, around.sources.min(around.destinations))?;
    let call = CallView {
        send: listed(SEND, &send.1),
        recv: listed(RECV, &recv.1),
        ..call_view(tables, comm, &around)?
    };
    lay_out_apart(state, comm, Coll::NeighborAlltoall, &call, [send.0, recv.0])
}

/// MPI_Neighbor_alltoallw
fn alltoallw(state: &mut State, s: ApartArgs, r: ApartArgs, comm: CommH) -> Plan {
    let planned = plan_alltoallw(state, s, r, comm);
    let (give, take) = (|i| (s.1.get(i), s.3.get(i)), |i| (r.1.get(i), r.3.get(i)));
    checked(state, comm, "neighbor_alltoallw", planned, give, take)
}

fn plan_alltoallw(state: &mut State, s: ApartArgs, r: ApartArgs, comm: CommH) -> Plan {
    let around = around(&state.above, comm)?;
    let tables = &state.above;
    let (sources, destinations) = (around.sources, around.destinations);
    let mut memories = Vec::with_capacity((sources + destinations) as usize);
    let (send, _) = apart(tables, "sendbuf", s, destinations, &mut memories)?;
    let (recv, _) = apart(tables, "recvbuf", r, sources, &mut memories)?;
    refuse_same_apart(s, r, sources.min(destinations))?;
    let call = CallView {
        send: Blocks::Apart {
            first: 0,
            counts: &send,
        },
        recv: Blocks::Apart {
            first: destinations,
            counts: &recv,
        },
        ..call_view(tables, comm, &around)?
    };
    lay_out_apart(state, comm, Coll::NeighborAlltoall, &call, memories)
}
