//! Direct: the message of a blocking receive that has come, or comes in a moment, is taken from the
//! path past the queues.
//!
//! A receive that names its source, on a rank where no other receive is posted and no message
//! waits, matches the first message of that source that fits it and follows no other one. So if the
//! very next frame of the source's path is that message, a request, an entry in the queues and the
//! search for it would change nothing; they cost more than the message itself.
//!
//! The same holds for messages of a context in which no receive is ever posted for their tag, and
//! which their owner takes in the order in which they come (frames of windows):
//! [`super::Receiving::may_take_unasked`].
//!
//! The owner asks [`Receiver::may_take`], reads the next frame, and offers it to
//! [`Receiver::take_direct`]. Any frame that is not a whole eager message that fits goes the
//! ordinary way: then the owner starts the receive with [`Receiver::recv`].

use super::receiver::Receiver;
use crate::endpoint::{Found, Memory};
use crate::matching::{Pattern, accepts};
use crate::wire::{Header, Kind};
use kw_base::Peer;
use kw_base::counters::Counter;

impl<B: Memory> Receiver<'_, B> {
    /// Whether a receive of `len` bytes from a peer may take its message past the queues.
    #[inline(always)]
    pub fn may_take(&self, from: Peer, len: u64) -> bool {
        let peer = &self.peers[from];
        self.receiving.matching.is_empty()
            && peer.is_plain()
            && len < peer.messages.choice.announce_min
            && !self.receiving.is_pausing()
    }

    /// A message of `from` was taken, after [`super::Receiving::may_take_unasked`] returned true.
    #[inline(always)]
    pub fn took_unasked(&mut self, from: Peer) {
        self.peers[from].messages.ours.seen += 1;
        self.out.counters.hit(Counter::Expected);
    }

    /// Takes a frame of `from` as the message of a receive of `room` bytes, after
    /// [`Receiver::may_take`] returned true and before anything else happened; the owner puts its
    /// body into place. `None`: it is not such a message, and the frame stays where it is.
    #[inline(always)]
    pub fn take_direct(
        &mut self,
        from: Peer,
        want: Pattern,
        room: u64,
        head: &Header,
    ) -> Option<Found> {
        let fits = head.kind == Kind::Eager
            && head.context == want.context
            && Some(head.source) == want.source
            && accepts(want.tag, head.tag)
            && head.len <= room;
        if !fits {
            return None;
        }
        self.peers[from].messages.ours.seen += 1;
        self.out.counters.hit(Counter::Expected);
        Some(Found {
            source: head.source,
            tag: head.tag,
            len: head.len,
        })
    }
}
