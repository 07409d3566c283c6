//! Waiting of a thread: it polls for all, or parks while another one does.
//!
//! The polling thread does so for a short while, then sleeps. Contract of sleeping: drain, arm,
//! drain again, sleep. The lock is free meanwhile.

use crate::collective::Watch;
use crate::events::{self, Safety};
use crate::hang::Lasting;
use crate::messages::{ReqId, Want};
use crate::polled::{Nap, Polled, Sleep};
use crate::progress_lock::{Guard, Inner, ProgressLock, Role};
use kw_base::counters::Counter;
use kw_base::sync::atomic::Ordering;
use kw_base::sync::{parking, spin_hint, thread};
use kw_base::{Peer, Tick};
use kw_waiting::constants::wait::{CHECKED_AFTER, LATE, LONGEST_SLEEP};
use kw_waiting::{Sleeps, Wait};
use std::time::Duration;

/// Condition of a waiting thread, so that exactly it is woken.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitOn<'a> {
    /// Requests any of whose completion may end the wait; empty: anything that arrives wakes the
    /// thread.
    pub requests: &'a [ReqId],
    /// The only peer it can come from, if known.
    pub from: Option<Peer>,
    /// Condition of a schedule on a shm region, instead of a request.
    pub shm_region: Option<Watch>,
    /// The message, where there is no request for it (MPI_Probe).
    pub probe: Option<&'a Want>,
}

#[derive(Debug)]
pub(crate) struct Waiter {
    id: u64,
    pub(crate) thread: parking::Thread,
    requests: Vec<ReqId>,
    pub(crate) shm_region: Option<Watch>,
    arrivals: u64,
    /// It is on its way to take the role, which fell free.
    pub(crate) called: bool,
}

impl Waiter {
    pub(crate) fn hit(&self, engine: &impl Polled) -> bool {
        if engine.wants_user() {
            return true;
        }
        match self.shm_region {
            Some(watch) => engine.reached(watch),
            None if self.requests.is_empty() => engine.arrivals() != self.arrivals,
            None => self.requests.iter().any(|&r| engine.is_done(r)),
        }
    }
}

impl<T: Send + 'static, E: Polled> ProgressLock<T, E> {
    /// Progresses, polling and then sleeping, until `ready` returns true, which is not called again
    /// then. The lock is released while sleeping.
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

    /// Waits while another thread polls. Returns whether `ready` returned true; otherwise the role
    /// may have fallen free.
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
            shm_region: on.shm_region,
            arrivals,
            called: false,
        });
        if on.shm_region.is_some() {
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
    let inner = &mut **guard;
    let Some(engine) = &inner.engine else { return };
    let (sent, now) = (|| engine.sent(), || engine.clock());
    let mut wait = inner.policy.begin_wait(on.shm_region.is_some(), sent, now);
    while let Some(engine) = guard.engine.as_mut() {
        if poll(engine, on, wait.polls_all()) {
            if ready(guard) {
                return guard.count(Counter::WaitsSpun);
            }
            guard.wake_waiters();
            wait.progressed();
        } else if found_nothing(guard, on, &mut wait, ready) {
            return;
        }
    }
}

/// Polls the peer it waits for, or everywhere; returns whether anything moved.
#[inline]
fn poll<E: Polled>(engine: &mut E, on: WaitOn<'_>, all: bool) -> bool {
    match (on.shm_region, on.from) {
        (Some(w), _) if !all && !w.is_turn() => engine.reached(w),
        (None, Some(p)) if !all => engine.progress_from(p),
        _ => engine.progress(),
    }
}

