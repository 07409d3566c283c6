//! Senders of short payloads that are slowed down.
//!
//! A path copies a short payload, and its sender is done with it. If much waits to be sent already,
//! the sender goes on only when little does: otherwise a rank that sends to one that takes nothing
//! for a while would fill its own memory, and then the other's.

use crate::contract::Sent;

/// Cookies of those whose payload was copied while much waited.
#[derive(Debug, Default)]
pub struct Slowed(Vec<u64>);

impl Slowed {
    /// Returns whether a buffered send completes at once: true while at most `most` bytes are
    /// queued.
    pub fn copied(&mut self, cookie: u64, waiting: u64, most: u64) -> Sent {
        if waiting <= most {
            return Sent::Done;
        }
        self.0.push(cookie);
        Sent::Queued
    }

    /// This many bytes are queued now: all senders continue if these are at most `few`.
    pub fn go_on(&mut self, waiting: u64, few: u64, sent: impl FnMut(u64)) {
        if waiting <= few {
            self.0.drain(..).for_each(sent);
        }
    }

    /// No sender waits any more, and none is notified.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
