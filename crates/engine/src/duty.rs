//! The event thread's duty as a table: when it sleeps, watches, and serves.
//!
//! | duty | means | `Left` busy | `LeftAsBefore` | `Entered` to wait | `Quiet` tick | `Lively` tick | `Nothing` tick | `Waiter` tick |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `Off` | no event thread | – | – | – | – | – | – | – |
//! | `Idle` | sleeps until kicked | kick, `Watching` | `Serving` | – | – | – | – | – |
//! | `Watching` | looks every `KW_WATCH` us whether the program is inside MPI | – | – | – | `Serving` | – | `Idle` | `Idle` |
//! | `Serving` | polls, and sleeps on the doorbell | – | – | `Displaced` | – | – | – | – |
//! | `Displaced` | still asleep, on a doorbell that somebody else now owns | kick, `Watching` | `Serving` | – | – | – | – | – |
//!
//! `Left`: a thread leaves MPI while something goes on. `LeftAsBefore`: it does, it stayed away when it last did, and it has armed the doorbell for the
//! event thread, which need not wake for that ([`Habit`]). `Entered`: a thread begins to poll. A tick is *Quiet* when no
//! thread was in MPI since the last one and something goes on, *Lively* when one was, *Nothing* when nothing goes on for
//! several ticks, *Waiter* when a thread waits (and so polls) by itself (with ranks that share cores: and did at the last tick).
//!
//! What this costs a thread in MPI: a kick, at most one for each time that the event thread went to sleep; or arming the doorbell, of which every long
//! stay outside allows [`Habit::TRUST`] that turn out to be in vain.

use kw_base::Tick;
use std::time::Duration;

/// What the event thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duty {
    /// There is none.
    Off,
    /// Sleeps until kicked.
    Idle,
    /// Looks now and then.
    Watching,
    /// Owns the poller's role.
    Serving,
    /// Asleep on the doorbell, but a thread in MPI took the role back.
    Displaced,
}

/// What happens to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A thread leaves MPI while something goes on.
    Left,
    /// A thread leaves MPI while something goes on, will probably stay away, and has armed the doorbell for the event thread.
    LeftAsBefore,
    /// A thread in MPI begins to poll.
    Entered,
    /// Tick: something goes on, and no thread was in MPI since the last tick.
    Quiet,
    /// Tick: a thread was in MPI.
    Lively,
    /// Tick: nothing went on for a while.
    Nothing,
    /// Tick: a thread waits.
    Waiter,
    /// The event thread was woken and looks at its duty again.
    Woken,
}

impl Duty {
    /// The next duty, and whether the event thread must be kicked out of its sleep.
    pub fn on(self, event: Event) -> (Duty, bool) {
        use Duty::*;
        match (self, event) {
            (Idle | Displaced, Event::Left) => (Watching, true),
            (Idle | Displaced, Event::LeftAsBefore) => (Serving, false),
            (Serving, Event::Entered) => (Displaced, false),
            (Watching, Event::Quiet) => (Serving, false),
            (Watching, Event::Nothing | Event::Waiter) => (Idle, false),
            (Displaced, Event::Woken) => (Idle, false),
            (same, _) => (same, false),
        }
    }

    /// Whether a thread that leaves MPI with something going on must kick.
    #[inline]
    pub fn needs_kick(self) -> bool {
        matches!(self, Duty::Idle | Duty::Displaced)
    }
}

/// Whether the program stays away when it leaves MPI with something going on, judged by what it did before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habit {
    /// How often it may still come back at once.
    trust: u8,
    /// When the event thread was given its duty in the belief that the program stays away.
    since: Option<Tick>,
}

impl Habit {
    /// How often it may come back at once before it is taken for a program that calls MPI all the time.
    pub const TRUST: u8 = 4;

    /// Whether to believe that it stays away.
    pub fn is_to_leave(&self) -> bool {
        self.trust > 0
    }

    /// It was seen to stay away.
    pub fn stayed_away(&mut self) {
        self.trust = Habit::TRUST;
    }

    /// It has left, and was believed.
    pub fn left(&mut self, now: Tick) {
        self.since = Some(now);
    }

    /// It is back. `soon`: what is too short for staying away.
    pub fn is_back(&mut self, now: Tick, soon: Duration) {
        match self.since.take() {
            Some(since) if now.since(since) < soon => self.trust -= 1,
            Some(_) => self.stayed_away(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUTIES: [Duty; 5] = [
        Duty::Off,
        Duty::Idle,
        Duty::Watching,
        Duty::Serving,
        Duty::Displaced,
    ];
    const EVENTS: [Event; 8] = [
        Event::Left,
        Event::LeftAsBefore,
        Event::Entered,
        Event::Quiet,
        Event::Lively,
        Event::Nothing,
        Event::Waiter,
        Event::Woken,
    ];

    /// Every event in every duty: what is written in the module's table, and nothing else.
    #[test]
    fn table() {
        let mut changes = Vec::new();
        for d in DUTIES {
            for e in EVENTS {
                let (next, kick) = d.on(e);
                assert_eq!(kick, next != d && e == Event::Left, "{d:?} {e:?}");
                if next != d {
                    changes.push(format!("{d:?} {e:?} {next:?}"));
                }
            }
        }
        let expect = [
            "Idle Left Watching",
            "Idle LeftAsBefore Serving",
            "Watching Quiet Serving",
            "Watching Nothing Idle",
            "Watching Waiter Idle",
            "Serving Entered Displaced",
            "Displaced Left Watching",
            "Displaced LeftAsBefore Serving",
            "Displaced Woken Idle",
        ];
        assert_eq!(changes, expect);
    }

    /// A thread that leaves with something going on always finds, or makes, somebody who looks after it.
    #[test]
    fn nothing_is_left_alone() {
        for d in DUTIES.into_iter().skip(1) {
            let (next, _) = d.on(Event::Left);
            assert!(matches!(next, Duty::Watching | Duty::Serving), "{d:?}");
        }
    }

    /// Who calls MPI all the time is believed a few times after a long stay outside, then no more.
    #[test]
    fn trust_is_used_up_and_comes_back() {
        let (mut habit, soon) = (Habit::default(), Duration::from_nanos(50));
        assert!(!habit.is_to_leave(), "nothing is known yet");
        habit.stayed_away();
        for _ in 0..Habit::TRUST {
            assert!(habit.is_to_leave());
            habit.left(Tick(100));
            habit.is_back(Tick(149), soon);
            habit.is_back(Tick(149), soon); // for a wait, not after leaving
        }
        assert!(!habit.is_to_leave());
        habit.stayed_away();
        habit.left(Tick(200));
        habit.is_back(Tick(249), soon);
        habit.left(Tick(300));
        habit.is_back(Tick(350), soon);
        assert_eq!(habit.trust, Habit::TRUST);
    }
}
