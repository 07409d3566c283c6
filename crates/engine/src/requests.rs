//! Requests of all operations: those of messages, which the table of requests ends, and those that
//! their owner ends, whose errors are with the collectives.

use crate::collective::{Collectives, Failure, Outcome};
use crate::messages::{Messages, ReqId};
use kw_proto::endpoint::Found;

/// The requests of a rank.
#[derive(Debug)]
pub struct Requests<'a> {
    messages: &'a mut Messages,
    collectives: &'a mut Collectives,
}

impl<'a> Requests<'a> {
    #[inline(always)]
    pub(crate) fn of(messages: &'a mut Messages, collectives: &'a mut Collectives) -> Requests<'a> {
        Requests {
            messages,
            collectives,
        }
    }

    /// A request that its owner ends with [`Requests::end`]: no message does.
    pub fn open(self) -> ReqId {
        self.messages.requests_mut().open()
    }

    /// Ends such a request, which has moved this many bytes.
    pub fn end(self, req: ReqId, len: u64, failure: Option<Failure>) {
        self.collectives.end_with(self.messages, req, len, failure);
    }

    /// Takes the result of a request that has ended well; its id is dead then. `None`: it has not
    /// ended well, or there is more to report ([`Requests::take`]), and nothing has happened.
    #[inline]
    pub fn take_clean(self, req: ReqId) -> Option<Found> {
        match self.collectives.running.failed.is_empty() {
            true => self.messages.requests_mut().take_clean(req),
            false => None,
        }
    }

    /// Takes the outcome of a request that has ended; the id is dead from then on.
    #[inline]
    pub fn take(self, req: ReqId) -> Option<Outcome> {
        let outcome = self.messages.requests_mut().take(req)?;
        Some(outcome.map(|failure| match failure {
            Some(failure) => Some(Failure::Message(failure)),
            None => self.collectives.failure_of(req),
        }))
    }

    /// Forgets a request; it continues and is dropped when it ends (MPI_Request_free).
    pub fn release(self, req: ReqId) {
        self.collectives.failure_of(req);
        self.messages.requests_mut().release(req);
    }
}
