//! State of this process between initialisation and finalisation, and the rights of its threads.

use crate::error::Res;
use crate::state::Mpi;
use kw_boot::{Again, Launcher};
use kw_engine::Engine;
use std::thread::ThreadId;

/// State of the world model (MPI 5.0, 11.2).
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
    /// Number of users of the engine: the world and each session. The last one to go leaves the
    /// job.
    pub users: u32,
    /// An engine that was created beforehand ([`crate::Mpi::over`]): initialisation takes it
    /// instead of starting one.
    pub ready: Option<Engine>,
    /// Whether the job was left at least once. A session may rejoin it.
    pub left: bool,
    /// Whether its launcher was told so, and does not take this process back.
    pub lost: bool,
    /// Whether a session was opened.
    pub sessions: bool,
    /// Hook of the layer above at the end of MPI_Init, when everything else can be called.
    pub when_open: Option<fn(&Mpi) -> Res>,
    /// The launcher, kept for later sessions if it would not take this process back.
    pub kept: Option<Kept>,
}

/// A launcher that has not been told yet that this process has finished.
pub struct Kept {
    /// The process's launcher.
    pub launcher: Box<dyn Launcher>,
    /// A forked child does not speak for this process.
    process: u32,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").finish_non_exhaustive()
    }
}

impl Kept {
    /// Called after the ranks have left.
    pub fn new(mut launcher: Box<dyn Launcher>) -> Kept {
        if !launcher.next_round() {
            launcher = Box::new(Again::new(launcher));
        }
        Kept {
            launcher,
            process: std::process::id(),
        }
    }

    /// Tells the launcher that the process ends.
    pub fn finish(mut self) {
        if self.process == std::process::id() {
            // no handler is left for an error
            let _ = self.launcher.finalize();
        }
    }
}
