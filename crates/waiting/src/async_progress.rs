//! Asynchronous progress: what the progress thread does, as a table: when it sleeps, watches, and
//! polls.
//!
//! | state | means | `Left` busy | `LeftAsBefore` | `Entered` | `AllEnded` | `Quiet` tick | `EagerOnly` tick | `Lively` tick | `Nothing` tick | `Waiter` tick |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `Off` | no event thread | – | – | – | – | – | – | – | – | – |
//! | `Idle` | sleeps until kicked | kick, `Watching` | `Polling` | – | – | – | – | – | – | – |
//! | `Watching` | looks now and then whether the program is inside MPI | – | `Polling` | – | – | `Polling` | – | – | `Idle` | `Idle` |
//! | `Preempted` | still asleep, on a doorbell that another thread now owns | kick, `Watching` | `Polling` | – | – | – | – | – | – | – |
//! | `Polling` | polls, and sleeps on the doorbell | – | – | `Preempted` | `Finished` | – | – | – | – | – |
//! | `Finished` | sleeps until kicked; no thread has been back since | – | – | `Idle` | – | – | – | – | – | – |
//!
//! `Left`: a thread leaves MPI while communication is pending. `LeftAsBefore`: the same, but it is
//! expected to stay outside ([`AsyncProgress`]), and has armed the doorbell for the progress
//! thread, which need not wake for that. `Entered`: a thread enters MPI. `AllEnded`: the progress
//! thread, while it polls, finds nothing pending. A tick is *Quiet* when no thread was in MPI since
//! the last one and communication is pending for which others may wait, *EagerOnly* when only eager
//! messages are awaited, *Lively* when a thread was in MPI, *Nothing* when nothing was pending for
//! several ticks, *Waiter* when a thread waits (and so polls) by itself (on shared cores: and did
//! at the last tick). A thread that leaves a preempted progress thread that still has a time-out
//! need not kick it.
//!
//! The paths keep eager messages until they are received, so waking for each gains nothing: having
//! the progress thread take them instead of the wait that follows cost HPCG over TCP 9 % of its
//! time, NPB's BT and SP 6 to 8 %. A tick polls for those by itself, so that a synchronous sender
//! of a short message, or one with a full path, waits for a tick.
//!
//! The cost for a program that gains nothing is bounded by a [`Budget`]: for checks by the progress
//! thread, and for hand-overs by a thread that returns at once. Waking the progress thread for a
//! transfer that occupies the network for long is always worthwhile: without it the network idles
//! until the next call. So exchanges of long messages overlap with computation from the second one
//! on, whatever the program did before; the tests run patterns of calls in virtual time.

use crate::constants::progress_thread::*;
use kw_base::Tick;
use std::time::Duration;

/// State of the progress thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum AsyncState {
    /// There is none.
    Off,
    /// Sleeps until kicked.
    Idle,
    /// Checks now and then: its sleeps end at a set time.
    Watching,
    /// Asleep on the doorbell, but a thread in MPI took the role back.
    Preempted,
    /// Owns the poller's role.
    Polling,
    /// Has polled until nothing went on, and sleeps until kicked; no thread was in MPI since.
    Finished,
}

/// Event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A thread leaves MPI while communication is pending.
    Left,
    /// A thread leaves MPI while communication is pending, will probably stay away, and has armed
    /// the doorbell for the progress thread.
    LeftAsBefore,
    /// A thread enters MPI.
    Entered,
    /// While the progress thread polls: nothing is pending any more.
    AllEnded,
    /// Tick: communication is pending, and no thread was in MPI since the last tick.
    Quiet,
    /// Tick while only eager messages are awaited, which delay no other rank.
    EagerOnly,
    /// Tick: a thread was in MPI.
    Lively,
    /// Tick: nothing went on for a while.
    Nothing,
    /// Tick: a thread waits.
    Waiter,
    /// The progress thread was woken and looks at its state again.
    Woken,
}

impl AsyncState {
    /// The next state, and whether the progress thread must be kicked out of its sleep.
    #[inline]
    pub fn on(self, event: Event) -> (AsyncState, bool) {
        use AsyncState::*;
        match (self, event) {
            (Idle | Preempted, Event::Left) => (Watching, true),
            (Idle | Watching | Preempted, Event::LeftAsBefore) => (Polling, false),
            (Polling, Event::Entered) => (Preempted, false),
            (Finished, Event::Entered) => (Idle, false),
            (Polling, Event::AllEnded) => (Finished, false),
            (Watching, Event::Quiet) => (Polling, false),
            (Watching, Event::Nothing | Event::Waiter) => (Idle, false),
            (Preempted, Event::Woken) => (Idle, false),
            (same, _) => (same, false),
        }
    }

