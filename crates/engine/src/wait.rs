//! Waiting of a thread: it polls for all, or parks while another one does.
//!
//! The polling thread does so for a short while, then sleeps. Contract of sleeping: drain, arm,
//! drain again, sleep. The lock is free meanwhile.

use crate::collective::Watch;
use crate::departed::DOUBT;
use crate::events::{self, Safety};
use crate::hang::Lasting;
use crate::messages::{ReqId, Want};
use crate::neighbours::Beginning;
use crate::polled::{Nap, Polled, Sleep};
use crate::progress_lock::{Guard, Inner, ProgressLock, Role};
use crate::spin::LOOKS_PER_CLOCK;
use kw_base::counters::Counter;
use kw_base::sync::atomic::Ordering;
use kw_base::sync::{parking, spin_hint, thread};
use kw_base::{Peer, Tick};
use std::time::Duration;

/// Longest sleep without looking: a lost wake-up would cost this much, and is counted.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// A sleep that ends this long after its time was not ended by the clock alone.
const LATE: Duration = Duration::from_millis(50);
/// Rounds of polling one peer before every path is looked at.
const ROUNDS_OF_ONE: u32 = 32;
/// Rounds of polling before the threads that wait for a board are looked after.
const ROUNDS_FOR_OTHERS: u32 = 8;
/// A wait that has slept and is not over polls for this part of the time before it sleeps again.
const AFTER_SLEEP: u32 = 4;
/// Rounds of polling before the processor is told that this is a spin loop: an answer that comes at
/// once is seen at once.
const ROUNDS_AT_FULL_SPEED: u32 = 64;

/// Condition of a waiting thread, so that exactly it is woken.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitOn<'a> {
    /// Requests any of whose completion may end the wait; empty: wake me on anything that arrives.
    pub requests: &'a [ReqId],
    /// The only peer it can come from, if known.
    pub from: Option<Peer>,
    /// Condition of a schedule on a board, instead of a request.
    pub board: Option<Watch>,
    /// The message, where there is no request for it (MPI_Probe).
    pub probe: Option<&'a Want>,
}

#[derive(Debug)]
pub(crate) struct Waiter {
    id: u64,
    pub(crate) thread: parking::Thread,
    requests: Vec<ReqId>,
    pub(crate) board: Option<Watch>,
    arrivals: u64,
    /// It is on its way to take the role, which fell free.
    pub(crate) called: bool,
}

impl Waiter {
    pub(crate) fn hit(&self, engine: &impl Polled) -> bool {
        if engine.wants_user() {
            return true;
        }
        match self.board {
            Some(watch) => engine.reached(watch),
            None if self.requests.is_empty() => engine.arrivals() != self.arrivals,
            None => self.requests.iter().any(|&r| engine.is_done(r)),
        }
    }
}

impl<T: Send + 'static, E: Polled> ProgressLock<T, E> {
    /// Progresses, polling and then sleeping, until `ready` says so. The lock is let go while
    /// sleeping.
    #[inline]
    pub fn wait<'a>(
        &'a self,
        mut guard: Guard<'a, T, E>,
        on: WaitOn<'_>,
        mut ready: impl FnMut(&mut Inner<T, E>) -> bool,
    ) -> Guard<'a, T, E> {
        if !ready(&mut guard) {
            self.wait_long(&mut guard, on, &mut ready);
        }
        guard
    }

    #[inline]
    fn wait_long(
        &self,
        guard: &mut Guard<'_, T, E>,
        on: WaitOn<'_>,
        ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
    ) {
        loop {
            if guard.engine.is_none() {
                return;
            }
            let done = match guard.role {
                Role::Caller | Role::CallerAsleep => self.park(guard, on, ready),
                Role::Event | Role::Free => {
                    guard.role = Role::Caller;
                    if let Some(s) = &guard.sleeper {
                        s.take_back();
                    }
                    poll_until(guard, on, ready);
                    guard.role = Role::Free;
                    true
                }
            };
            if done {
                guard.pass_on();
                return;
            }
        }
    }

    /// Waits while another thread polls. Says whether `ready` said so; otherwise the role may have
    /// fallen free.
    fn park(
        &self,
        guard: &mut Guard<'_, T, E>,
        on: WaitOn<'_>,
        ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
    ) -> bool {
        let id = guard.next_waiter;
        guard.next_waiter += 1;
        let arrivals = guard.engine.as_ref().map_or(0, E::arrivals);
        let requests = on.requests.to_vec();
        guard.waiters.push(Waiter {
            id,
            thread: parking::current(),
            requests,
            board: on.board,
            arrivals,
            called: false,
        });
        if on.board.is_some() {
            // The thread that polls for this one does not sleep without it.
            guard.ring_sleeper();
        }
        loop {
            guard.apart(parking::park);
            let polled = matches!(guard.role, Role::Caller | Role::CallerAsleep);
            let done = ready(guard);
            if done || !polled {
                guard.waiters.retain(|w| w.id != id);
                return done;
            }
            let arrivals = guard.engine.as_ref().map_or(0, E::arrivals);
            if let Some(w) = guard.waiters.iter_mut().find(|w| w.id == id) {
                w.arrivals = arrivals;
                w.called = false;
            }
        }
    }
}

