//! Collectives along the edges of a virtual topology (MPI 5.0, 8.6 to 8.8): a block for each edge,
//! in the order of the topology.

use crate::calls::coll::check;
use crate::calls::coll::form::{Form, Operation};
use crate::calls::coll::operations::{exchanges, operations};
use crate::calls::coll::plan::{Plan, lay_out_sides};
use crate::calls::coll::short::Asked;
use crate::calls::coll::side::Side::{Apart, Even, Listed};
use crate::calls::coll::side::{BOTH_LISTED, ONE_LISTED, Side, refuse_same_sides};
use kw_coll::{CallView, Coll};
use kw_objects::error::{Res, fail};
use kw_objects::handle::{CommH, TypeH};
use kw_objects::state::{Mpi, State, Tables};
use kw_objects::topology::Neighborhood;
use kw_sys::args::{Array, Ints};
use kw_sys::buf::Addr;

/// A call with its arguments, all but the communicator.
#[derive(Clone, Copy)]
enum Along {
    Allgather(Side, Side),
    Alltoall(Side, Side),
}

impl Operation for Along {
    const OWN_SHM_REGION: bool = false;

    #[inline(always)]
    fn plan(self, state: &mut State, comm: CommH) -> Plan {
        let planned = planned(state, self, comm);
        if state.above.checking {
            return self.checked(state, comm, planned);
        }
        planned
    }

    #[inline(always)]
    fn asked(&self) -> Option<Asked> {
        None
    }
}

impl Along {
    /// With KW_CHECK=1 the ranks first compare the data along their edges.
    #[cold]
    fn checked(self, state: &mut State, comm: CommH, planned: Plan) -> Plan {
        let (name, s, r) = match self {
            Along::Allgather(s, r) => ("allgather", s, r),
            Along::Alltoall(s, r) => ("alltoall", s, r),
        };
        let name = format!("neighbor_{name}{}", r.letter());
        check::along(state, comm, &name, planned, (s, r))
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
        return fail!(Topology:
            "comm has no topology; make one with MPI_Cart_create or MPI_Dist_graph_create_adjacent");
    };
    let Some(found) = topology.neighborhood(c.rank) else {
        return fail!(Topology:
            "comm is a graph with edges that only one endpoint has specified; specify them on both");
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

fn planned(state: &mut State, along: Along, comm: CommH) -> Plan {
    let tables = &state.above;
    let around = around(tables, comm)?;
    let n = around.destinations;
    let (coll, names, n, s, r) = match along {
        Along::Allgather(s, r) => (Coll::NeighborAllgather, ONE_LISTED, n.min(1), s, r),
        Along::Alltoall(s, r) => (Coll::NeighborAlltoall, BOTH_LISTED, n, s, r),
    };
    let mut buffers = Vec::new();
    let send = s.read(tables, names[0], n, &mut buffers)?;
    let recv = r.read(tables, names[1], around.sources, &mut buffers)?;
    refuse_same_sides((s, &send), (r, &recv))?;
    let call = call_view(tables, comm, &around)?;
    lay_out_sides(state, comm, (coll, 0), &call, [send, recv], buffers)
}
