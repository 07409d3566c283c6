//! Interface between a rank and its launcher: one trait and its types.
//!
//! Implemented by PMI-1 and PMI-2 (`pmi1`, `pmi2`), PMIx (`pmix`), the rendezvous, and the
//! singleton. The requirements on all of them are a test suite (`conformance`), which unit tests
//! run over this library's servers, and `examples/launcher.rs` under any launcher.

use super::{BootError, LauncherFault};
use kw_start::pmi::Spawn;
use std::os::fd::BorrowedFd;

/// Services of a launcher for a rank.
pub trait Launcher: Send {
    /// Rank and job of this process.
    fn info(&self) -> &JobInfo;
    /// Name of the launcher, for messages.
    fn name(&self) -> &str;
    /// This process's rank in the job.
    fn rank(&self) -> u32 {
        self.info().rank
    }
    /// Processes in the job.
    fn size(&self) -> u32 {
        self.info().size
    }
    /// A name of the job, unique on this host for as long as the job runs.
    fn job(&self) -> &str {
        &self.info().job
    }
    /// Stores a value for all ranks; visible after the next fence. Any text, any length.
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError>;
    /// Waits until every rank has come here.
    fn fence(&mut self) -> Result<(), BootError>;
    /// Reads the value that rank `from` has put under a key before the last fence. Keys are the
    /// job's: two ranks never use the same.
    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError>;
    /// The ranks of each host, as far as the launcher knows (`None`: it does not say). `hosts[r]`
    /// is the number of the host of rank `r`.
    fn hosts(&mut self) -> Option<Vec<u32>>;
    /// The named sets of processes that the launcher made, beside those of every job.
    fn process_sets(&mut self) -> Vec<ProcessSet> {
        Vec::new()
    }
    /// Starts processes that form a job of their own. A launcher that cannot says so; this rank may
    /// go on.
    fn spawn(&mut self, wanted: &Spawn) -> Result<(), BootError> {
        Err(no_more(
            self.name(),
            wanted,
            "its protocol does not support this",
        ))
    }
    /// The job's key, if the launcher made one.
    fn key(&self) -> Option<[u8; 32]> {
        None
    }
    /// Reports what this rank waits for, in a line of at most 12 KB including its end, without
    /// blocking; returns whether there is a receiver.
    fn tell(&mut self, line: &str) -> bool {
        let _ = line;
        false
    }
    /// Whether the launcher reads reports of ranks.
    fn listens(&self) -> bool {
        false
    }
    /// Number of the launcher's last question about what this rank waits for, if one has come since
    /// the last call.
    fn asked(&mut self) -> Option<u32> {
        None
    }
    /// The descriptor to the launcher. If it is closed outside a call of this trait, the launcher
    /// has exited, and the rank should end.
    fn wire(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Ends the whole job with this status; the launcher prints the message. The caller then exits
    /// by itself.
    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError>;
    /// Whether a process that has called [`Launcher::finalize`] may begin a new conversation.
    fn takes_back(&self) -> bool {
        false
    }
    /// From now on ranks store values under new keys; returns whether the launcher supports it.
    fn next_round(&mut self) -> bool {
        false
    }
    /// Reports that this rank has finalized and may exit at any time.
    fn finalize(&mut self) -> Result<(), BootError>;
}

/// Information from a launcher about a process at its start.
#[derive(Clone, Debug, Default)]
pub struct JobInfo {
    /// Rank in the job.
    pub rank: u32,
    /// Processes in the job.
    pub size: u32,
    /// Name of the job.
    pub job: String,
    /// Application number in a multi-program start (MPI_APPNUM), if the launcher tells.
    pub appnum: Option<i32>,
    /// MPI_UNIVERSE_SIZE, if the launcher says.
    pub universe_size: Option<i32>,
}

/// A named set of processes of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSet {
    /// Name, as the launcher gives it.
    pub name: String,
    /// Members, by rank.
    pub ranks: Vec<u32>,
}

/// A launcher does not start these processes.
pub(super) fn no_more(name: &str, wanted: &Spawn, why: &str) -> BootError {
    LauncherFault::NoSpawn {
        name: name.into(),
        program: wanted.program.clone(),
        why: why.into(),
    }
    .into()
}

/// Message of a rank that ends the job, for launchers without this library's extension.
pub(super) fn aborted(rank: u32, status: i32, message: &str) -> String {
    let host = kw_sys::host::name();
    format!("rank {rank} on {host} aborted the job with status {status}: {message}")
}

/// A value that a rank has put under this key: any text.
pub(super) fn as_text(key: &str, bytes: Vec<u8>) -> Result<String, BootError> {
    Ok(String::from_utf8(bytes).map_err(|_| LauncherFault::NoText(key.into()))?)
}
