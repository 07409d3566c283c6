//! Identifiers of messages, requests and receives.

use kw_base::{ContextId, Key, Peer};
use kw_proto::matching::Pattern;
use kw_proto::p2p::Mode;

pub use kw_proto::endpoint::ReqId;
pub use kw_proto::p2p::Started;

/// Names a message taken off the unexpected queue by a matched probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageId(pub Key);

/// How a send completes (MPI 5.0, 3.4). Buffered sends are copied above the engine and sent as
/// `Standard`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// Standard and ready.
    Standard,
    /// Completes only when the receive has been matched.
    Synchronous,
    /// Standard; the receiver is asked to fetch the message from this rank's memory.
    Fetched,
}

impl From<SendMode> for Mode {
    fn from(mode: SendMode) -> Mode {
        match mode {
            SendMode::Standard => Mode::Standard,
            SendMode::Synchronous => Mode::Synchronous,
            SendMode::Fetched => Mode::Fetched,
        }
    }
}

/// Envelope of a receive or a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    /// Context of the communicator (for intracommunicators and intercommunicators: the one we
    /// receive in).
    pub context: ContextId,
    /// Source as rank in the communicator together with its peer; `None` is MPI_ANY_SOURCE.
    pub source: Option<(u32, Peer)>,
    /// Tag; `None` is MPI_ANY_TAG.
    pub tag: Option<i32>,
}

impl Want {
    #[inline]
    pub(super) fn pattern(&self) -> Pattern {
        Pattern {
            context: self.context.0,
            source: self.source.map(|s| s.0),
            tag: self.tag,
        }
    }
}