    /// Whether the progress thread has polled since a thread of the program left MPI.
    #[inline(always)]
    pub fn has_polled(self) -> bool {
        self >= AsyncState::Polling
    }

    /// Whether a thread that leaves MPI with something going on must kick.
    #[inline]
    pub fn needs_kick(self) -> bool {
        matches!(self, AsyncState::Idle | AsyncState::Preempted)
    }
}

/// Budget for unsuccessful checks and hand-overs: a small fraction of elapsed time.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// That fraction, as a divisor.
    share: u32,
    /// Amount that may be spent in advance.
    advance: Duration,
    /// When all that was spent will be paid for.
    paid: Tick,
}

impl Budget {
    /// The budget of a rank on a host with more ranks than CPUs, or with a CPU for each; `wake`:
    /// what a wake-up takes.
    pub fn new(oversubscribed: bool, wake: Duration) -> Budget {
        let mut budget = Budget {
            share: 0,
            advance: wake * ADVANCE,
            paid: Tick::default(),
        };
        budget.set_oversubscribed(oversubscribed);
        budget
    }

    /// From now on the rank shares its CPU with others that wait and compute as it does, or no
    /// longer does.
    #[inline]
    pub fn set_oversubscribed(&mut self, oversubscribed: bool) {
        self.share = match oversubscribed {
            true => SHARE_OVERSUBSCRIBED,
            false => SHARE,
        };
    }

    /// Whether it shares its CPU.
    #[inline]
    pub fn is_oversubscribed(&self) -> bool {
        self.share == SHARE_OVERSUBSCRIBED
    }

    /// Charges this much.
    pub fn spend(&mut self, now: Tick, cost: Duration) {
        self.paid = self.paid.max(now - self.advance * self.share) + cost * self.share;
    }

    /// Refunds this much of the spent amount: it was worthwhile.
    pub fn refund(&mut self, cost: Duration) {
        self.paid = self.paid - cost * self.share;
    }

    /// How long nothing more may be spent.
    pub fn pause(&self, now: Tick) -> Duration {
        self.paid.since(now)
    }
}

/// The time for which the progress thread polls, after a hand-over to it.
#[derive(Clone, Copy, Debug)]
struct Stay {
    since: Tick,
    /// Cost of the hand-over and of its return.
    cost: Duration,
    /// Cost of wake-ups, unless they move a transfer that is worth it.
    woken: Option<Duration>,
}

/// State of the progress thread, and whether a thread that leaves MPI hands over to it without
/// waking it, because the program is expected to stay outside, judged by its past behaviour.
#[derive(Clone, Copy, Debug)]
pub struct AsyncProgress {
    /// State.
    pub state: AsyncState,
    /// Budget for finding out whether the program stays outside.
    pub budget: Budget,
    /// Cost of waking a thread.
    wake: Duration,
    /// How often the program may still come back at once.
    trust: u8,
    stay: Option<Stay>,
}

impl AsyncProgress {
    /// Nothing happens yet; see [`Budget::new`].
    pub fn new(oversubscribed: bool, wake: Duration) -> AsyncProgress {
        AsyncProgress {
            state: AsyncState::Off,
            budget: Budget::new(oversubscribed, wake),
            wake,
            trust: 0,
            stay: None,
        }
    }

    /// Handles an event; returns whether the progress thread must be woken.
    #[inline]
    pub fn on(&mut self, event: Event) -> bool {
        let (next, kick) = self.state.on(event);
        self.state = next;
        kick
    }

    /// Whether a thread that leaves hands over although the progress thread watches.
    #[inline]
    pub fn tries_to_leave(&self) -> bool {
        self.trust > 0 && self.state == AsyncState::Watching
    }

    /// Whether a thread that leaves hands over, if it can.
    pub fn is_to_leave(&self) -> bool {
        self.trust > 0 && self.state.on(Event::LeftAsBefore).0 == AsyncState::Polling
    }

    /// The program was seen to stay away, or gets one more trial.
    pub fn trust(&mut self) {
        self.trust = TRUST;
    }

    /// A thread has left and handed over, which took this long. `transfer`: how long the network
    /// takes for the pending communication.
    pub fn left(&mut self, now: Tick, cost: Duration, transfer: Duration) {
        self.on(Event::LeftAsBefore);
        let most = self.wake / PART_OF_WAKE;
        let woken = match transfer >= self.wake * WORTH {
            true => None,
            false => Some(Duration::ZERO),
        };
        self.stay = Some(Stay {
            since: now,
            cost: most.min(cost * BOTH_WAYS),
            woken,
        });
    }

