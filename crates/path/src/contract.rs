//! The interface between paths and the engine.

use kw_base::{Calibration, Peer, Tick};
use kw_proto::wire::{Header, RemoteRegion};
use kw_sys::buf::Buf;

/// Body of a frame.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    /// Nothing.
    None,
    /// A few bytes of protocol; the path copies them when it cannot send at once.
    Bytes(&'a [u8]),
    /// Payload: `len` packed bytes of a message buffer from `from` on.
    Payload {
        /// The message buffer; a path that queues keeps a clone.
        buf: &'a Buf,
        /// First byte.
        from: u64,
        /// Number of bytes.
        len: u64,
    },
}

impl Body<'_> {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Body::None => 0,
            Body::Bytes(b) => b.len() as u64,
            Body::Payload { len, .. } => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Result of [`Path::send`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// The path is done with the caller's memory; `on_sent` is not called.
    Done,
    /// The path continues by itself, in order; it calls [`Inbound::on_sent`] with the cookie when
    /// it is done with the caller's memory.
    Queued,
}

/// Why a path cannot serve a peer (any more).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path {path} to rank {peer}: {reason}")]
pub struct Down {
    /// Name of the path.
    pub path: &'static str,
    /// The peer.
    pub peer: Peer,
    /// One clause for people: the failed action, its errno, the remedy.
    pub reason: String,
}

/// Why memory could not be fetched; both mean: use another protocol for this pair from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// This path never can.
    Unsupported,
    /// The system does not permit it (errno).
    Denied(i32),
}

/// Destination of the payload of a frame whose header came first.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Given back in [`Inbound::on_body`].
    pub cookie: u64,
    /// Body bytes `0..buf.len()-at` go to `buf` from `at` on; bytes beyond it are thrown away.
    pub buf: Buf,
    /// First byte of `buf` that is written.
    pub at: u64,
}

/// Receiver of frames: the engine, or a recorder in a test.
///
/// For each frame a path calls either `on_frame` (the whole body is in memory) or `on_head` and
/// later, when the last byte is in place, `on_body`. Frames of one peer begin in the order they
/// were sent. They also land in that order, except `Data` and `Write`, whose payload others may
/// overtake: their receive is known, so this is not visible.
pub trait Inbound {
    /// A whole frame. `body` is valid during the call only.
    fn on_frame(&mut self, from: Peer, head: &Header, body: &[u8]);
    /// A header whose body is still on its way (only kinds whose body is payload).
    fn on_head(&mut self, from: Peer, head: &Header) -> Destination;
    /// The body announced by `on_head` is in place.
    fn on_body(&mut self, from: Peer, cookie: u64);
    /// A queued frame has left the caller's memory.
    fn on_sent(&mut self, to: Peer, cookie: u64);
    /// The peer cannot be reached any more. `clean`: it said goodbye first.
    fn on_down(&mut self, down: Down, clean: bool);
    /// The connection of a peer broke whose address this path was never told; it wants to be
    /// [introduced](Path::introduce).
    fn on_stray(&mut self, peer: Peer) {
        let _ = peer;
    }
    /// The costs of the path to this peer ([`Path::lines`]) have changed.
    fn on_repriced(&mut self, peer: Peer) {
        let _ = peer;
    }
}

/// Abilities and one-way costs of the path: from the host's calibration (`kw_proto::p2p::prices`),
/// corrected at run time by the path's own measurements ([`Inbound::on_repriced`]). It has a line
/// for [`Path::get`] if the path can do that.
pub use kw_proto::p2p::table::Lines;

/// A way for frames between this rank and others.
pub trait Path {
    /// Its abilities for this peer, and their costs, from the host's calibration.
    fn lines(&self, peer: Peer, host: &Calibration) -> Lines;

    /// Address for other ranks, as opaque text without white space (for the launcher's key-value
    /// space). Empty if none is needed.
    fn address(&self) -> String;

    /// Whether [`Path::introduce`] must be called before the first send to this peer.
    fn wants_address(&self, peer: Peer) -> bool;

    /// Tells the path the address text of a peer. The connection is made on the first send.
    fn introduce(&mut self, peer: Peer, address: &str) -> Result<(), Down>;

    /// Sends one frame after all earlier ones to the same peer.
    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down>;

    /// Moves everything that can be moved, in both directions, for all peers; never blocks. Returns
    /// whether anything moved.
    fn poll(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool;

    /// Like `poll`, but only data from one peer (a known source needs no search); everything else
    /// may wait.
    fn poll_from(&mut self, peer: Peer, now: Tick, inbound: &mut dyn Inbound) -> bool {
        let _ = peer;
        self.poll(now, inbound)
    }

    /// Copies the first `len` bytes of a region of the peer's memory into `into` from `at` on, now.
    fn get(
        &mut self,
        from: Peer,
        region: RemoteRegion,
        into: &Buf,
        at: u64,
        len: u64,
    ) -> Result<(), Refused> {
        let _ = (from, region, into, at, len);
        Err(Refused::Unsupported)
    }

    /// Bytes or frames still to be sent for a request (MPI_Finalize waits until there are none).
    fn pending(&self) -> bool;

    /// Says goodbye to every peer; after that nothing is sent.
    fn close(&mut self);
}
