//! Asynchronous progress: what the event thread does, as a table: when it sleeps, watches, and
//! polls.
//!
//! | state | means | `Left` busy | `LeftAsBefore` | `Entered` to wait | `Quiet` tick | `EagerOnly` tick | `Lively` tick | `Nothing` tick | `Waiter` tick |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `Off` | no event thread | – | – | – | – | – | – | – | – |
//! | `Idle` | sleeps until kicked | kick, `Watching` | `Polling` | – | – | – | – | – | – |
//! | `Watching` | looks now and then whether the program is inside MPI | – | `Polling` | – | `Polling` | – | – | `Idle` | `Idle` |
//! | `Polling` | polls, and sleeps on the doorbell | – | – | `Preempted` | – | – | – | – | – |
//! | `Preempted` | still asleep, on a doorbell that somebody else now owns | kick, `Watching` | `Polling` | – | – | – | – | – | – |
//!
//! `Left`: a thread leaves MPI while something goes on. `LeftAsBefore`: it does, it is believed to
//! stay away ([`ComputePredictor`]), and it has armed the doorbell for the event thread, which need
//! not wake for that. `Entered`: a thread begins to poll. A tick is *Quiet* when no thread was in
//! MPI since the last one and something goes on that others may wait for, *EagerOnly* when only
//! messages are waited for that come eagerly, *Lively* when a thread was in MPI, *Nothing* when
//! nothing goes on for several ticks, *Waiter* when a thread waits (and so polls) by itself (with
//! ranks that share cores: and did at the last tick). Who leaves a preempted event thread that still
//! has to look at a set time need not kick it.
//!
//! Messages that come eagerly are with the paths whether anybody takes them or not, so nothing is
//! gained by waking for each: to be taken by the event thread instead of the wait that follows cost
//! HPCG over TCP 9 % of its time, NPB's BT and SP 6 to 8. For those such a tick looks itself,
//! so that a synchronous sender of a short message, or one whose way is full, waits for ticks.
//!
//! What this costs the program while nothing is gained is bounded by a [`Budget`]: looks of the
//! event thread, and hand-overs to it by a thread that is back at once.

use kw_base::Tick;
use std::time::Duration;

/// What the event thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncState {
    /// There is none.
    Off,
    /// Sleeps until kicked.
    Idle,
    /// Looks now and then: its sleeps end at a set time.
    Watching,
    /// Owns the poller's role.
    Polling,
    /// Asleep on the doorbell, but a thread in MPI took the role back.
    Preempted,
}

/// What happens to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A thread leaves MPI while something goes on.
    Left,
    /// A thread leaves MPI while something goes on, will probably stay away, and has armed the
    /// doorbell for the event thread.
    LeftAsBefore,
    /// A thread in MPI begins to poll.
    Entered,
    /// Tick: something goes on, and no thread was in MPI since the last tick.
    Quiet,
    /// Tick: the same, but only messages are waited for that come eagerly, which hold up nobody.
    EagerOnly,
    /// Tick: a thread was in MPI.
    Lively,
    /// Tick: nothing went on for a while.
    Nothing,
    /// Tick: a thread waits.
    Waiter,
    /// The event thread was woken and looks at its state again.
    Woken,
}

impl AsyncState {
    /// The next state, and whether the event thread must be kicked out of its sleep.
    pub fn on(self, event: Event) -> (AsyncState, bool) {
        use AsyncState::*;
        match (self, event) {
            (Idle | Preempted, Event::Left) => (Watching, true),
            (Idle | Watching | Preempted, Event::LeftAsBefore) => (Polling, false),
            (Polling, Event::Entered) => (Preempted, false),
            (Watching, Event::Quiet) => (Polling, false),
            (Watching, Event::Nothing | Event::Waiter) => (Idle, false),
            (Preempted, Event::Woken) => (Idle, false),
            (same, _) => (same, false),
        }
    }

    /// Whether a thread that leaves MPI with something going on must kick.
    #[inline]
    pub fn needs_kick(self) -> bool {
        matches!(self, AsyncState::Idle | AsyncState::Preempted)
    }
}

