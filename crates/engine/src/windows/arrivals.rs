//! Messages with frames that have come, in the order in which their frames are applied.

use super::channel::Channel;
use crate::messages::{MessageId, Messages, ReqId, Want};
use kw_proto::p2p::TakenMessage;
use kw_proto::rma::FRAMES_TAG;
use kw_sys::buf::Buf;
use std::collections::VecDeque;

/// Frames that arrive.
#[derive(Debug)]
struct Incoming {
    origin: u32,
    /// The receive of the frames; `None` if they are here.
    req: Option<ReqId>,
    buf: Buf,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Arrivals {
    channel: Channel,
    /// Messages that wait for their data, or behind earlier ones.
    queue: VecDeque<Incoming>,
}

impl Arrivals {
    pub fn new(channel: Channel) -> Arrivals {
        Arrivals {
            channel,
            queue: VecDeque::new(),
        }
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next frames to apply, and their origin.
    pub fn next(&mut self, messages: &mut Messages) -> Option<(u32, Buf)> {
        let want = Want {
            context: self.channel.context,
            source: None,
            tag: Some(FRAMES_TAG),
        };
        while let Some((message, found)) = messages.take_data(want) {
            let waits = self.queue.iter().any(|b| b.origin == found.source);
            match message {
                TakenMessage::Whole(data) if !waits => return Some((found.source, data)),
                TakenMessage::Whole(buf) => self.queue.push_back(Incoming {
                    origin: found.source,
                    req: None,
                    buf,
                }),
                TakenMessage::Partial(key) => {
                    self.receive(messages, MessageId(key), found.len, found.source);
                }
            }
        }
        self.next_waiting(messages)
    }

    fn receive(&mut self, messages: &mut Messages, message: MessageId, len: u64, origin: u32) {
        let buf = usize::try_from(len).ok().and_then(Buf::try_alloc);
        let buf = buf.unwrap_or(Buf::EMPTY);
        if let Some(req) = messages.recv_message(message, &buf) {
            let req = Some(req);
            self.queue.push_back(Incoming { origin, req, buf });
        }
    }

    /// The first frames that have waited and are complete, with none of their origin before them.
    fn next_waiting(&mut self, messages: &mut Messages) -> Option<(u32, Buf)> {
        let mut i = 0;
        while i < self.queue.len() {
            let origin = self.queue[i].origin;
            let held = self.queue.iter().take(i).any(|b| b.origin == origin);
            let req = self.queue[i].req;
            if held || req.is_some_and(|req| !messages.requests().is_done(req)) {
                i += 1;
                continue;
            }
            let Incoming { origin, req, buf } = self.queue.remove(i)?;
            let failed = |req| {
                messages
                    .requests_mut()
                    .take(req)
                    .is_none_or(|o| o.failure.is_some())
            };
            if !req.is_some_and(failed) {
                return Some((origin, buf));
            }
        }
        None
    }
}
