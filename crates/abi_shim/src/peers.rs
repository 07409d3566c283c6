//! Number of elements of an array that no argument counts.

use crate::Abi;
use crate::constants::{MPI_CART, MPI_DIST_GRAPH, MPI_GRAPH};
use crate::functions::functions;
use crate::handle::{Kind, V};

/// Number of processes with which a collective on a communicator exchanges blocks.
///
/// # Safety
/// MPI is initialised.
pub unsafe fn of<A: Abi>(comm: V<A::Comm>) -> i64 {
    let comm = A::Comm::to_standard(comm);
    let (mut inter, mut size) = (0, 0);
    // SAFETY: the results have places.
    unsafe {
        if (functions().MPI_Comm_test_inter)(comm, &raw mut inter) != 0 {
            return 0;
        }
        match inter {
            0 => (functions().MPI_Comm_size)(comm, &raw mut size),
            _ => (functions().MPI_Comm_remote_size)(comm, &raw mut size),
        };
    }
    i64::from(size)
}

/// Numbers of neighbours that this process sends to, or receives from.
///
/// # Safety
/// MPI is initialised.
pub unsafe fn neighbors<A: Abi>(comm: V<A::Comm>, outgoing: bool) -> i64 {
    let comm = A::Comm::to_standard(comm);
    let (mut kind, mut rank, mut n, mut out, mut weighted) = (0, 0, 0, 0, 0);
    let f = functions();
    // SAFETY: the results have places.
    unsafe {
        if (f.MPI_Topo_test)(comm, &raw mut kind) != 0 {
            return 0;
        }
        match kind {
            MPI_CART => {
                (f.MPI_Cartdim_get)(comm, &raw mut n);
                n *= 2;
            }
            MPI_GRAPH => {
                (f.MPI_Comm_rank)(comm, &raw mut rank);
                (f.MPI_Graph_neighbors_count)(comm, rank, &raw mut n);
            }
            MPI_DIST_GRAPH => {
                (f.MPI_Dist_graph_neighbors_count)(
                    comm,
                    &raw mut n,
                    &raw mut out,
                    &raw mut weighted,
                );
                if outgoing {
                    n = out;
                }
            }
            _ => {}
        }
    }
    i64::from(n)
}
