//! The event thread's duty as a table: when it sleeps, watches, and serves.
//!
//! | duty | means | `Left` busy | `Entered` to wait | `Quiet` tick | `Lively` tick | `Nothing` tick | `Waiter` tick |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `Off` | no event thread | – | – | – | – | – | – |
//! | `Idle` | sleeps until kicked | kick, `Watching` | – | – | – | – | – |
//! | `Watching` | looks every `KW_WATCH` us whether the program is inside MPI | – | – | `Serving` | – | `Idle` | `Idle` |
//! | `Serving` | polls, and sleeps on the doorbell | – | `Displaced` | – | – | – | – |
//! | `Displaced` | still asleep on the doorbell, which somebody else now owns | kick, `Watching` | – | – | – | – | – |
//!
//! `Left`: a thread leaves MPI while something goes on. `Entered`: a thread begins to poll. A tick is *Quiet* when no
//! thread was in MPI since the last one and something goes on, *Lively* when one was, *Nothing* when nothing goes on for
//! several ticks, *Waiter* when a thread waits (and so polls) by itself (with ranks that share cores: and did at the last tick). A kick is the only system call that the event
//! thread ever costs a thread in MPI, and there is at most one for each time that it went to sleep.

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
    const EVENTS: [Event; 7] = [
        Event::Left,
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
            "Watching Quiet Serving",
            "Watching Nothing Idle",
            "Watching Waiter Idle",
            "Serving Entered Displaced",
            "Displaced Left Watching",
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
}
