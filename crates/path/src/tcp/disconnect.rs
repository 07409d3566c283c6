//! Why connections end.

use kw_base::Peer;
use kw_proto::wire::WireError;
use std::io;

/// Why a connection is over.
#[derive(Debug)]
pub enum End {
    /// The other side closed it.
    Closed,
    /// We have closed it: data sent over it was not answered.
    Silent,
    /// The system reported an error.
    Failed(io::Error),
    /// The received data is not a frame.
    Nonsense(WireError),
}

impl End {
    /// Description of the event; `way`: the two addresses, the local one first.
    pub fn what(&self, me: Peer, peer: Peer, way: &str) -> String {
        let which = format!("the connection of ranks {me} and {peer} ({way})");
        match self {
            End::Closed => format!("{which} was closed without a goodbye"),
            End::Silent => format!("{which} left unanswered what was sent over it"),
            End::Failed(e) => format!("{which} broke ({e})"),
            End::Nonsense(e) => format!("invalid frame on {which} ({e})"),
        }
    }

    /// Advice, if that is all that is known.
    pub fn advice(&self, peer: Peer) -> String {
        match self {
            End::Nonsense(_) => "check that all ranks load the same library".to_string(),
            _ => format!("rank {peer} or its host has probably died, see its own messages"),
        }
    }

    /// Whether another connection may carry the link on.
    pub fn may_go_on(&self) -> bool {
        !matches!(self, End::Nonsense(_))
    }
}

impl From<io::Error> for End {
    fn from(e: io::Error) -> End {
        End::Failed(e)
    }
}
