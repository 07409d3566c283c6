//! Errors of an operation: of one of its messages, or specific to collectives.

use super::Collectives;
use crate::engine::Engine;
use crate::messages::{Messages, ReqId};
use kw_proto::endpoint;
pub use kw_proto::endpoint::Failure as MessageFailure;

/// How an operation ended.
pub type Outcome = endpoint::Outcome<Failure>;

/// Error of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// A message, which may be all of it.
    Message(MessageFailure),
    /// A rank gave more or less to a collective than another one takes.
    Uneven {
        /// Bytes that came.
        came: u64,
        /// Bytes that were to come.
        wants: u64,
        /// Sender, receiver and amounts.
        text: String,
    },
    /// Two ranks of a collective named different roots; the sentence names them.
    Roots(String),
    /// Two ranks are in different collectives; the sentence names the ranks and the collectives.
    Calls(String),
    /// The records of the ranks of a collective differ (KW_CHECK=1).
    Disagreement {
        /// The checker's error class; opaque here.
        code: i32,
        /// The ranks and their calls.
        text: String,
    },
    /// A schedule uses shared memory that this rank does not have (a fault of our own).
    NoShmRegion,
}

impl Failure {
    /// A rank is gone; the sentence names it and the reason.
    pub(crate) fn gone(why: String) -> Failure {
        Failure::Message(MessageFailure::PeerGone(why))
    }
}

impl Collectives {
    /// Ends the request of a collective. The table of requests knows messages only, so the error
    /// waits with the runs until it is taken.
    pub(crate) fn end(&mut self, messages: &mut Messages, req: ReqId, failure: Option<Failure>) {
        self.end_with(messages, req, 0, failure);
    }

    /// Like [`Collectives::end`], for an operation that has moved this many bytes.
    pub(crate) fn end_with(
        &mut self,
        messages: &mut Messages,
        req: ReqId,
        len: u64,
        failure: Option<Failure>,
    ) {
        let outcome = endpoint::Outcome {
            len,
            ..endpoint::Outcome::CLEAN
        };
        messages.requests_mut().close(req, outcome);
        let wanted = failure.filter(|_| messages.requests().peek(req).is_some());
        self.running.failed.extend(wanted.map(|f| (req, f)));
    }

    /// Takes the error of the collective of a request, if there was one.
    #[inline]
    pub(crate) fn failure_of(&mut self, req: ReqId) -> Option<Failure> {
        let failed = &mut self.running.failed;
        if failed.is_empty() {
            return None;
        }
        let at = failed.iter().position(|f| f.0 == req)?;
        Some(failed.swap_remove(at).1)
    }
}

impl Engine {
    /// Result of a request that has ended, without taking its outcome (MPI_Request_get_status).
    pub fn peek(&self, req: ReqId) -> Option<Outcome> {
        let outcome = self.messages.requests().peek(req)?.clone();
        Some(outcome.map(|failure| failure.map(Failure::Message)))
    }
}
