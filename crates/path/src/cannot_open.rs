//! Reasons why a path cannot open, by the person who can correct them; texts are made when read.

use crate::address::Misnamed;
use std::io;
use std::net::IpAddr;

/// Why a path cannot open.
#[derive(Debug, thiserror::Error)]
#[error("path {path} cannot open: {why}")]
pub struct CannotOpen {
    /// Name of the path.
    pub path: &'static str,
    /// The person who can correct it, and the cause.
    pub why: Cause,
}

impl CannotOpen {
    pub(crate) fn new(path: &'static str, why: impl Into<Cause>) -> CannotOpen {
        let why = why.into();
        CannotOpen { path, why }
    }
}

/// The person who can correct it, and the cause.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The user: `KW_INTERFACES` names something that this host does not have.
    #[error(transparent)]
    Misuse(#[from] Misnamed),
    /// The user of the job: a resource is exhausted.
    #[error(transparent)]
    Resource(#[from] Lacking),
    /// The system refused.
    #[error("{what} ({why})")]
    Io {
        /// The refused action.
        what: &'static str,
        /// The system's error.
        why: io::Error,
    },
}

impl Cause {
    /// The system's error for this action.
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Cause {
        move |why| Cause::Io { what, why }
    }
}

/// The exhausted resource.
#[derive(Debug, thiserror::Error)]
pub enum Lacking {
    /// Open files.
    #[error(
        "with KW_RELIABLE=no a rank needs room for connections to all {peers} others, but it may \
         open only {most}; raise the limit of open files (ulimit -n), or leave KW_RELIABLE=yes"
    )]
    Files {
        /// Needed connections.
        peers: usize,
        /// Possible connections.
        most: usize,
    },
    /// Room in a datagram for ranks of several jobs.
    #[error("UDP reaches the ranks of one job only: name tcp before udp in KW_PATHS")]
    OtherJobs,
    /// An address on which no port could be opened.
    #[error("no address can be {}", tried(.purpose, .all))]
    Addresses {
        /// Its purpose.
        purpose: &'static str,
        /// The addresses tried, and the reasons.
        all: Vec<(IpAddr, NoPort)>,
    },
}

fn tried(purpose: &str, all: &[(IpAddr, NoPort)]) -> String {
    let list: Vec<_> = all.iter().map(|(a, why)| format!("{a}: {why}")).collect();
    format!("{purpose} ({})", list.join("; "))
}

/// Why no port could be opened on an address.
#[derive(Debug, thiserror::Error)]
pub enum NoPort {
    /// Others use all of them.
    #[error(
        "all ports of KW_PORTS, {first}-{last}, are in use, but each of the job's {ranks} ranks on this host needs one; use a longer range"
    )]
    Taken {
        /// First of the range.
        first: u16,
        /// Last of the range.
        last: u16,
        /// Ranks of the job on this host.
        ranks: u32,
    },
    /// The system refused this one.
    #[error("port {0}: {1}")]
    Refused(u16, io::Error),
    /// The system refused any.
    #[error(transparent)]
    Any(io::Error),
}
