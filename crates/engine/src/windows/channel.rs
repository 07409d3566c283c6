//! The messages of a window: its context, its ranks and this one.

use crate::messages::{Messages, ReqId, SendMode, Started, Want};
use kw_base::{ContextId, Peer};
use kw_proto::rma::FRAMES_TAG;
use kw_sys::buf::Buf;
use kw_types::comm::Group;
use std::sync::Arc;

/// See the module. It never changes: each part of a window has a copy.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// A context for the messages of this window only.
    pub context: ContextId,
    /// Its ranks.
    pub group: Arc<Group>,
    /// This rank.
    pub me: u32,
}

impl Channel {
    pub fn peer(&self, rank: u32) -> Peer {
        self.group.peer(rank)
    }

    pub fn size(&self) -> u32 {
        self.group.size()
    }

    pub fn send(&self, messages: &mut Messages, rank: u32, tag: i32, data: &Buf) -> Started {
        let from = (self.context, self.me, tag);
        messages.send(self.peer(rank), from, SendMode::Standard, data)
    }

    /// Like [`Channel::send`], for data that does not change.
    pub fn send_and_forget(&self, messages: &mut Messages, rank: u32, tag: i32, data: &Buf) {
        if let Started::Request(req) = self.send(messages, rank, tag, data) {
            messages.requests_mut().release(req);
        }
    }

    /// Sends few bytes, which are copied.
    pub fn send_bytes(&self, messages: &mut Messages, rank: u32, tag: i32, bytes: &[u8]) {
        let (to, from) = (self.peer(rank), (self.context, self.me, tag));
        let write = |out: &mut [u8]| out.copy_from_slice(bytes);
        if messages.send_at_once(to, from, bytes.len(), write) {
            return;
        }
        let data = Buf::alloc(bytes.len());
        data.write(0, bytes);
        self.send_and_forget(messages, rank, tag, &data);
    }

    /// Sends encoded frames.
    pub fn send_frames(&self, messages: &mut Messages, rank: u32, frames: &[u8]) {
        self.send_bytes(messages, rank, FRAMES_TAG, frames);
    }

    pub fn want(&self, rank: u32, tag: i32) -> Want {
        Want {
            context: self.context,
            source: Some((rank, self.peer(rank))),
            tag: Some(tag),
        }
    }

    /// Receives the data that a rank will send with this tag.
    pub fn expect(&self, messages: &mut Messages, rank: u32, tag: i32, into: Buf) -> ReqId {
        messages.recv(self.want(rank, tag), into)
    }
}