/// Nothing has come: does what is due between two polls. Returns whether the wait is over.
#[inline]
fn found_nothing<T: Send + 'static, E: Polled>(
    guard: &mut Guard<'_, T, E>,
    on: WaitOn<'_>,
    wait: &mut Wait,
    ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
) -> bool {
    let round = wait.found_nothing(guard.policy.oversubscribed);
    let now = match round.yields {
        true => let_others_run(guard, wait),
        false => None,
    };
    if round.wakes_parked {
        guard.wake_waiters();
    }
    if round.reads_clock {
        return read_clock(guard, on, wait, now, ready);
    }
    if round.hints {
        spin_hint();
    }
    false
}

/// Lets others run on this CPU, and measures for how long, unless there is nothing to learn.
/// Returns the time, if it has read the clock.
fn let_others_run<T: Send + 'static, E: Polled>(
    guard: &mut Guard<'_, T, E>,
    wait: &mut Wait,
) -> Option<Tick> {
    if !guard.policy.learns {
        thread::yield_now();
        return None;
    }
    let clock = |guard: &Guard<'_, T, E>| guard.engine.as_ref().map(E::clock);
    let before = wait.read_at().or_else(|| clock(guard))?;
    thread::yield_now();
    let now = clock(guard)?;
    let inner = &mut **guard;
    let engine = inner.engine.as_ref()?;
    let ours = || engine.used_by_host_ranks();
    inner.policy.others_ran(wait, now.since(before), now, ours);
    Some(now)
}

/// Lets in the threads that want the lock, checks a wait that lasts, sleeps when it has polled for
/// long enough. Returns whether the wait is over.
fn read_clock<T: Send + 'static, E: Polled>(
    guard: &mut Guard<'_, T, E>,
    on: WaitOn<'_>,
    wait: &mut Wait,
    mut now: Option<Tick>,
    ready: &mut impl FnMut(&mut Inner<T, E>) -> bool,
) -> bool {
    if guard.core.wanted.load(Ordering::Relaxed) != 0 {
        guard.let_others_in();
        now = None;
        if ready(guard) {
            return true;
        }
    }
    let inner = &mut **guard;
    let Some(engine) = &mut inner.engine else {
        return true;
    };
    engine.asked_in_vain();
    let now = now.unwrap_or_else(|| engine.clock());
    let policy = (inner.policy.oversubscribed, inner.policy.times);
    if policy.0 {
        engine.spread(now);
    }
    let next = wait.on_time(now, policy, || engine.fetch_time());
    if next.checks_peers {
        let since = wait.began().unwrap_or(now);
        if guard.doubt((on, since, now), ready) {
            guard.count(Counter::WaitsSlept);
            return true;
        }
    }
    let most = match next.sleeps {
        None => return false,
        Some(Sleeps::UntilChecked) => CHECKED_AFTER,
        Some(Sleeps::Long) => guard.long_waits.nap,
    };
    if sleep_once(guard, on, most, ready) {
        guard.count(Counter::WaitsSlept);
        return true;
    }
    wait.slept();
    false
}

impl<T: Send + 'static, E: Polled> Guard<'_, T, E> {
    /// Checks a wait that has lasted: returns whether it is over because it can never end
    /// otherwise. Checks the waits of parked threads, too.
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
                shm_region: w.shm_region,
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

/// Drain, arm, drain again, sleep, for `most` at most. Returns whether `ready` returned true.
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
    guard.watch_shm_regions(on);
    sleeper.arm(nap);
    let moved = guard
        .engine
        .as_mut()
        .is_some_and(|e| e.progress_before_sleep());
    let done = ready(guard);
    if done || moved || guard.hits_waiter() {
        sleeper.disarm();
        guard.awake();
        guard.wake_waiters();
        return done;
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
    guard.policy.async_progress.idled(now, now.since(before));
    sleeper.wake_up(nap);
    guard.awake();
    guard.role = Role::Caller;
    if full {
        guard.note_lost_wakeup(E::progress);
    }
    ready(guard)
}

/// Sleeps; returns whether the sleep lasted for all of the longest time and nothing ended it, not
/// even a signal. A sleep that ended late shows nothing: the machine stood still, and data that
/// came afterwards may have come before its end was seen.
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