/// Polls, then sleeps, until `ready`. The caller has the role.
#[inline]
fn poll_until<T: Send + 'static, E: Polled>(
    guard: &mut Guard<'_, T, E>,
    on: WaitOn<'_>,
    ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
) {
    let mut wait = Wait::new(on, guard.spin, guard.neighbours.beginning());
    while let Some(engine) = guard.engine.as_mut() {
        if wait.look(engine) {
            if ready(guard) {
                return guard.count(Counter::WaitsSpun);
            }
            guard.wake_waiters();
            wait.begin_anew();
        } else if wait.looked_in_vain(guard, ready) {
            return;
        }
    }
}

/// One wait of the thread that polls.
struct Wait<'a> {
    on: WaitOn<'a>,
    /// How long a wait that starts again polls before it sleeps; not at all next to an unrelated
    /// computation.
    full: Duration,
    /// How long it polls now.
    spin: Duration,
    /// Others may run between two looks: they are known to want to, or it has polled for so long.
    shares: bool,
    /// Whether they may from the first look on.
    shares_at_once: bool,
    /// It has slept, and what woke it was something else.
    woken: bool,
    /// Unsuccessful polls in a row.
    idle: u32,
    /// Since when nothing has come, and since when it has waited, as far as the clock was read.
    since: Option<Tick>,
    began: Option<Tick>,
    /// When it is to be doubted again.
    doubt_at: Option<Tick>,
}

impl Wait<'_> {
    #[inline]
    fn new(on: WaitOn<'_>, spin: Duration, beginning: Beginning) -> Wait<'_> {
        let full = match beginning {
            Beginning::Asleep => Duration::ZERO,
            Beginning::Alone | Beginning::Shared => spin,
        };
        let shares_at_once = beginning == Beginning::Shared;
        Wait {
            on,
            full,
            spin: full,
            shares: shares_at_once,
            shares_at_once,
            woken: false,
            idle: 0,
            since: None,
            began: None,
            doubt_at: None,
        }
    }

    /// Looks where it can come from, and now and then everywhere; whether anything moved.
    #[inline]
    fn look<E: Polled>(&self, engine: &mut E) -> bool {
        let alone = self.idle % ROUNDS_OF_ONE != ROUNDS_OF_ONE - 1;
        match (self.on.board, self.on.from) {
            (Some(w), _) if alone && !w.is_turn() => engine.reached(w),
            (None, Some(p)) if alone => engine.progress_from(p),
            _ => engine.progress(),
        }
    }

    /// Something has come, though not what this waits for.
    fn begin_anew(&mut self) {
        (self.idle, self.since, self.shares) = (0, None, self.shares_at_once);
        // Data that follows the one that woke it at once is a stream of pieces.
        if !std::mem::take(&mut self.woken) {
            self.spin = self.full;
        }
    }

    /// Nothing has come: what else there is to do between two looks. Says whether the wait is over.
    #[inline]
    fn looked_in_vain<T: Send + 'static, E: Polled>(
        &mut self,
        guard: &mut Guard<'_, T, E>,
        ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
    ) -> bool {
        self.idle += 1;
        let shares = guard.oversubscribed || self.shares;
        if shares && !self.full.is_zero() {
            self.let_others_run(guard);
        }
        if self.idle.is_multiple_of(ROUNDS_FOR_OTHERS) {
            guard.wake_waiters();
        }
        if shares || self.spin.is_zero() || self.idle.is_multiple_of(LOOKS_PER_CLOCK) {
            return self.read_clock(guard, ready);
        }
        if self.idle > ROUNDS_AT_FULL_SPEED {
            spin_hint();
        }
        false
    }

    /// Lets others run on this processor, and learns what they do unless that is known
    /// (`learns`).
    fn let_others_run<T: Send + 'static, E: Polled>(&mut self, guard: &mut Guard<'_, T, E>) {
        if !guard.learns {
            return thread::yield_now();
        }
        let before = guard.engine.as_ref().map(E::clock);
        thread::yield_now();
        let now = guard.engine.as_ref().map(E::clock);
        let lasted = before.zip(now).map(|(before, now)| now.since(before));
        let Some(lasted) = lasted else { return };
        if guard.neighbours.had_it(lasted) {
            (self.full, self.spin) = (Duration::ZERO, Duration::ZERO);
        }
        let take_turns = guard.neighbours.take_turns();
        guard.async_progress.budget.set_oversubscribed(take_turns);
    }

    /// Lets others in that want the lock, doubts a wait that lasts, sleeps when it has polled for
    /// long enough. Says whether the wait is over.
    fn read_clock<T: Send + 'static, E: Polled>(
        &mut self,
        guard: &mut Guard<'_, T, E>,
        ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
    ) -> bool {
        if guard.core.wanted.load(Ordering::Relaxed) != 0 {
            guard.let_others_in();
            if ready(guard) {
                return true;
            }
        }
        let oversubscribed = guard.oversubscribed;
        let Some(engine) = &mut guard.engine else {
            return true;
        };
        engine.asked_in_vain();
        let now = engine.clock();
        if oversubscribed {
            engine.spread(now);
        }
        let tired = self.is_tired(guard, now);
        let since = *self.began.get_or_insert(now);
        let doubtful = now.since(since) >= DOUBT;
        if doubtful && (tired || self.doubt_at.is_none_or(|at| now >= at)) {
            self.doubt_at = Some(now + DOUBT);
            if guard.doubt((self.on, since, now), ready) {
                guard.count(Counter::WaitsSlept);
                return true;
            }
        }
        tired && self.sleep(guard, doubtful, ready)
    }

    /// Whether it has polled for as long as it may.
    fn is_tired<T, E: Polled>(&mut self, inner: &Inner<T, E>, now: Tick) -> bool {
        let waited = now.since(*self.since.get_or_insert(now));
        self.shares = self.shares_at_once || waited >= inner.alone;
        // The first time only: the peer may not have posted its receive.
        let longer = match inner.oversubscribed || self.woken || self.spin.is_zero() {
            true => Duration::ZERO,
            false => inner.fetch_time(),
        };
        waited >= self.spin + longer
    }

    /// Says whether the wait is over.
    fn sleep<T: Send + 'static, E: Polled>(
        &mut self,
        guard: &mut Guard<'_, T, E>,
        doubtful: bool,
        ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
    ) -> bool {
        let most = if doubtful {
            guard.long_waits.nap
        } else {
            DOUBT
        };
        if sleep_once(guard, self.on, most, ready) {
            guard.count(Counter::WaitsSlept);
            return true;
        }
        // It woke for something else, after a long time: the next unsuccessful poll need not be as
        // long.
        (self.spin, self.woken) = (self.full / AFTER_SLEEP, true);
        (self.idle, self.since, self.shares) = (0, None, self.shares_at_once);
        false
    }
}

