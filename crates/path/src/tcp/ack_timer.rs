//! Schedule of queries for acknowledged data, and notification of senders whose payload may be
//! reused.
//!
//! There is no event for acknowledgements ([`super::unacked`]). A rank that polls queries at each
//! poll. One that is about to sleep copies unacknowledged data, so that no sender waits; while an
//! operation of a program that computes cannot continue before a send has ended, the progress
//! thread queries again when everything should have arrived.

use super::Tuning;
use super::peers::Peers;
use super::watcher::Watcher;
use crate::contract::Inbound;
use kw_base::{Peer, Tick};
use std::time::Duration;

/// The next query of acknowledgements, at the time when all should be there: each query costs the
/// computation as much as any wake-up, and incoming data wakes the progress thread anyway.
#[derive(Clone, Copy, Default, Debug)]
pub struct NextLook {
    at: Tick,
    /// The last query, and the bytes that were unacknowledged then.
    last: Option<(Tick, u64)>,
    /// Picoseconds for a byte, as seen last; zero before the first time.
    pace: u64,
    /// Queries since then that saw nothing new.
    vain: u32,
}

impl NextLook {
    /// No pause is longer: a collective operation waits for the end of a send.
    const LONGEST: Duration = Duration::from_millis(10);
    /// No pause is shorter: the cost of a wake-up should be worth it.
    const SHORTEST: Duration = Duration::from_micros(50);
    /// Initial guess: a fast network.
    const QUICK: u64 = 1000;

    /// No query is needed any more. Returns whether one was due.
    fn rest(&mut self) -> bool {
        (self.last, self.vain) = (None, 0);
        std::mem::take(&mut self.at) != Tick(0)
    }

    /// Chooses the next time; `owed`: bytes that have to be acknowledged.
    fn put_off(&mut self, now: Tick, owed: u64) {
        self.learn(now, owed);
        self.pace = match self.pace {
            0 => NextLook::QUICK,
            pace => pace.clamp(NextLook::QUICK / 10, NextLook::QUICK * 100),
        };
        let all = self.pace.saturating_mul(owed) / 1000;
        // A little later than expected, because a query that comes too early is followed by another
        // one.
        let pause = Duration::from_nanos(all + all / 16) * (1 << self.vain.min(8));
        self.at = now + pause.clamp(NextLook::SHORTEST, NextLook::LONGEST);
        self.last = Some((now, owed));
    }

    /// Rate of acknowledgements, from those since the last query.
    fn learn(&mut self, now: Tick, owed: u64) {
        match self.last {
            Some((then, before)) if before > owed => {
                let picos = now.since(then).as_nanos() as u64 * 1000;
                (self.pace, self.vain) = (picos / (before - owed), 0);
            }
            Some(_) => self.vain += 1,
            None => {}
        }
    }
}

/// Senders that wait for an acknowledgement, across all connections.
#[derive(Debug, Default)]
pub struct AckTimer {
    /// When the progress thread queries.
    next_look: NextLook,
    /// Senders whose payload may be reused and that have not been notified.
    completed: Vec<(Peer, u64)>,
}

impl AckTimer {
    /// Notifies senders whose payload the peers' kernels have acknowledged, or whose payload was
    /// copied before a sleep. Returns whether there were any.
    #[cold]
    pub fn reap_acks(
        &mut self,
        peers: &mut Peers,
        tuning: &Tuning,
        inbound: &mut dyn Inbound,
    ) -> bool {
        let completed = !self.completed.is_empty();
        for (peer, cookie) in self.completed.drain(..) {
            inbound.on_sent(peer, cookie);
        }
        peers.reap_acks(tuning, inbound) | completed
    }

    /// Before a sleep that only events end: lent data is copied, and the sleep ends at once.
    #[cold]
    pub fn copy_unacked(&mut self, peers: &mut Peers, watcher: &mut Watcher) {
        peers.copy_unacked(&mut self.completed);
        if !self.completed.is_empty() {
            watcher.wake();
        }
    }

    /// Before a sleep of the progress thread, while an operation cannot go on before a send has
    /// ended: no event tells of acknowledgements, but the program computes, and a query costs it
    /// less than a copy of the data in flight.
    #[cold]
    pub fn schedule_look(&mut self, now: Tick, peers: &mut Peers, watcher: &mut Watcher) {
        if now >= self.next_look.at {
            self.next_look.put_off(now, peers.unacked_bytes());
        }
        if !watcher.set_alarm(self.next_look.at) {
            self.copy_unacked(peers, watcher);
        }
    }

    /// Before a sleep of the progress thread while nothing depends on acknowledgements.
    pub fn cancel_look(&mut self, watcher: &mut Watcher) {
        if self.next_look.rest() {
            // An alarm that stays costs a wake-up.
            watcher.set_alarm(Tick::NEVER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn micros(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    /// Polls a network with this many nanoseconds per byte until nothing is outstanding; returns
    /// the number of polls.
    fn looks(next_look: &mut NextLook, from: Tick, nanos: u64) -> u32 {
        let (mut now, mut looks) = (from, 0);
        loop {
            let gone = now.since(from).as_nanos() as u64 / nanos;
            if gone >= MB {
                next_look.rest();
                return looks;
            }
            next_look.put_off(now, MB - gone);
            assert!(next_look.at > now);
            (now, looks) = (next_look.at, looks + 1);
        }
    }

    #[test]
    fn one_look_is_enough_once_the_pace_is_known() {
        let mut next_look = NextLook::default();
        let guesses = looks(&mut next_look, Tick(0), 8);
        assert!((2..=4).contains(&guesses), "{guesses} looks");
        assert_eq!(looks(&mut next_look, Tick(1 << 30), 8), 1);
        // The network has become slower: the pace is found again.
        let more = looks(&mut next_look, Tick(2 << 30), 24);
        assert!(more <= 4, "{more} looks");
        assert_eq!(
            looks(&mut next_look, Tick(3 << 30), 24),
            3,
            "at most 10 ms each"
        );
    }

    #[test]
    fn pauses_grow_while_nothing_comes_and_have_an_end() {
        let mut next_look = NextLook::default();
        let mut last = Duration::ZERO;
        let mut now = Tick(0);
        for _ in 0..100 {
            next_look.put_off(now, 64 << 10);
            let pause = next_look.at.since(now);
            assert!(pause >= last && pause <= NextLook::LONGEST);
            (last, now) = (pause, next_look.at);
        }
        assert_eq!(last, NextLook::LONGEST);
        assert!(next_look.rest(), "it was going to look");
        assert!(!next_look.rest());
        next_look.put_off(now, 1);
        assert_eq!(
            next_look.at.since(now),
            micros(50),
            "no less than a wake-up is worth"
        );
    }
}
