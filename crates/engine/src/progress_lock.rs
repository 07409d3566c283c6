//! The lock: its owner may touch the machines.
//!
//! A mutex with three additions: a *role* (which thread polls for all), a list of threads that wait
//! without polling, and the progress thread's [`AsyncProgress`].
//!
//! - A thread that must wait takes the role when it is free, polls for a short while, then sleeps
//!   on the [`Sleeper`]; the lock is free while it sleeps. Contract of sleeping: drain, arm, drain
//!   again, sleep.
//! - A thread that finds the role taken parks, and is woken when one of its requests ends, or when
//!   the role falls free.
//! - A thread that leaves MPI while communication is pending and no thread polls leaves it to the
//!   progress thread (see [`kw_waiting::async_progress`]).
//!
//! Invariant, whenever the lock is free ([`Inner::is_looked_after`]): the role is not free while a
//! thread is parked, unless one of the parked threads was called to take it and is on its way (this
//! may take long: there may be more threads than CPUs). Until then only another thread of the
//! program may take the role, for it passes the role on when its wait ends. The progress thread
//! would not, so it has the role only while no thread is parked.

use crate::engine::Engine;
use crate::events::{self, Safety, Tools};
use crate::hang::LongWaits;
use crate::polled::{Polled, Sleep};
use crate::wait::{WaitOn, Waiter};
use kw_base::counters::Counter;
use kw_base::settings::{Id, InvalidSetting};
use kw_base::sync::atomic::{AtomicU32, Ordering};
use kw_base::sync::{Arc, Mutex, MutexGuard, spin_hint, thread};
use kw_waiting::constants::wait::{ROUNDS_PER_YIELD, ROUNDS_TO_LET_IN};
use kw_waiting::{AsyncState, Policy};
use std::ops::{Deref, DerefMut};
use std::sync::TryLockError;
use std::time::Duration;

/// The thread that polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// None.
    Free,
    /// A thread inside MPI that polls.
    Caller,
    /// A thread inside MPI that has polled and now sleeps on the doorbell.
    CallerAsleep,
    /// The event thread.
    Event,
}

/// The guarded state: the engine (once started) and the state of the layer above.
#[derive(Debug)]
pub struct Inner<T, E: Polled = Engine> {
    /// `None` before initialisation and after finalisation.
    pub engine: Option<E>,
    /// The upper layer's own state.
    pub above: T,
    pub(crate) role: Role,
    /// Decides which thread polls, yields and sleeps.
    pub(crate) policy: Policy,
    /// Times a thread of the program has entered.
    pub(crate) entries: u64,
    /// How many there had been when a call that ended at once progressed
    /// ([`Guard::progress_now_and_then`]).
    pub(crate) progressed_at: u64,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) next_waiter: u64,
    /// `Machine::ended` when sleeping threads were last checked.
    pub(crate) reported: u64,
    pub(crate) sleeper: Option<Arc<E::Sleeper>>,
    /// The event thread sleeps, and wakes to look at a set time.
    pub(crate) alarm: bool,
    pub(crate) event_thread: Option<thread::JoinHandle<()>>,
    pub(crate) closing: bool,
    /// Receiver of events.
    pub(crate) tools: Tools<T, E>,
    /// Receiver of reports of long waits.
    pub(crate) long_waits: LongWaits<T, E>,
}

#[derive(Debug)]
pub(crate) struct Core<T, E: Polled> {
    inner: Mutex<Inner<T, E>>,
    /// Threads that want the lock while a polling thread holds it.
    pub(crate) wanted: AtomicU32,
}

/// The lock with a role.
#[derive(Debug)]
pub struct ProgressLock<T, E: Polled = Engine> {
    pub(crate) core: Arc<Core<T, E>>,
}

/// Ownership of the lock.
pub struct Guard<'a, T: Send + 'static, E: Polled = Engine> {
    pub(crate) core: &'a Arc<Core<T, E>>,
    /// `None` only inside [`Guard::apart`], and at the end.
    held: Option<MutexGuard<'a, Inner<T, E>>>,
}

impl<T, E: Polled> Core<T, E> {
    #[inline(always)]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner<T, E>> {
        match self.inner.try_lock() {
            Ok(g) => g,
            Err(_) => self.lock_contended(),
        }
    }

    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, Inner<T, E>> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        // A poisoned lock means that a panic of the library is about to end the job; the state of
        // the machines is good enough for that.
        let g = self.inner.lock().unwrap_or_else(|e| e.into_inner());
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        g
    }
}