impl<T: Send + 'static, E: Polled> Guard<'_, T, E> {
    /// About a wait that has lasted: whether it is over because it can never end otherwise. Looks
    /// after the waits of threads that are parked, too.
    #[cold]
    fn doubt(
        &mut self,
        (on, since, now): (WaitOn<'_>, Tick, Tick),
        ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
    ) -> bool {
        let inner = &mut **self;
        let Some(engine) = &mut inner.engine else {
            return true;
        };
        for w in &inner.waiters {
            engine.doubt(WaitOn {
                requests: &w.requests,
                board: w.board,
                ..WaitOn::default()
            });
        }
        engine.doubt(on);
        inner.on_lasting(Lasting {
            on,
            since,
            now,
            polls: false,
        });
        inner.wake_waiters();
        ready(self)
    }
}

/// Drain, arm, drain again, sleep, for `most` at most. Says whether `ready` said so.
#[cold]
pub(crate) fn sleep_once<T: Send + 'static, E: Polled>(
    guard: &mut Guard<'_, T, E>,
    on: WaitOn<'_>,
    most: Duration,
    ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
) -> bool {
    let Some(sleeper) = guard.sleeper.clone() else {
        return false;
    };
    let nap = match most < LONGEST_SLEEP {
        true => Nap::Short,
        false => Nap::Long,
    };
    guard.watch_boards(on);
    sleeper.arm(nap);
    let moved = guard
        .engine
        .as_mut()
        .is_some_and(|e| e.progress_before_sleep());
    if moved || guard.hits_waiter() || ready(guard) {
        sleeper.disarm();
        guard.awake();
        guard.wake_waiters();
        return ready(guard);
    }
    let engine = guard.engine.as_ref();
    let longest = engine.map_or(most, |e| e.longest_sleep(most));
    guard.role = Role::CallerAsleep;
    if guard.has_news(Safety::Restricted) {
        let core = guard.core.clone();
        guard.apart(|| events::deliver(&core, Safety::Restricted));
    }
    let before = E::now();
    let full = guard.apart(|| lasts_in_full::<E>(longest, |t| sleeper.sleep(nap, t)));
    let now = E::now();
    guard.async_progress.idled(now, now.since(before));
    sleeper.wake_up(nap);
    guard.awake();
    guard.role = Role::Caller;
    if full {
        guard.note_lost_wakeup(E::progress);
    }
    ready(guard)
}

/// Sleeps; whether nothing ended that for all of the longest time, a signal neither. A sleep that
/// ended late says nothing: the machine stood still, and what came afterwards may have come before
/// its end was seen.
pub(crate) fn lasts_in_full<E: Polled>(
    longest: Duration,
    sleep: impl FnOnce(Duration) -> bool,
) -> bool {
    let before = E::now();
    let ended = sleep(longest);
    let late = longest + LATE;
    let lasted = E::now().since(before);
    longest == LONGEST_SLEEP && !ended && (longest..late).contains(&lasted)
}