    /// The progress thread was woken in its sleep while it polls.
    pub fn woken(&mut self) {
        if let Some(woken) = self.stay.as_mut().and_then(|stay| stay.woken.as_mut()) {
            *woken += self.wake;
        }
    }

    /// A thread is back, and the progress thread has polled meanwhile. `soon`: a stay shorter than
    /// this is too short, whatever it has cost.
    pub fn entered(&mut self, now: Tick, soon: Duration) {
        self.on(Event::Entered);
        let Some(stay) = self.stay.take() else {
            return;
        };
        let (stayed, cost) = (
            now.since(stay.since),
            stay.cost + stay.woken.unwrap_or_default(),
        );
        if stayed >= soon.max(cost * STAY) {
            self.trust();
        } else {
            self.spend_in_vain(now, cost);
        }
    }

    /// The program has slept in MPI for this long: if no other rank wanted its CPU, a small
    /// fraction of that time may be spent on unsuccessful hand-overs.
    pub fn idled(&mut self, now: Tick, time: Duration) {
        if self.budget.is_oversubscribed() {
            return;
        }
        self.budget.refund(time / STAY);
        if self.budget.pause(now).is_zero() {
            self.trust();
        }
    }

    fn spend_in_vain(&mut self, now: Tick, cost: Duration) {
        self.budget.spend(now, cost);
        if !self.budget.pause(now).is_zero() {
            self.trust = self.trust.saturating_sub(1);
        }
    }

    /// The progress thread has checked, at this cost and the cost of the time before; `moved`: it
    /// has moved data.
    pub fn looked(&mut self, now: Tick, [before, cost]: [Duration; 2], event: Event, moved: bool) {
        let [before, cost] = [before, cost].map(|cost| cost.min(self.wake * LOOK));
        // Kicks come at any time: only checks that were due grant the program another trial.
        let due = self.budget.pause(now).is_zero();
        self.budget.spend(now, cost);
        if moved || event == Event::Quiet {
            self.budget.refund(before + cost);
        }
        if due || event == Event::Quiet {
            self.trust();
        }
        self.on(event);
    }

    /// How long the progress thread sleeps until its next check; `watch`: `KW_WATCH`.
    pub fn pause(&self, now: Tick, watch: Duration, looks: &Looks) -> Duration {
        (watch * looks.factor).max(self.budget.pause(now).min(LONGEST_PAUSE))
    }
}

/// Recent observations of the progress thread's checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    entries: u64,
    nothing: u32,
    /// How far apart they are, in times of `KW_WATCH`.
    pub factor: u32,
}

/// Observation of a check.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// Times a thread of the program has entered.
    pub entries: u64,
    /// Communication is pending.
    pub busy: bool,
    /// Other ranks may wait for what this rank does about that.
    pub holds_up: bool,
    /// A thread of the program waits.
    pub waited_in: bool,
    /// Ranks share cores.
    pub oversubscribed: bool,
}

impl Looks {
    /// Meaning of this check after those before it.
    pub fn judge(&mut self, sight: Sight) -> Event {
        let lively = sight.entries != self.entries;
        self.entries = sight.entries;
        self.nothing = if sight.busy { 0 } else { self.nothing + 1 };
        self.factor = (self.factor * 2).clamp(1, LIVELY_FACTOR);
        // A thread that sleeps in each wait would be kicked by each call. On shared cores every
        // kick takes the CPU from a rank; elsewhere it makes this thread check sooner.
        let calls = lively && sight.oversubscribed;
        match (sight.waited_in, sight.busy, lively) {
            (true, ..) if !calls => Event::Waiter,
            (_, false, _) if self.nothing >= NOTHING_TICKS => Event::Nothing,
            (_, true, false) if sight.holds_up => Event::Quiet,
            (_, true, false) => Event::EagerOnly,
            _ => Event::Lively,
        }
    }
}

/// Costs of the progress thread's checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// CPU time of the thread at its last accounting.
    used: Duration,
    /// Cost of the last check.
    cost: Duration,
}

impl Costs {
    /// Cost of the previous check, and of this one; `used`: CPU time of the thread until now.
    pub fn of_check(&mut self, used: Duration) -> [Duration; 2] {
        let (before, (lost, per)) = (self.cost, LOST_FOR_USED);
        self.cost = (used - self.used) * lost / per;
        self.used = used;
        [before, self.cost]
    }