/// What looks and hand-overs in vain may cost: a small part of the time that passes.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// That part, as a divisor.
    share: u32,
    /// What may be spent before it is paid for.
    advance: Duration,
    /// When all that was spent will be paid for.
    paid: Tick,
}

impl Budget {
    /// The part of a processor's time that may be spent, as a divisor: 0.25 %. A starting value,
    /// as those that follow.
    pub const SHARE: u32 = 400;
    /// The same of a rank that shares its processor with others, which spend as much: NPB's SP and
    /// BT and LULESH lost 2 to 3 % when each of them spent 0.5 %.
    pub const SHARE_CROWDED: u32 = 1600;
    /// So many wake-ups may be spent in advance: some ten looks, so that who was quiet for long is
    /// answered at once.
    pub const ADVANCE: u32 = 13;

    /// Of a rank on a host with more ranks than processors, or with a processor for each; `wake`:
    /// what a wake-up takes.
    pub fn new(crowded: bool, wake: Duration) -> Budget {
        let mut budget = Budget {
            share: 0,
            advance: wake * Budget::ADVANCE,
            paid: Tick::default(),
        };
        budget.set_crowded(crowded);
        budget
    }

    /// From now on the rank shares its processor with others that wait and compute as it does, or
    /// does not.
    pub fn set_crowded(&mut self, crowded: bool) {
        self.share = match crowded {
            true => Budget::SHARE_CROWDED,
            false => Budget::SHARE,
        };
    }

    /// Whether it shares it.
    pub fn is_crowded(&self) -> bool {
        self.share == Budget::SHARE_CROWDED
    }

    /// So much was spent.
    pub fn spend(&mut self, now: Tick, cost: Duration) {
        self.paid = self.paid.max(now - self.advance * self.share) + cost * self.share;
    }

    /// So much of what was spent was not in vain.
    pub fn refund(&mut self, cost: Duration) {
        self.paid = self.paid - cost * self.share;
    }

    /// How long nothing more may be spent.
    pub fn pause(&self, now: Tick) -> Duration {
        self.paid.since(now)
    }
}

/// Whether the program stays away when it leaves MPI with something going on, judged by what it did
/// before.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComputePredictor {
    /// How often it may still come back at once.
    trust: u8,
    /// When the event thread was left to poll in the belief that the program stays away, and what
    /// that has cost.
    since: Option<(Tick, Duration)>,
}

impl ComputePredictor {
    /// How often it may come back at once, when the [`Budget`] is spent, before it is taken for a
    /// program that calls MPI all the time.
    pub const TRUST: u8 = 4;
    /// A stay that is not so many times longer than what handing over for it has cost was none: two
    /// hundredths of a program's time is the most that it may cost.
    const STAY: u32 = 50;

    /// Whether to believe that it stays away.
    #[inline]
    pub fn is_to_leave(&self) -> bool {
        self.trust > 0
    }

    /// It was seen to stay away, or is tried once more.
    pub fn trust(&mut self) {
        self.trust = ComputePredictor::TRUST;
    }

    /// It has left, and was believed; `cost`: what handing over took.
    pub fn left(&mut self, now: Tick, cost: Duration) {
        self.since = Some((now, cost));
    }

    /// The event thread was woken in its sleep while it polls, which cost so much.
    pub fn woken(&mut self, cost: Duration) {
        if let Some((_, spent)) = &mut self.since {
            *spent += cost;
        }
    }

    /// It is back. `soon`: what is too short for staying away, whatever it has cost. Returns what was
    /// spent in vain.
    pub fn is_back(&mut self, now: Tick, soon: Duration) -> Option<Duration> {
        let (since, cost) = self.since.take()?;
        if now.since(since) >= soon.max(cost * ComputePredictor::STAY) {
            self.trust();
            return None;
        }
        Some(cost)
    }

