//! State shared by all protocols of one rank: the table of [`Requests`], the [`Peers`], and the
//! actions for the owner ([`Outbox`]).
//!
//! Each protocol family keeps its own state beside an [`Endpoint`] and is given the endpoint with
//! every call ([`crate::p2p`]); [`crate::machine`] joins them. [`Action`]s come out, in the order
//! in which they must be carried out. Message buffers are values of a type that implements
//! [`Memory`]. The endpoint itself answers frames of class [`crate::wire::Class::Control`]: which
//! ranks have begun to finalize (`departed`).

mod action;
mod departed;
mod memory;
mod outbox;
mod outcome;
mod peers;
mod requests;

pub use action::{Action, FrameBody};
pub use departed::Awaits;
pub use memory::Memory;
pub use outbox::Outbox;
pub(crate) use outbox::{envelope, header};
pub use outcome::{Failure, Found, Outcome, Refused};
pub use peers::{PeerState, Peers};
pub use requests::{CompletionGuard, ReqId, Requests};
pub(crate) use requests::{Req, State};

/// State shared by all protocols of one rank. `P`: per-peer state of the message protocols.
#[derive(Debug)]
pub struct Endpoint<B, P> {
    /// Its requests.
    pub requests: Requests<B>,
    /// Its actions, counters and events.
    pub out: Outbox<B>,
    /// Its peers.
    pub peers: Peers<P>,
}

impl<B, P> Endpoint<B, P> {
    /// An endpoint with these peers and no requests.
    pub fn new(peers: Peers<P>) -> Endpoint<B, P> {
        Endpoint {
            requests: Requests::default(),
            out: Outbox::default(),
            peers,
        }
    }
}
