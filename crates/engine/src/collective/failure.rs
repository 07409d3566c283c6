//! What goes wrong with an operation: one of its messages, or something that only collectives know
//! of.

use super::Collectives;
use crate::engine::Engine;
use crate::messages::{Messages, ReqId};
pub use kw_proto::endpoint::Failure as MessageFailure;
use kw_proto::endpoint::{self, Found};

/// How an operation ended.
pub type Outcome = endpoint::Outcome<Failure>;

/// What went wrong with an operation.
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
        /// Who gave and who takes what.
        text: String,
    },
    /// Two ranks of a collective named different roots; the sentence says who.
    Roots(String),
    /// Two ranks are in different collectives; the sentence says who in which.
    Calls(String),
    /// The ranks of a collective said different things (KW_CHECK=1).
    Disagreement {
        /// What the judge calls it; means nothing here.
        code: i32,
        /// Who said what.
        text: String,
    },
    /// A schedule uses shared memory that this rank has not (a fault of our own).
    NoBoard,
}

impl Failure {
    /// A rank is gone; the sentence says who and why.
    pub(crate) fn gone(why: String) -> Failure {
        Failure::Message(MessageFailure::PeerGone(why))
    }
}

impl Collectives {
    /// Ends the request of a collective. The table of requests knows messages only, so what went
    /// wrong waits with the runs until somebody takes it.
    pub(crate) fn end(&mut self, messages: &mut Messages, req: ReqId, failure: Option<Failure>) {
        self.end_with(messages, req, 0, failure);
    }

    /// As [`Collectives::end`], of an operation that has moved so many bytes.
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
        messages.close(req, outcome);
        let wanted = failure.filter(|_| messages.peek(req).is_some());
        self.running.failed.extend(wanted.map(|f| (req, f)));
    }

    /// Takes what went wrong with the collective of a request, if anything did.
    #[inline]
    fn failure_of(&mut self, req: ReqId) -> Option<Failure> {
        let failed = &mut self.running.failed;
        if failed.is_empty() {
            return None;
        }
        let at = failed.iter().position(|f| f.0 == req)?;
        Some(failed.swap_remove(at).1)
    }
}

impl Engine {
    /// What came with a request that has ended, whose outcome is left in place
    /// (MPI_Request_get_status).
    pub fn peek(&self, req: ReqId) -> Option<Outcome> {
        let outcome = self.messages.peek(req)?.clone();
        Some(outcome.map(|failure| failure.map(Failure::Message)))
    }

    /// Takes what came with a request that has ended well; its id is dead then. `None`: it has not,
    /// or there is more to say ([`Engine::take`]), and nothing has happened.
    #[inline]
    pub fn take_clean(&mut self, req: ReqId) -> Option<Found> {
        match self.parts.collectives.running.failed.is_empty() {
            true => self.messages.take_clean(req),
            false => None,
        }
    }

    /// Takes the outcome of a request that has ended; the id is dead from then on.
    #[inline]
    pub fn take(&mut self, req: ReqId) -> Option<Outcome> {
        let outcome = self.messages.take(req)?;
        Some(outcome.map(|failure| match failure {
            Some(failure) => Some(Failure::Message(failure)),
            None => self.parts.collectives.failure_of(req),
        }))
    }

    /// Forgets a request; it goes on and is dropped when it ends (MPI_Request_free).
    pub fn release(&mut self, req: ReqId) {
        self.parts.collectives.failure_of(req);
        self.messages.release(req);
    }
}
