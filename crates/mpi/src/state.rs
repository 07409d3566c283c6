//! The state of MPI in one process: a lane with the engine and the tables of objects.

use kw_engine::{Inner, Lane};

/// Everything MPI keeps in one process. `kw-abi` holds the only one; a test may hold many.
#[derive(Debug)]
pub struct Mpi {
    /// The lane: engine and tables.
    pub lane: Lane<Tables>,
}

/// Tables of objects that handles name.
#[derive(Debug, Default)]
pub struct Tables {}

/// Ownership of the lane, with `engine` and `above` (the tables).
pub type Guard<'a> = kw_engine::Guard<'a, Tables>;

/// What the guard guards.
pub type State = Inner<Tables>;

impl Mpi {
    /// MPI before initialisation.
    pub fn new() -> Mpi {
        Mpi { lane: Lane::new(Tables::default()) }
    }

    /// Takes the lane.
    #[inline]
    pub fn lock(&self) -> Guard<'_> {
        self.lane.lock()
    }
}

impl Default for Mpi {
    fn default() -> Self {
        Mpi::new()
    }
}
