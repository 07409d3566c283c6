//! Events of a TCP path: the poller with its numbers, and when it is polled.
//!
//! Few connections are read directly, and the poller is asked now and then only; it is asked at the
//! next poll if something may have happened that only it reports ([`Watcher::hurry`]).

use super::Tuning;
use kw_base::{Peer, Tick};
use kw_proto::stripe::Carrier;
use kw_sys::poller::{Event, Poller};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Source of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token {
    /// One of our listening sockets.
    Acceptor(usize),
    /// A connection that is pending at the acceptor, by its key there.
    Pending(u64),
    /// A connection that we make to a peer.
    Dial(Peer),
    /// The connection to a peer.
    Link(Peer),
    /// A further one.
    Rail(Peer, Carrier),
    /// A further one that we make.
    RailDial(Peer),
}

impl Token {
    /// The kind is in the top byte, the index in the lower ones.
    const KIND: u32 = 56;
    /// Bits of the number of a rail.
    const RAIL: u32 = 32;

    /// The source as a number for the poller. A rail's id has 24 bits, a pending connection's key
    /// 56.
    pub fn bits(self) -> u64 {
        let (kind, which) = match self {
            Token::Acceptor(i) => (0, i as u64),
            Token::Pending(key) => (1, key),
            Token::Dial(peer) => (2, peer.0.into()),
            Token::Link(peer) => (3, peer.0.into()),
            Token::Rail(peer, id) => (4, u64::from(id) << Token::RAIL | u64::from(peer.0)),
            Token::RailDial(peer) => (5, peer.0.into()),
        };
        kind << Token::KIND | which
    }

    /// Meaning of a number.
    pub fn of(bits: u64) -> Token {
        let which = bits & ((1 << Token::KIND) - 1);
        let peer = Peer(which as u32);
        match bits >> Token::KIND {
            1 => Token::Pending(which),
            2 => Token::Dial(peer),
            3 => Token::Link(peer),
            4 => Token::Rail(peer, (which >> Token::RAIL) as Carrier),
            5 => Token::RailDial(peer),
            _ => Token::Acceptor(which as usize),
        }
    }
}

/// The poller of a path.
#[derive(Debug)]
pub struct Watcher {
    poller: Poller,
    events: Vec<Event>,
    /// Polls until the poller is asked next, if few connections are read directly.
    patience: u32,
    /// When something has to be checked without any event.
    next: Tick,
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl Watcher {
    /// Watches with this poller.
    pub fn new(poller: Poller) -> Watcher {
        Watcher {
            poller,
            events: Vec::new(),
            patience: 0,
            next: Tick::NEVER,
        }
    }

    /// The poller.
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// The poller is asked at the next poll.
    pub fn hurry(&mut self) {
        self.patience = 0;
    }

    /// Whether it has to be asked at this poll.
    #[inline]
    pub fn is_hurried(&self) -> bool {
        self.patience == 0
    }

    /// A poll goes by without asking it.
    #[inline]
    pub fn count_down(&mut self) {
        self.patience = self.patience.saturating_sub(1);
    }

    /// The events; to be returned with [`Watcher::give_back`].
    pub fn ask(&mut self, tuning: &Tuning) -> Vec<Event> {
        self.patience = tuning.look_every;
        let mut events = std::mem::take(&mut self.events);
        // An epoll that fails leaves the direct reads; the error cannot be reported.
        let _ = self.poller.wait(Some(Duration::ZERO), &mut events);
        events
    }

    /// Takes the memory of events back.
    pub fn give_back(&mut self, events: Vec<Event>) {
        self.events = events;
    }

    /// Something has to be checked at this time, without any event.
    pub fn set_next(&mut self, next: Tick) {
        self.next = next;
        // Without the alarm the rank still sees the time-out at its next poll.
        let _ = self.poller.set_alarm(next);
    }

    /// Nothing has to be. The alarm may still go off once.
    pub fn set_no_next(&mut self) {
        self.next = Tick::NEVER;
    }

    /// A sleep ends then, too. Returns whether the system has agreed.
    pub fn set_alarm(&mut self, at: Tick) -> bool {
        self.poller.set_alarm(at.min(self.next)).is_ok()
    }

    /// A sleep ends at once.
    pub fn wake(&mut self) {
        // Without the alarm the next poll checks.
        let _ = self.poller.set_alarm(Tick(1));
    }

    /// Whether the alarm has gone off, and would end a sleep at once.
    pub fn is_due(&self, now: Tick) -> bool {
        self.poller.is_due(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_itself_again() {
        let all = [
            Token::Acceptor(3),
            Token::Pending(u64::MAX >> 8),
            Token::Dial(Peer(7)),
            Token::Link(Peer(u32::MAX)),
            Token::Rail(Peer(u32::MAX), (1 << 24) - 1),
            Token::RailDial(Peer(0)),
        ];
        for token in all {
            assert_eq!(Token::of(token.bits()), token);
        }
    }
}
