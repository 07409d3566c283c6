//! Communicators.

use crate::error::{Class, Res, fail};
use crate::handle::{CommH, ErrhandlerH};
use crate::objects::Group;
use kw_base::{ContextId, Peer};
use std::sync::Arc;

/// MPI_ANY_SOURCE
pub const ANY_SOURCE: i32 = -1;
/// MPI_PROC_NULL
pub const PROC_NULL: i32 = -3;

/// One communicator, intra or inter.
#[derive(Debug)]
pub struct Comm {
    /// Its handle (for error scopes).
    pub handle: CommH,
    /// Context id: even, its collectives use the odd one above.
    pub context: ContextId,
    /// The group this process is in.
    pub local: Arc<Group>,
    /// The other group of an intercommunicator.
    pub remote: Option<Arc<Group>>,
    /// This process's rank in `local`.
    pub rank: u32,
    /// Error handler.
    pub errhandler: ErrhandlerH,
    /// Name given by MPI_Comm_set_name.
    pub name: String,
}

impl Comm {
    /// The group that ranks of point-to-point calls count in.
    #[inline]
    pub fn target(&self) -> &Arc<Group> {
        self.remote.as_ref().unwrap_or(&self.local)
    }

    /// The peer of a destination rank; `None` for MPI_PROC_NULL.
    #[inline]
    pub fn peer(&self, rank: i32) -> Res<Option<Peer>> {
        if rank == PROC_NULL {
            return Ok(None);
        }
        let group = self.target();
        if rank < 0 || rank as u32 >= group.size() {
            return fail(
                Class::Rank,
                format!(
                    "rank is {rank}, but the communicator has ranks 0 to {}",
                    group.size() as i64 - 1
                ),
            );
        }
        Ok(Some(group.peer(rank as u32)))
    }
}
