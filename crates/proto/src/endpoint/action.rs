//! Actions that an endpoint requests from its owner.

use super::ReqId;
use crate::wire::{EXTENSION_LEN, Header, KEYED_LEN, RemoteRegion};
use kw_base::Peer;
use kw_base::events::EventRecord;

/// Body of a frame that has to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBody<B> {
    /// None.
    None,
    /// Protocol bytes.
    Extension([u8; EXTENSION_LEN]),
    /// Protocol bytes with a key.
    Keyed([u8; KEYED_LEN]),
    /// The first `len` bytes of a message buffer.
    Payload {
        /// The buffer.
        buf: B,
        /// Bytes.
        len: u64,
    },
}

/// An action of the machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<B> {
    /// Send a frame after all earlier ones to that peer (the payload of an offered message, `Data`,
    /// may go later without visible effect); call `on_sent` with the request when the payload has
    /// been read.
    Frame {
        /// The destination.
        to: Peer,
        /// Header.
        head: Header,
        /// Body.
        body: FrameBody<B>,
        /// The request whose payload it is; `None` if there is none.
        req: Option<ReqId>,
    },
    /// Read the peer's memory into a buffer, then call `on_got(req, ok)`.
    Get {
        /// The peer.
        from: Peer,
        /// Address of the data there.
        region: RemoteRegion,
        /// Destination.
        into: B,
        /// Bytes.
        len: u64,
        /// Request.
        req: ReqId,
    },
    /// Report an event to registered tools.
    Event(EventRecord),
    /// A path needs the address where this peer listens.
    Locate(Peer),
    /// The costs of the path to this peer have changed: call `move_choice`.
    Reprice(Peer),
}
