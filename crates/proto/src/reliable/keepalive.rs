//! Whether the other side is still there: a rank that is stopped or computes is as silent as a host
//! that has vanished.
//!
//! Silence proves nothing: a rank that computes outside MPI does not answer, nor does a stopped
//! one. The kernels' answers do. The host's kernel answers a datagram to a closed port ("port
//! unreachable"), even if all processes compute: so a live host can be told from a dead one, and an
//! ended process from a busy one. After [`SILENCE`] one datagram goes to the rank, and one to a
//! port of its host that should be closed, once per second.
//!
//! | what was heard | verdict |
//! | --- | --- |
//! | anything from the rank itself | it is there |
//! | port unreachable, for the rank's own port, [`REFUSALS`] times | the rank has ended |
//! | port unreachable, for the other port | the host is there, the rank is busy or stopped: wait |
//! | host unreachable, or nothing at all, for [`GONE_AFTER`] | the host has vanished |
//!
//! A firewall that swallows all of these makes a rank that is silent for [`GONE_AFTER`] look like
//! one that has vanished.

use kw_base::Tick;
use std::time::Duration;

/// After this long without any datagram the kernels are asked.
pub const SILENCE: Duration = Duration::from_secs(3);
/// Time between two questions.
const EVERY: Duration = Duration::from_secs(1);
/// This long after the last sign of life the host is taken for gone.
pub const GONE_AFTER: Duration = Duration::from_secs(12);
/// Consecutive refusals that are believed: one may be of a predecessor.
const REFUSALS: u32 = 3;
/// Probes that must have remained unanswered, so that a rank that was itself stopped does not trust
/// its clock.
const QUESTIONS: u32 = 6;

/// The next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// Nothing.
    Rest,
    /// Ask rank and host.
    Ask,
    /// It is over.
    Over(Loss),
}

/// Why it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Loss {
    /// Its socket is closed.
    #[error(
        "its port is closed (reported by its host); the rank has probably died, see its own messages"
    )]
    Ended,
    /// Its host is silent.
    #[error("neither it nor its host answered for {} s; the host or the network is down", GONE_AFTER.as_secs())]
    Vanished,
}

/// The watch over one peer.
#[derive(Clone, Debug)]
pub struct Keepalive {
    /// Last sign of life of the rank or its host.
    alive: Tick,
    next: Tick,
    asked: u32,
    refused: u32,
}

impl Keepalive {
    /// Begins with a sign of life.
    pub fn new(now: Tick) -> Keepalive {
        Keepalive {
            alive: now,
            next: now + SILENCE,
            asked: 0,
            refused: 0,
        }
    }

    /// The rank was heard.
    pub fn on_rank(&mut self, now: Tick) {
        *self = Keepalive::new(now);
    }

    /// The rank's host was heard, though not the rank.
    pub fn on_host(&mut self, now: Tick) {
        self.alive = now;
        self.asked = 0;
    }

    /// The host reports that the rank's port is closed. Probes again soon to be sure.
    pub fn on_refusal(&mut self, now: Tick) {
        self.on_host(now);
        self.refused += 1;
        self.next = self.next.min(now + EVERY / 10);
    }

    /// The action that is due now.
    pub fn turn(&mut self, now: Tick) -> Turn {
        if self.refused >= REFUSALS {
            return Turn::Over(Loss::Ended);
        }
        if now < self.next {
            return Turn::Rest;
        }
        if self.asked >= QUESTIONS && now.since(self.alive) >= GONE_AFTER {
            return Turn::Over(Loss::Vanished);
        }
        self.asked += 1;
        self.next = now + EVERY;
        Turn::Ask
    }

    /// When `turn` has to be called again.
    pub fn next(&self) -> Tick {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Tick {
        Tick(ms * 1_000_000)
    }

    /// Calls `turn` every 100 ms until it is over; `host(ms)`: does the host answer a question now?
    fn run(
        v: &mut Keepalive,
        until: u64,
        host: impl Fn(u64) -> bool,
    ) -> (u32, Option<(u64, Loss)>) {
        let mut asked = 0;
        for ms in (0..until).step_by(100) {
            match v.turn(at(ms)) {
                Turn::Rest => {}
                Turn::Ask => {
                    asked += 1;
                    if host(ms) {
                        v.on_host(at(ms));
                    }
                }
                Turn::Over(why) => return (asked, Some((ms, why))),
            }
        }
        (asked, None)
    }

    #[test]
    fn a_host_that_is_silent_is_gone_within_fifteen_seconds() {
        let (asked, over) = run(&mut Keepalive::new(at(0)), 60_000, |_| false);
        assert!(asked >= QUESTIONS);
        assert!(
            matches!(over, Some((12_000..15_000, Loss::Vanished))),
            "{over:?}"
        );
    }

    #[test]
    fn a_stopped_rank_on_a_living_host_is_waited_for() {
        assert_eq!(run(&mut Keepalive::new(at(0)), 3_600_000, |_| true).1, None);
        let (_, over) = run(&mut Keepalive::new(at(0)), 60_000, |ms| ms < 20_000);
        assert!(
            matches!(over, Some((31_000..35_000, Loss::Vanished))),
            "{over:?}"
        );
    }

    #[test]
    fn one_refusal_is_checked_and_three_are_believed() {
        let mut v = Keepalive::new(at(0));
        v.on_refusal(at(0));
        assert_eq!(v.turn(at(50)), Turn::Rest);
        assert_eq!(v.turn(at(100)), Turn::Ask);
        v.on_refusal(at(101));
        v.on_rank(at(102));
        v.on_refusal(at(103));
        v.on_refusal(at(204));
        assert_eq!(v.turn(at(210)), Turn::Ask);
        v.on_refusal(at(211));
        assert_eq!(v.turn(at(212)), Turn::Over(Loss::Ended));
    }

    #[test]
    fn a_rank_that_was_stopped_itself_asks_before_it_judges() {
        let mut v = Keepalive::new(at(0));
        for s in 0..QUESTIONS as u64 {
            assert_eq!(v.turn(at(1_000_000 + 1000 * s)), Turn::Ask);
        }
        assert_eq!(v.turn(at(2_000_000)), Turn::Over(Loss::Vanished));
    }
}
