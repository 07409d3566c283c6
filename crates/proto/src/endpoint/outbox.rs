//! Actions of the machine, in order, with its counters and events. All frames are created here.

use super::{Action, FrameBody, ReqId};
use crate::matching::Envelope;
use crate::wire::{Header, Kind};
use kw_base::Peer;
use kw_base::counters::Counters;
use kw_base::events::{Event, EventRecord, MOST_ELEMENTS, Wanted};

/// Actions, counts and events of one machine.
#[derive(Debug)]
pub struct Outbox<B> {
    /// Pending actions, in order. The owner drains them after every call.
    pub actions: Vec<Action<B>>,
    /// Counts by protocol.
    pub counters: Counters,
    /// Kinds of events that are recorded.
    pub wanted: Wanted,
}

impl<B> Default for Outbox<B> {
    fn default() -> Self {
        Outbox {
            actions: Vec::new(),
            counters: Counters::default(),
            wanted: Wanted::default(),
        }
    }
}

/// The header of a frame that names a message, or a receive, by its envelope.
#[inline]
pub(crate) fn header(kind: Kind, env: Envelope, len: u64, token: u64) -> Header {
    Header {
        kind,
        context: env.context,
        source: env.source,
        tag: env.tag,
        len,
        token,
    }
}

/// The envelope that such a header names.
#[inline]
pub(crate) fn envelope(head: &Header) -> Envelope {
    Envelope {
        context: head.context,
        source: head.source,
        tag: head.tag,
    }
}

impl<B> Outbox<B> {
    /// Reports an event to the owner, if its kind is wanted.
    pub fn record(&mut self, event: Event, data: [i64; MOST_ELEMENTS]) {
        if self.wanted.has(event) {
            let record = EventRecord { event, data };
            self.actions.push(Action::Event(record));
        }
    }

    /// A frame without body.
    pub(crate) fn bare(&mut self, to: Peer, head: Header) {
        self.push(to, head, FrameBody::None, None);
    }

    /// A frame that names no message by its envelope, and has no body.
    pub(crate) fn control(&mut self, to: Peer, kind: Kind, token: u64, aux: u64, len: u64) {
        let head = Header {
            token,
            len,
            ..Header::bare(kind)
        };
        self.bare(to, head.with_aux(aux));
    }

    /// A frame with protocol bytes.
    pub(crate) fn extended(&mut self, to: Peer, head: Header, body: FrameBody<B>) {
        self.push(to, head, body, None);
    }

    /// A frame with the payload of a request: as many bytes of its buffer as the header says.
    pub(crate) fn payload(&mut self, to: Peer, head: Header, buf: B, req: ReqId) {
        let body = FrameBody::Payload { buf, len: head.len };
        self.push(to, head, body, Some(req));
    }

    fn push(&mut self, to: Peer, head: Header, body: FrameBody<B>, req: Option<ReqId>) {
        self.actions.push(Action::Frame {
            to,
            head,
            body,
            req,
        });
    }
}
