//! The engine: what the owner of the lane may do.

use kw_base::counters::Counters;
use kw_base::{ContextId, Key, Peer};
use kw_sys::buf::Buf;

/// Names a request of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReqId(pub Key);

/// Names a message taken off the unexpected queue by a matched probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageId(pub Key);

/// How a send completes (MPI 5.0, 3.4). Buffered sends are copied above the engine and sent as `Standard`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// Standard and ready.
    Standard,
    /// Completes only when the receive has been matched.
    Synchronous,
}

/// What a receive or a probe matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Want {
    /// Context of the communicator (for intracommunicators and intercommunicators: the one we receive in).
    pub context: ContextId,
    /// Source as rank in the communicator together with its peer; `None` is MPI_ANY_SOURCE.
    pub source: Option<(u32, Peer)>,
    /// Tag; `None` is MPI_ANY_TAG.
    pub tag: Option<i32>,
}

/// A send that was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Started {
    /// Already complete; there is no request.
    Done,
    /// Goes on.
    Request(ReqId),
}

/// What a probe found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes of the message.
    pub len: u64,
}

/// What went wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The message was longer than the receive buffer.
    Truncated {
        /// Bytes that came.
        came: u64,
        /// Bytes that fit.
        fits: u64,
    },
    /// The peer is gone; the sentence says who and why.
    PeerGone(String),
    /// Mismatched or faulty collective step; the sentence says what.
    Other(String),
}

/// How a request ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Sender's rank in the communicator (receives only).
    pub source: u32,
    /// Tag (receives only).
    pub tag: i32,
    /// Bytes received.
    pub len: u64,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// What went wrong, if anything did.
    pub failure: Option<Failure>,
}

/// One rank's engine.
#[derive(Debug)]
pub struct Engine {
    counters: Counters,
}

impl Engine {
    /// This rank in the job.
    pub fn me(&self) -> Peer {
        todo!()
    }

    /// Ranks in the job.
    pub fn size(&self) -> u32 {
        todo!()
    }

    /// Host number of every rank of the job (ranks with the same number share a machine).
    pub fn hosts(&self) -> &[u32] {
        todo!()
    }

    /// Starts a send. `source` is this rank's number in the communicator (or in its local group).
    pub fn send(
        &mut self,
        to: Peer,
        context: ContextId,
        source: u32,
        tag: i32,
        mode: SendMode,
        buf: &Buf,
    ) -> Started {
        let _ = (to, context, source, tag, mode, buf);
        todo!()
    }

    /// Starts a receive.
    pub fn recv(&mut self, want: Want, buf: &Buf) -> ReqId {
        let _ = (want, buf);
        todo!()
    }

    /// Looks for a message that a receive would match now. Does not progress.
    pub fn probe(&mut self, want: Want) -> Option<Found> {
        let _ = want;
        todo!()
    }

    /// Takes such a message off the queue (MPI_Improbe).
    pub fn take_message(&mut self, want: Want) -> Option<(MessageId, Found)> {
        let _ = want;
        todo!()
    }

    /// Receives a message taken off the queue (MPI_Mrecv).
    pub fn recv_message(&mut self, message: MessageId, buf: &Buf) -> ReqId {
        let _ = (message, buf);
        todo!()
    }

    /// Asks to cancel; the request completes either way (MPI 5.0, 3.8.4).
    pub fn cancel(&mut self, req: ReqId) {
        let _ = req;
        todo!()
    }

    /// Whether the request has ended.
    pub fn is_done(&self, req: ReqId) -> bool {
        let _ = req;
        todo!()
    }

    /// The outcome of a request that has ended, left in place (MPI_Request_get_status).
    pub fn peek(&self, req: ReqId) -> Option<&Outcome> {
        let _ = req;
        todo!()
    }

    /// Takes the outcome of a request that has ended; the id is dead from then on.
    pub fn take(&mut self, req: ReqId) -> Option<Outcome> {
        let _ = req;
        todo!()
    }

    /// Forgets a request; it goes on and is dropped when it ends (MPI_Request_free).
    pub fn release(&mut self, req: ReqId) {
        let _ = req;
        todo!()
    }

    /// Moves what can be moved, on all paths; never blocks. Returns whether anything moved.
    pub fn progress(&mut self) -> bool {
        todo!()
    }

    /// Counters of this rank.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
