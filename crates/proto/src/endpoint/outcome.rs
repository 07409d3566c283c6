//! Results of requests, and reasons why frames are refused.

use crate::wire::Kind;

/// A message that a receive would match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes of the message.
    pub len: u64,
}

/// Error of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The message was longer than the receive buffer.
    Truncated {
        /// Bytes that came.
        came: u64,
        /// Bytes that fit.
        fits: u64,
    },
    /// The message has other elements than the receive (KW_CHECK); the sentence names them.
    Types(String),
    /// The peer is gone; the sentence names it and the reason.
    PeerGone(String),
    /// Not enough memory to keep an unexpected message, or a faulty setup; the sentence tells
    /// which.
    Other(String),
}

/// Why a frame is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It names a communicator or a rank that cannot be: the peer's fault.
    #[error("context {context}, source rank {rank} out of range")]
    Envelope {
        /// Context.
        context: u32,
        /// Rank.
        rank: u32,
    },
    /// Its body is too short for its kind: the peer's fault.
    #[error("{0:?} of {1} bytes")]
    Short(Kind, usize),
    /// An unexpected message for which there is no memory.
    #[error("no memory for an unexpected message of {0} bytes")]
    NoMemory(u64),
}

/// How a request ended. `F`: its possible errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome<F = Failure> {
    /// Sender's rank in the communicator (receives only).
    pub source: u32,
    /// Tag (receives only).
    pub tag: i32,
    /// Bytes received.
    pub len: u64,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// The error, if any.
    pub failure: Option<Box<F>>,
}

impl<F> Outcome<F> {
    /// The outcome of a request that had nothing to receive.
    pub const CLEAN: Outcome<F> = Outcome {
        source: 0,
        tag: 0,
        len: 0,
        cancelled: false,
        failure: None,
    };

    /// The outcome of a request that was cancelled.
    pub const CANCELLED: Outcome<F> = Outcome {
        cancelled: true,
        ..Outcome::CLEAN
    };

    /// The outcome of a request that has failed.
    pub fn failed(failure: F) -> Outcome<F> {
        Outcome {
            failure: Some(Box::new(failure)),
            ..Outcome::CLEAN
        }
    }

    /// This outcome with another error.
    #[inline]
    pub fn map<G>(self, failure: impl FnOnce(Option<F>) -> Option<G>) -> Outcome<G> {
        Outcome {
            source: self.source,
            tag: self.tag,
            len: self.len,
            cancelled: self.cancelled,
            failure: failure(self.failure.map(|f| *f)).map(Box::new),
        }
    }
}
