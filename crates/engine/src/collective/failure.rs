//! What goes wrong with an operation: one of its messages, or something that only collectives know of.

use crate::engine::{Engine, ReqId};
use kw_proto::p2p;
pub use kw_proto::p2p::Failure as MessageFailure;

/// How an operation ended.
pub type Outcome = p2p::Outcome<Failure>;

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

impl Engine {
    /// Ends the request of a collective. The table of requests knows messages only, so what went wrong waits here until
    /// somebody takes it.
    pub(crate) fn end_collective(&mut self, req: ReqId, failure: Option<Failure>) {
        self.machine.requests.close(req.0, p2p::Outcome::CLEAN);
        let wanted = self.machine.requests.peek(req.0).is_some();
        let failed = failure.filter(|_| wanted).map(|failure| (req, failure));
        self.collectives.failed.extend(failed);
    }

    /// Takes what went wrong with the collective of a request, if anything did.
    #[inline]
    pub(crate) fn failure_of(&mut self, req: ReqId) -> Option<Failure> {
        let failed = &mut self.collectives.failed;
        if failed.is_empty() {
            return None;
        }
        let at = failed.iter().position(|f| f.0 == req)?;
        Some(failed.swap_remove(at).1)
    }
}
