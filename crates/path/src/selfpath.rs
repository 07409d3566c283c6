//! The path to oneself: frames go around through a queue.
//!
//! Short payload is copied into the queue; long payload stays in the caller's memory and is copied
//! once, straight into its destination, by the next poll.

use std::collections::VecDeque;

use kw_base::{Calibration, Peer, Tick};
use kw_proto::p2p::prices;
use kw_proto::wire::Header;
use kw_sys::buf::Buf;

use crate::{Body, Down, Inbound, Lines, Path, Sent};

/// The longest payload that is copied into the queue: a built-in value.
const COPIED: u64 = 512;

#[derive(Debug)]
enum Kept {
    Bytes(Vec<u8>),
    Payload { buf: Buf, from: u64, len: u64 },
}

/// See the module.
#[derive(Debug)]
pub struct SelfPath {
    me: Peer,
    queue: VecDeque<(Header, Kept, u64)>,
}

impl SelfPath {
    /// The path of rank `me` to itself.
    pub fn new(me: Peer) -> SelfPath {
        SelfPath {
            me,
            queue: VecDeque::new(),
        }
    }

    /// [`Path::poll`], compiled for callers that know both types.
    #[inline]
    pub fn poll<I: Inbound + ?Sized>(&mut self, _now: Tick, inbound: &mut I) -> bool {
        let any = !self.queue.is_empty();
        while let Some(frame) = self.queue.pop_front() {
            self.deliver(frame, inbound);
        }
        any
    }

    fn deliver<I: Inbound + ?Sized>(
        &self,
        (head, kept, cookie): (Header, Kept, u64),
        inbound: &mut I,
    ) {
        match kept {
            Kept::Bytes(b) => inbound.on_frame(self.me, &head, &b),
            Kept::Payload { buf, from, len } => {
                let destination = inbound.on_head(self.me, &head);
                buf.copy_to(from, &destination.buf, destination.at, len);
                inbound.on_body(self.me, destination.cookie);
                inbound.on_sent(self.me, cookie);
            }
        }
    }
}

impl Path for SelfPath {
    fn lines(&self, _peer: Peer, _host: &Calibration) -> Lines {
        prices::own()
    }

    fn address(&self) -> String {
        String::new()
    }

    fn wants_address(&self, _peer: Peer) -> bool {
        false
    }

    fn introduce(&mut self, _peer: Peer, _address: &str) -> Result<(), Down> {
        Ok(())
    }

    fn send(&mut self, to: Peer, head: &Header, body: Body<'_>, cookie: u64) -> Result<Sent, Down> {
        if to != self.me {
            return Err(Down {
                path: "self",
                peer: to,
                reason: format!("this is rank {}", self.me),
            });
        }
        let (kept, sent) = match body {
            Body::None => (Kept::Bytes(Vec::new()), Sent::Done),
            Body::Bytes(b) => (Kept::Bytes(b.to_vec()), Sent::Done),
            Body::Payload { buf, from, len } if len <= COPIED => {
                let mut bytes = vec![0; len as usize];
                buf.read(from, &mut bytes);
                (Kept::Bytes(bytes), Sent::Done)
            }
            Body::Payload { buf, from, len } => {
                let buf = buf.clone();
                (Kept::Payload { buf, from, len }, Sent::Queued)
            }
        };
        self.queue.push_back((*head, kept, cookie));
        Ok(sent)
    }

    fn poll(&mut self, now: Tick, inbound: &mut dyn Inbound) -> bool {
        SelfPath::poll(self, now, inbound)
    }

    fn pending(&self) -> bool {
        !self.queue.is_empty()
    }

    fn close(&mut self) {}
}
