//! Where this process stands between initialisation and finalisation, and what its threads may do.

use kw_engine::Engine;
use std::thread::ThreadId;

/// The world model's life (MPI 5.0, 11.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum World {
    /// MPI_Init has not been called.
    #[default]
    Before,
    /// Between MPI_Init and MPI_Finalize.
    Open,
    /// MPI_Finalize has been called.
    Finalized,
}

/// Initialisation, finalisation and threads.
#[derive(Debug, Default)]
pub struct Life {
    /// The world model.
    pub world: World,
    /// Thread level provided (MPI_THREAD_*), once initialised.
    pub level: i32,
    /// The thread that initialised MPI.
    pub main: Option<ThreadId>,
    /// How many use the engine: the world and each session. The last one to go leaves the job.
    pub users: u32,
    /// An engine that was made beforehand ([`crate::Mpi::over`]): initialisation takes it instead of starting one.
    pub ready: Option<Engine>,
    /// The job was left, once at least. A session may join it anew.
    pub left: bool,
}
