//! Where this process stands between initialisation and finalisation, and what its threads may do.

use crate::error::Res;
use crate::state::Mpi;
use kw_boot::{Again, Launcher};
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
    /// An engine that was made beforehand ([`crate::Mpi::over`]): initialisation takes it instead
    /// of starting one.
    pub ready: Option<Engine>,
    /// The job was left, once at least. A session may rejoin it.
    pub left: bool,
    /// Its launcher was told so, and does not take this process back.
    pub lost: bool,
    /// A session was opened.
    pub sessions: bool,
    /// Hook of the layer above at the end of MPI_Init, when everything else can be called.
    pub when_open: Option<fn(&Mpi) -> Res>,
    /// The launcher, for sessions to come, where it would not take this process back.
    pub kept: Option<Kept>,
}

/// A launcher that has not heard yet that this process has finished.
pub struct Kept {
    /// The process's launcher.
    pub launcher: Box<dyn Launcher>,
    /// A child that was forked does not speak for this process.
    process: u32,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// After the ranks have left.
    pub fn new(mut launcher: Box<dyn Launcher>) -> Kept {
        if !launcher.next_round() {
            launcher = Box::new(Again::new(launcher));
        }
        Kept {
            launcher,
            process: std::process::id(),
        }
    }

    /// The process ends: says so to its launcher.
    pub fn finish(mut self) {
        if self.process == std::process::id() {
            // there is no handler left for an error
            let _ = self.launcher.finalize();
        }
    }
}
