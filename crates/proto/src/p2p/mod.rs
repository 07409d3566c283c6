//! Point-to-point protocols as one state machine: eager, rendezvous, get and write.
//!
//! [`Machine`] owns all state of one rank, in parts that each own one matter: the table of
//! [`Requests`], what is known of the others ([`Peers`]), what is to be done ([`Outbox`]), what
//! sending and what receiving know besides ([`Sending`], [`Receiving`]). Its two halves work on
//! them: calls and events go to the [`Sender`] or to the [`Receiver`], or, where they concern both
//! (`on_frame`, `cancel`, `on_gone`), to the machine, which deals them out. [`Action`]s come out,
//! in the order in which they must be carried out. Nothing here touches a socket, a clock or the
//! user's memory: message buffers are values of a type that implements [`Memory`].
//!
//! ```text
//! eager       S --Eager(payload)--> R                                 (S done when its buffer was read)
//! synchronous S --EagerSync(payload)--> R --SyncAck--> S              (answered when matched)
//! rendezvous  S --Rts--> R --Cts--> S --Data(payload)--> R            (large, receive not posted or get refused)
//! get         S --Rts(address)--> R, R reads S's memory, R --Fin--> S
//! write       R --Announce--> S --Write(payload)--> R                 (no handshake at send time; see `announce`)
//! ```
//!
//! One file for each, with what either half does of it: [`eager`], [`rendezvous`] (with get),
//! [`announce`] (write; `withheld`: messages of collectives that wait for it); `direct` takes a
//! message past the queues; [`flow_control`] keeps messages back whose receiver has too many
//! already. Which one is taken is a matter of cost: [`table`].

pub mod announce;
mod departed;
mod direct;
pub mod eager;
mod flow_control;
mod landing;
mod machine;
mod outbox;
mod peers;
pub mod prices;
mod receiver;
mod rendezvous;
mod requests;
mod sender;
pub mod table;
mod unexpected;
mod view;
mod withheld;

pub use departed::Awaits;
pub use landing::{Landing, Place};
pub use machine::Machine;
pub use outbox::Outbox;
pub use peers::{PeerState, Peers};
pub use receiver::{Receiver, Receiving};
pub use requests::{CompletionGuard, ReqKey, Requests};
pub use sender::{Mode, Sender, Sending, Started};
pub use view::Stand;

use crate::wire::{EXTENSION_LEN, Header, Kind};
use kw_base::events::EventRecord;
use kw_base::{Key, Peer};

/// A message buffer as the protocols see it: a length, perhaps an address, and copying.
pub trait Memory: Clone {
    /// Bytes of packed data.
    fn len(&self) -> u64;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Address that a peer may read from or write to, when the bytes lie in a row.
    fn address(&self) -> Option<u64>;
    /// Fresh memory of our own, to be written before it is read; `None` when there is not enough.
    fn alloc(len: u64) -> Option<Self>;
    /// A buffer of no bytes.
    fn nothing() -> Self;
    /// Writes `data` from byte `at` on, as far as it fits.
    fn write(&self, at: u64, data: &[u8]);
    /// Copies the first `len` bytes to another buffer.
    fn copy_to(&self, to: &Self, len: u64);
}

/// For tests of what does not look at payload.
#[cfg(test)]
impl Memory for () {
    fn len(&self) -> u64 {
        0
    }
    fn address(&self) -> Option<u64> {
        None
    }
    fn alloc(_len: u64) -> Option<()> {
        Some(())
    }
    fn nothing() {}
    fn write(&self, _at: u64, _data: &[u8]) {}
    fn copy_to(&self, _to: &(), _len: u64) {}
}

/// Body of a frame that is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBody<B> {
    /// None.
    None,
    /// Protocol bytes.
    Extension([u8; EXTENSION_LEN]),
    /// The first `len` bytes of a message buffer.
    Payload {
        /// The buffer.
        buf: B,
        /// Bytes.
        len: u64,
    },
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<B> {
    /// Send a frame after all earlier ones to that peer (the payload of an offered message, `Data`,
    /// may go later: nobody sees when); call `on_sent` with the request when the payload has been
    /// read.
    Frame {
        /// To whom.
        to: Peer,
        /// Header.
        head: Header,
        /// Body.
        body: FrameBody<B>,
        /// Whose payload it is; `None` when there is none.
        req: Option<ReqKey>,
    },
    /// Read the peer's memory into a buffer, then call `on_got(req, ok)`.
    Get {
        /// Whose memory.
        from: Peer,
        /// Address there.
        address: u64,
        /// Where to.
        into: B,
        /// Bytes.
        len: u64,
        /// Request.
        req: Key,
    },
    /// Tell whoever wants to hear of it.
    Event(EventRecord),
    /// A path wants to know where this peer listens.
    Locate(Peer),
    /// What the path to this peer costs has changed: call `move_choice`.
    Reprice(Peer),
}

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
    /// Not enough memory to keep an unexpected message, or a faulty setup; the sentence says what.
    Other(String),
}

/// Why a frame is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It names a communicator or a rank that cannot be: the peer's fault.
    #[error("a frame names context {context} and rank {rank}, which cannot be")]
    Envelope {
        /// Context.
        context: u32,
        /// Rank.
        rank: u32,
    },
    /// Its body is too short for its kind: the peer's fault.
    #[error("{0:?} of {1} bytes")]
    Short(Kind, usize),
    /// Nobody has asked for the message, and there is no memory to keep it.
    #[error("no memory for an unexpected message of {0} bytes")]
    NoMemory(u64),
}

/// How a request ended. `F`: what can go wrong with it.
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
    /// What went wrong, if anything did.
    pub failure: Option<Box<F>>,
}

impl<F> Outcome<F> {
    /// The outcome of something that had nothing to receive.
    pub const CLEAN: Outcome<F> = Outcome {
        source: 0,
        tag: 0,
        len: 0,
        cancelled: false,
        failure: None,
    };

    /// The outcome of what was cancelled.
    pub const CANCELLED: Outcome<F> = Outcome {
        cancelled: true,
        ..Outcome::CLEAN
    };

    /// The outcome of what has failed.
    pub fn failed(failure: F) -> Outcome<F> {
        Outcome {
            failure: Some(Box::new(failure)),
            ..Outcome::CLEAN
        }
    }

    /// The same with what went wrong in other words.
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
