//! Why a rank cannot start, by the party at fault; the sentences are for the user.

use super::rendezvous::{HandshakeError, SHORTEST};
use super::traces::Launched;
use kw_coll::table::Unreadable;
use kw_start::Mismatch;
use kw_start::pmi::{PmiError, ranks};
use std::io;
use thiserror::Error;

/// Why a rank could not start.
#[derive(Debug, Error)]
pub enum BootError {
    /// A setting in the environment, or the way the program was started, has to be changed.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The launcher does not do its part.
    #[error(transparent)]
    Launcher(#[from] LauncherFault),
    /// Processes that were started one by one did not meet.
    #[error(transparent)]
    Meeting(#[from] NoMeeting),
    /// The ranks' records do not form a job.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The system refuses what a rank cannot do without.
    #[error("cannot {what}: {cause}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
    /// A path to other ranks cannot be opened.
    #[error(transparent)]
    Path(Box<dyn std::error::Error + Send + Sync>),
}

impl BootError {
    /// The system refuses `what`.
    pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> BootError + Copy {
        move |cause| BootError::System { what, cause }
    }
}

/// Error that the user has to correct.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum Misuse {
    /// No network is allowed.
    #[error("processes of different jobs meet over a network, and KW_PATHS allows none")]
    NoNetwork,
    #[error(
        "KW_PATHS is '{text}', but '{word}' is not a transport; known are self, shm, {}",
        kw_base::settings::NETWORKS.join(", ")
    )]
    NoPath { text: String, word: String },
    #[error("KW_COLL: {0}")]
    Rows(#[from] Unreadable),
    #[error("KW_DOMAINS is '{0}', but must be auto, none, or numbers separated by dots (0.0.1.1)")]
    Domains(String),
    /// The reason why the launcher cannot be used, followed by what would work.
    #[error("{}", .0.sentence(.1))]
    Foreign(Launched, String),
    #[error(
        "PMI_FD is {fd}, but nothing is open there ({cause}): this process was started by rank {rank} of another job, not by its \
         launcher; unset PMI_FD, PMI_RANK and PMI_SIZE to run it alone"
    )]
    NotStarted {
        fd: i32,
        rank: u32,
        cause: io::Error,
    },
    #[error("KW_RENDEZVOUS is '{0}', but must be NAME:PORT, the address of rank 0")]
    Rendezvous(String),
    #[error("KW_RENDEZVOUS is set, but KW_SIZE does not say how many processes the job has")]
    NoSize,
    #[error(
        "KW_RENDEZVOUS is set, but KW_RANK does not say which process this is, nor does the host's name '{0}' end in a number"
    )]
    NoRank(String),
    #[error("this is rank {rank} of {size} (KW_RANK, KW_SIZE), which is out of range")]
    Rank { rank: u32, size: u32 },
    #[error("{name} is '{text}', but must be a whole number")]
    Number { name: &'static str, text: String },
    #[error("KW_RENDEZVOUS needs a secret shared by all processes: set KW_KEY_FILE or KW_KEY")]
    NoSecret,
    #[error("KW_KEY_FILE is '{file}', which cannot be read: {cause}")]
    KeyFile { file: String, cause: io::Error },
    #[error("the secret in {place} has {len} bytes, but needs at least {SHORTEST}")]
    ShortSecret { place: &'static str, len: usize },
}

/// Error of the launcher.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum LauncherFault {
    #[error("the launcher set PMI_FD to {fd}, but {name} to '{text}', which is not a number")]
    Number {
        fd: String,
        name: &'static str,
        text: String,
    },
    #[error(
        "the launcher says this is rank {rank} of {size} (PMI_RANK, PMI_SIZE), which is out of range"
    )]
    Rank { rank: u32, size: u32 },
    #[error("{name} reports rank {rank} but no valid job size: {size:?}")]
    Size {
        name: &'static str,
        rank: u32,
        size: Option<u32>,
    },
    #[error(
        "the launcher says that this is rank {} of {}, but its environment says rank {} of {} (PMI_RANK, PMI_SIZE)",
        says.0, says.1, environment.0, environment.1
    )]
    Contradiction {
        says: (u32, u32),
        environment: (u32, u32),
    },
    #[error("the launcher is gone")]
    Gone,
    #[error("the launcher has exited, or does not let a process rejoin a job that it has left")]
    NotTakenBack,
    #[error("protocol error: invalid message from the launcher ({0})")]
    Malformed(#[from] PmiError),
    #[error("the PMIx launcher refused a request: {0}")]
    Pmix(String),
    #[error(
        "the connection of rank {rank} to rank 0 is broken: {}",
        HandshakeError::Forged
    )]
    Forged { rank: u32 },
    #[error("the launcher takes keys of {longest} bytes, but '{key}' has {} bytes", key.len())]
    LongKey { longest: usize, key: String },
    #[error("the launcher lost '{key}', piece {piece} of {of}")]
    LostPiece {
        key: String,
        piece: usize,
        of: usize,
    },
    #[error("{name} has no value of '{key}' of rank {rank}")]
    LostValue {
        name: String,
        key: String,
        rank: u32,
    },
    #[error("the launcher returned a value for '{0}' that is not text")]
    NoText(String),
    #[error("{0} does not provide the hosts of the ranks")]
    NoHosts(String),
    #[error("{name} gives rank {rank} other job data than rank 0")]
    Unequal { name: String, rank: u32 },
    #[error("{name} cannot start more processes ('{program}'): {why}")]
    NoSpawn {
        name: String,
        program: String,
        why: String,
    },
}

/// Why processes that were started one by one form no job.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum NoMeeting {
    #[error("rank {rank} did not find rank 0 at {at} (KW_RENDEZVOUS) within {wait} s: {why}")]
    NotFound {
        rank: u32,
        at: String,
        wait: u64,
        why: String,
    },
    #[error(
        "{} did not come to the rendezvous at {at} within {wait} s; {} did",
        ranks(missing),
        ranks(came)
    )]
    Missing {
        missing: Vec<u32>,
        came: Vec<u32>,
        at: String,
        wait: u64,
    },
    /// In the words of rank 0.
    #[error("{0}")]
    Refused(String),
    #[error("rank {rank} was lost during start-up: {cause}")]
    Disconnected { rank: u32, cause: io::Error },
    #[error("rank 0 cannot listen on port {port} (KW_RENDEZVOUS is '{at}'): {cause}")]
    NoPort {
        port: u16,
        at: String,
        cause: io::Error,
    },
}