    /// It came back at once, and there is no time to spend on that.
    pub fn doubt(&mut self) {
        self.trust = self.trust.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [AsyncState; 5] = [
        AsyncState::Off,
        AsyncState::Idle,
        AsyncState::Watching,
        AsyncState::Polling,
        AsyncState::Preempted,
    ];
    const EVENTS: [Event; 9] = [
        Event::Left,
        Event::LeftAsBefore,
        Event::Entered,
        Event::Quiet,
        Event::EagerOnly,
        Event::Lively,
        Event::Nothing,
        Event::Waiter,
        Event::Woken,
    ];

    /// Every event in every state: what is written in the module's table, and nothing else.
    #[test]
    fn table() {
        let mut changes = Vec::new();
        for d in STATES {
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
            "Idle LeftAsBefore Polling",
            "Watching LeftAsBefore Polling",
            "Watching Quiet Polling",
            "Watching Nothing Idle",
            "Watching Waiter Idle",
            "Polling Entered Preempted",
            "Preempted Left Watching",
            "Preempted LeftAsBefore Polling",
            "Preempted Woken Idle",
        ];
        assert_eq!(changes, expect);
    }

    /// A thread that leaves with something going on always finds, or makes, somebody who looks
    /// after it.
    #[test]
    fn nothing_is_left_alone() {
        for d in STATES.into_iter().skip(1) {
            let (next, _) = d.on(Event::Left);
            assert!(
                matches!(next, AsyncState::Watching | AsyncState::Polling),
                "{d:?}"
            );
        }
    }

    /// Who calls MPI all the time is believed a few times after a long stay outside, then no more;
    /// each time in vain is known with its cost.
    #[test]
    fn trust_is_used_up_and_comes_back() {
        let (mut predictor, soon) = (ComputePredictor::default(), Duration::from_nanos(50));
        let cost = Duration::from_nanos(3);
        assert!(!predictor.is_to_leave(), "nothing is known yet");
        predictor.trust();
        for _ in 0..ComputePredictor::TRUST {
            assert!(predictor.is_to_leave());
            predictor.left(Tick(100), cost);
            predictor.woken(cost);
            assert_eq!(predictor.is_back(Tick(149), soon), Some(cost * 2));
            assert_eq!(predictor.is_back(Tick(149), soon), None, "for a wait");
            predictor.doubt();
        }
        assert!(!predictor.is_to_leave());
        predictor.trust();
        predictor.left(Tick(200), cost);
        assert_eq!(predictor.is_back(Tick(249), soon), Some(cost));
        predictor.doubt();
        // Long enough is what is worth the cost, too.
        predictor.left(Tick(300), cost);
        assert_eq!(predictor.is_back(Tick(449), soon), Some(cost));
        predictor.left(Tick(500), cost);
        assert_eq!(predictor.is_back(Tick(650), soon), None);
        assert_eq!(predictor.trust, ComputePredictor::TRUST);
    }

    /// Whoever pauses as the budget says spends no more than its share, beside what it may spend in
    /// advance.
    #[test]
    fn looks_take_no_more_than_their_share() {
        for (crowded, share) in [(false, Budget::SHARE), (true, Budget::SHARE_CROWDED)] {
            let (start, cost) = (Tick(10_000_000_000), Duration::from_micros(20));
            let wake = Duration::from_micros(15);
            let (mut budget, mut now, mut spent) =
                (Budget::new(crowded, wake), start, Duration::ZERO);
            let mut at_once = 0;
            while now.since(start) < Duration::from_secs(10) {
                budget.spend(now, cost);
                spent += cost;
                let pause = budget.pause(now);
                at_once += pause.is_zero() as u32;
                now = now + pause.max(Duration::from_micros(50));
            }
            assert!(spent <= now.since(start) / share + budget.advance + cost);
            assert!((9..12).contains(&at_once), "{at_once} at first");
            let pause = budget.pause(now);
            budget.spend(now, cost);
            budget.refund(cost);
            assert_eq!(budget.pause(now), pause, "what was not in vain is free");
        }
    }
}