impl<T: Send + 'static, E: Polled> ProgressLock<T, E> {
    /// A lock with no engine yet.
    pub fn new(above: T) -> ProgressLock<T, E> {
        let inner = Inner {
            engine: None,
            above,
            role: Role::Free,
            policy: Policy::new(false, Duration::ZERO),
            entries: 0,
            progressed_at: 0,
            waiters: Vec::new(),
            next_waiter: 0,
            reported: 0,
            sleeper: None,
            alarm: false,
            event_thread: None,
            closing: false,
            tools: Tools::default(),
            long_waits: LongWaits::default(),
        };
        ProgressLock {
            core: Arc::new(Core {
                inner: Mutex::new(inner),
                wanted: AtomicU32::new(0),
            }),
        }
    }

    /// Takes the lock.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T, E> {
        let mut held = self.core.lock();
        held.entries += 1;
        if held.policy.async_progress.state.has_polled() {
            held.displace();
        }
        Guard {
            core: &self.core,
            held: Some(held),
        }
    }

    /// Takes the lock to read something, without counting as a thread that enters MPI.
    pub fn look(&self) -> Guard<'_, T, E> {
        Guard {
            core: &self.core,
            held: Some(self.core.lock()),
        }
    }

    /// Takes the lock, unless another thread keeps it for all of `patience` (for the last words of
    /// a failing process).
    pub fn lock_within(&self, patience: Duration) -> Option<Guard<'_, T, E>> {
        let until = kw_sys::clock::now() + patience;
        loop {
            let held = match self.core.inner.try_lock() {
                Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
                tried => tried.ok(),
            };
            if let Some(held) = held {
                return Some(Guard {
                    core: &self.core,
                    held: Some(held),
                });
            }
            if kw_sys::clock::now() >= until {
                return None;
            }
            thread::yield_now();
        }
    }

    /// The same lock, for a thread with any lifetime.
    pub fn share(&self) -> ProgressLock<T, E> {
        ProgressLock {
            core: self.core.clone(),
        }
    }

    /// Has every waiting thread check its condition again (something that no message brings has
    /// happened).
    pub fn wake_all(&self) {
        let guard = self.lock();
        guard.waiters.iter().for_each(|w| w.thread.unpark());
        if guard.role == Role::CallerAsleep
            && let Some(s) = &guard.sleeper
        {
            s.ring();
        }
    }
}

impl<T> Inner<T, Engine> {
    /// Sets up waiting for an engine that was just started. Call once, with `engine` set.
    pub fn open(&mut self) -> std::io::Result<()> {
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        self.policy = Policy::new(engine.job.oversubscribed(), engine.wake_up());
        self.sleeper = Some(Arc::new(engine.messages.paths.sleeper()?));
        if crate::settings::wants_event_thread(engine.settings()) {
            self.policy.async_progress.state = AsyncState::Idle;
        }
        self.reported = 0;
        self.closing = false;
        self.read_times();
        self.ask_for_events();
        Ok(())
    }

    /// Takes a network for the engine, which had none: a thread that sleeps is woken by it, too.
    pub fn set_network(&mut self, net: Box<dyn kw_path::Network>) -> std::io::Result<()> {
        let Some(engine) = &mut self.engine else {
            return Ok(());
        };
        engine.messages.paths.set_network(net, &engine.settings);
        let new = Arc::new(engine.messages.paths.sleeper()?);
        let old = self.sleeper.replace(new);
        if let Some(old) = old {
            // A thread that sleeps there continues with the new one.
            old.ring();
            old.rouse();
        }
        Ok(())
    }

    /// Takes over how long to poll and to watch.
    fn read_times(&mut self) {
        let Some(engine) = &self.engine else { return };
        let micros = |id| engine.settings().number(id).map(Duration::from_micros);
        let (spin_setting, watch) = (micros(Id::Spin), micros(Id::Watch).unwrap_or_default());
        self.policy.set_times(engine.wake_up(), spin_setting, watch);
    }

    /// Changes a setting of the engine, if there is one, that may be changed at any time.
    pub fn set_setting(&mut self, position: usize, text: &str) -> Result<(), InvalidSetting> {
        let Some(engine) = &mut self.engine else {
            return Ok(());
        };
        engine.set_setting(position, text)?;
        let wanted = crate::settings::wants_event_thread(engine.settings());
        self.read_times();
        match (wanted, self.policy.async_progress.state) {
            (true, AsyncState::Off) if !self.closing => {
                self.policy.async_progress.state = AsyncState::Idle;
            }
            (false, state) if state != AsyncState::Off => self.dismiss(),
            _ => {}
        }
        Ok(())
    }

    /// The value of a counter; zero before the start and after the end.
    pub fn counter(&self, c: Counter) -> u64 {
        match (c, &self.engine) {
            (Counter::EventState, _) => self.policy.async_progress.state as u64,
            (_, Some(engine)) => engine.counter(c),
            (_, None) => 0,
        }
    }
}

impl<T, E: Polled> Inner<T, E> {
    /// Everything on shm regions that this thread, parked ones and schedules wait for must wake
    /// this thread.
    pub(crate) fn watch_shm_regions(&mut self, on: WaitOn<'_>) {
        let Some(engine) = &mut self.engine else {
            return;
        };
        engine.make_ready_to_sleep();
        let parked = self.waiters.iter().filter_map(|w| w.shm_region);
        for watch in on.shm_region.into_iter().chain(parked) {
            engine.sleep_for(watch);
        }
    }