    /// Notes that the thread's CPU time up to `used` did not go to a check.
    pub fn skip(&mut self, used: Duration) {
        self.used = used;
    }
}

#[cfg(test)]
mod patterns;
#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [AsyncState; 6] = [
        AsyncState::Off,
        AsyncState::Idle,
        AsyncState::Watching,
        AsyncState::Preempted,
        AsyncState::Polling,
        AsyncState::Finished,
    ];
    const EVENTS: [Event; 10] = [
        Event::Left,
        Event::LeftAsBefore,
        Event::Entered,
        Event::AllEnded,
        Event::Quiet,
        Event::EagerOnly,
        Event::Lively,
        Event::Nothing,
        Event::Waiter,
        Event::Woken,
    ];

    /// A flood of messages wakes the progress thread thousands of times while the program is away
    /// for a tenth of a second: that debt must not keep it from checking for a minute.
    #[test]
    fn a_flood_of_wake_ups_does_not_keep_the_thread_away_for_long() {
        let wake = Duration::from_micros(15);
        let mut progress = AsyncProgress::new(true, wake);
        progress.trust();
        let begin = Tick::default() + Duration::from_secs(1000);
        progress.left(begin, wake, Duration::ZERO);
        for _ in 0..4000 {
            progress.woken();
        }
        let now = begin + Duration::from_millis(100);
        progress.entered(now, Duration::from_millis(1));
        assert!(progress.budget.pause(now) > Duration::from_secs(60));
        let looks = Looks::default();
        assert_eq!(
            progress.pause(now, Duration::from_millis(1), &looks),
            LONGEST_PAUSE
        );
    }

    /// Every event in every state: the transitions of the module's table, and no others.
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
            "Preempted Left Watching",
            "Preempted LeftAsBefore Polling",
            "Preempted Woken Idle",
            "Polling Entered Preempted",
            "Polling AllEnded Finished",
            "Finished Entered Idle",
        ];
        assert_eq!(changes, expect);
    }

    /// A thread that leaves with communication pending always finds, or creates, a thread that
    /// serves it, in any state that is possible while a thread is in MPI.
    #[test]
    fn nothing_is_left_alone() {
        for d in STATES.into_iter().skip(1) {
            let (next, _) = d.on(Event::Entered).0.on(Event::Left);
            assert!(next == AsyncState::Watching, "{d:?}");
        }
    }

    /// A program that calls MPI all the time is trusted a few times after a long phase outside,
    /// then no more; each mistake is charged.
    #[test]
    fn trust_is_used_up_and_comes_back() {
        let (us, soon) = (Duration::from_micros, Duration::from_micros(50));
        let mut progress = AsyncProgress::new(false, us(15));
        let mut now = Tick(1_000_000_000);
        progress.state = AsyncState::Idle;
        assert!(!progress.is_to_leave(), "nothing is known yet");
        progress.trust();
        let mut left = |progress: &mut AsyncProgress, stay: Duration, transfer: Duration| {
            progress.left(now, us(3), transfer);
            progress.woken();
            now = now + stay;
            progress.entered(now, soon);
        };
        let in_advance = us(15) * ADVANCE;
        for _ in 0..in_advance.as_micros() / 21 + u128::from(TRUST) {
            assert!(progress.is_to_leave());
            left(&mut progress, us(1), Duration::ZERO);
        }
        assert!(!progress.is_to_leave());
        // A stay is long enough if it is worth the cost, including wake-ups unless the transfer is
        // worth those.
        for (stay, transfer, trusted) in [(2000, 0, false), (2200, 0, true), (700, 1000, true)] {
            progress.trust = 0;
            left(&mut progress, us(stay), us(transfer));
            assert_eq!(progress.trust > 0, trusted, "{stay}");
        }
        progress.trust = 0;
        progress.idled(now, us(10));
        assert!(
            !progress.is_to_leave(),
            "too short to pay for the unused work"
        );
        progress.idled(now, us(100_000));
        assert!(progress.is_to_leave());
    }

    /// A thread that pauses as the budget requires spends no more than its share, plus the advance.
    #[test]
    fn looks_take_no_more_than_their_share() {
        for (oversubscribed, share) in [(false, SHARE), (true, SHARE_OVERSUBSCRIBED)] {
            let (start, cost) = (Tick(10_000_000_000), Duration::from_micros(20));
            let wake = Duration::from_micros(15);
            let (mut budget, mut now, mut spent) =
                (Budget::new(oversubscribed, wake), start, Duration::ZERO);
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
            assert_eq!(budget.pause(now), pause, "useful work is free");
        }
    }
}