    pub(crate) fn awake(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.awake();
        }
    }

    /// Whether a parked thread can go on because of a shm region.
    pub(crate) fn hits_waiter(&self) -> bool {
        let Some(engine) = &self.engine else {
            return false;
        };
        let mut shm_regions = self.waiters.iter().filter_map(|w| w.shm_region);
        shm_regions.any(|w| engine.reached(w))
    }

    /// After a sleep that nothing ended: data that is there now should have ended it.
    #[cold]
    pub(crate) fn note_lost_wakeup(&mut self, progress: fn(&mut E) -> bool) {
        if let Some(e) = &mut self.engine
            && progress(e)
        {
            e.counters().hit(Counter::WakeupsLost);
        }
    }

    /// Has the thread that polls, and sleeps meanwhile, check again what it waits for.
    #[cold]
    pub(crate) fn ring_sleeper(&self) {
        if self.role == Role::CallerAsleep
            && let Some(s) = &self.sleeper
        {
            s.ring();
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, c: Counter) {
        if let Some(e) = &mut self.engine {
            e.counters().hit(c);
        }
    }

    /// Wakes the parked threads whose requests have ended.
    #[inline]
    pub(crate) fn wake_waiters(&mut self) {
        if !self.waiters.is_empty() {
            self.wake_parked();
        }
    }

    #[cold]
    pub(crate) fn wake_parked(&mut self) {
        let Some(engine) = &self.engine else { return };
        for w in self.waiters.iter().filter(|w| w.hit(engine)) {
            w.thread.unpark();
        }
    }

    /// If the role is free: calls a parked thread to take it.
    pub(crate) fn pass_on(&mut self) {
        if self.role == Role::Free
            && let Some(w) = self.waiters.first_mut()
        {
            w.called = true;
            w.thread.unpark();
        }
    }

    /// The invariant of the lock: a thread polls for every parked thread, or is on its way to do
    /// so.
    pub(crate) fn is_looked_after(&self) -> bool {
        match self.role {
            Role::Caller | Role::CallerAsleep => true,
            Role::Event => self.waiters.is_empty(),
            Role::Free => self.waiters.is_empty() || self.waiters.iter().any(|w| w.called),
        }
    }

    /// Before the lock is let go, in tests and in models.
    #[inline(always)]
    pub(crate) fn check(&self) {
        if cfg!(any(debug_assertions, loom)) {
            let parked = self.waiters.len();
            assert!(
                self.is_looked_after(),
                "{:?}: no thread polls for {parked} parked threads",
                self.role
            );
        }
    }
}

impl<T: Send + 'static, E: Polled> Guard<'_, T, E> {
    /// Releases the lock: like dropping the guard, but in line, for calls that take little more
    /// time than that.
    #[inline(always)]
    pub fn leave(mut self) {
        if self.needs_attention() {
            return;
        }
        self.check();
        let held = self.held.take();
        std::mem::forget(self);
        drop(held);
    }

    /// Does something without the lock.
    pub(crate) fn apart<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.check();
        self.held = None;
        let r = f();
        self.held = Some(self.core.lock());
        r
    }

    /// Lets in the threads that want the lock.
    #[cold]
    pub(crate) fn let_others_in(&mut self) {
        let core = self.core.clone();
        self.apart(|| {
            for round in 0..ROUNDS_TO_LET_IN {
                if core.wanted.load(Ordering::Relaxed) == 0 {
                    break;
                }
                if round % ROUNDS_PER_YIELD == ROUNDS_PER_YIELD - 1 {
                    thread::yield_now()
                } else {
                    spin_hint()
                }
            }
        });
    }

    /// Releases the lock, and delivers events to the tools.
    #[cold]
    fn hand_out(&mut self) {
        if self.has_news(Safety::None) {
            self.held = None;
            events::deliver(self.core, Safety::None);
        }
    }
}

impl<T: Send + 'static, E: Polled> Deref for Guard<'_, T, E> {
    type Target = Inner<T, E>;
    #[inline]
    fn deref(&self) -> &Inner<T, E> {
        // `held` is `None` only inside `apart`, which has the guard borrowed.
        self.held.as_ref().expect("the lock is held")
    }
}

impl<T: Send + 'static, E: Polled> DerefMut for Guard<'_, T, E> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Inner<T, E> {
        // Also here `held` is `Some`.
        self.held.as_mut().expect("the lock is held")
    }
}

impl<T: Send + 'static, E: Polled> Drop for Guard<'_, T, E> {
    #[inline]
    fn drop(&mut self) {
        if self.needs_attention() {
            let call = self.attend();
            self.check();
            self.hand_out();
            if let Some(call) = call {
                self.held = None;
                call.now();
            }
        } else {
            self.check();
        }
    }
}
