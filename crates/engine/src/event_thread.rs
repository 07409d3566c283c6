//! The event thread: polls while no thread of the program is inside MPI. What it does is the table
//! in [`crate::async_progress`].

use crate::async_progress::{AsyncState, Event};
use crate::events::{self, Safety};
use crate::polled::{Polled, Sleep};
use crate::progress_lock::{Core, Inner, Role};
use crate::wait::{LONGEST_SLEEP, lasts_in_full};
use kw_base::counters::Counter;
use kw_base::sync::{Arc, MutexGuard, thread};
use std::time::Duration;

/// Bytes of stack: progress recurses nowhere.
const STACK: usize = 256 << 10;
/// Quiet ticks with nothing going on before the thread sleeps for good.
const NOTHING_TICKS: u32 = if cfg!(loom) { 2 } else { 20 };
/// Ticks grow to this many times `KW_WATCH` while they find no long stay outside MPI; the budget
/// may have them further apart.
const LIVELY_FACTOR: u32 = 64;
/// What a wake-up takes from the computation beside it, as a fraction of the processor's time that
/// it was seen to use: caches and the switch itself come on top (measured: 13 to 27 us lost for 13
/// to 18 us used). A starting value.
const LOST_FOR_USED: (u32, u32) = (3, 2);

/// Starts it; `None` when the system gives no thread (progress then depends on calls, as in other
/// libraries).
pub(crate) fn spawn<T: Send + 'static, E: Polled>(
    core: Arc<Core<T, E>>,
) -> Option<thread::JoinHandle<()>> {
    let builder = thread::Builder::new()
        .name("kw-event".to_string())
        .stack_size(STACK);
    kw_sys::threads::with_signals_blocked(|| builder.spawn(move || run(&core))).ok()
}

fn run<T: Send + 'static, E: Polled>(core: &Arc<Core<T, E>>) {
    let mut look = Look::default();
    loop {
        let mut inner = core.lock();
        if inner.closing || inner.engine.is_none() {
            return;
        }
        let Some(sleeper) = inner.sleeper.clone() else {
            return;
        };
        inner.alarm = false;
        match inner.async_state {
            AsyncState::Off => {
                // Switched off: nobody waits for this thread any more.
                inner.event_thread = None;
                return;
            }
            AsyncState::Idle => {
                drop(inner);
                sleeper.rest(None);
                look.begin();
            }
            AsyncState::Watching => watch(inner, &*sleeper, &mut look),
            AsyncState::Polling => {
                inner.predictor.woken(look.cost);
                serve(core, inner, &*sleeper);
                look.skip::<E>();
                events::deliver(core, Safety::ThreadSafe);
            }
            AsyncState::Preempted => inner.async_state = inner.async_state.on(Event::Woken).0,
        }
    }
}

/// What the last tick saw, and what ticks cost.
#[derive(Default)]
struct Look {
    entries: u64,
    nothing: u32,
    factor: u32,
    /// What this thread had used of its processor when it last took account.
    used: Duration,
    /// What the last look cost.
    cost: Duration,
}

fn watch<T, E: Polled>(
    mut inner: MutexGuard<'_, Inner<T, E>>,
    sleeper: &E::Sleeper,
    look: &mut Look,
) {
    let now = E::now();
    let (before, cost) = look.take_account::<E>();
    // Kicks come when they come: only looks that were due grant the program another trial.
    let due = inner.budget.pause(now).is_zero();
    inner.budget.spend(now, cost);
    count(&mut inner, Counter::EventLooks, 1);
    let event = look.judge(&inner);
    let moved = event == Event::EagerOnly && progress(&mut inner, E::progress);
    if moved {
        look.factor = 1;
    }
    if moved || event == Event::Quiet {
        inner.budget.refund(before + cost);
    }
    if due || event == Event::Quiet {
        inner.predictor.trust();
    }
    inner.async_state = inner.async_state.on(event).0;
    if inner.async_state == AsyncState::Watching {
        let pause = (inner.watch * look.factor).max(inner.budget.pause(now));
        inner.alarm = true;
        drop(inner);
        sleeper.rest(Some(pause));
    }
}

impl Look {
    /// It was kicked, and looks anew.
    fn begin(&mut self) {
        (self.entries, self.nothing, self.factor) = (0, 0, 0);
    }

    /// What this thread did until now was no look.
    fn skip<E: Polled>(&mut self) {
        self.used = E::used();
    }

    /// What the look before this one cost, and this one.
    fn take_account<E: Polled>(&mut self) -> (Duration, Duration) {
        let (before, used) = (self.cost, E::used());
        let (lost, per) = LOST_FOR_USED;
        self.cost = (used - self.used) * lost / per;
        self.used = used;
        (before, self.cost)
    }

    fn judge<T, E: Polled>(&mut self, inner: &Inner<T, E>) -> Event {
        let engine = inner.engine.as_ref();
        let busy = engine.is_some_and(|e| e.busy());
        let holds_up = engine.is_some_and(|e| e.may_hold_up_others());
        let lively = inner.entries != self.entries;
        self.entries = inner.entries;
        self.nothing = if busy { 0 } else { self.nothing + 1 };
        self.factor = (self.factor * 2).clamp(1, LIVELY_FACTOR);
        // Whoever went to sleep for each wait would be kicked by each call. Where ranks share
        // cores, every kick takes the processor from one; elsewhere it makes this thread look
        // sooner.
        let calls = lively && inner.budget.is_crowded();
        match (inner.is_waited_in(), busy, lively) {
            (true, ..) if !calls => Event::Waiter,
            (_, false, _) if self.nothing >= NOTHING_TICKS => Event::Nothing,
            (_, true, false) if holds_up => Event::Quiet,
            (_, true, false) => Event::EagerOnly,
            _ => Event::Lively,
        }
    }
}

/// One stretch of polling: what there is to do, then a sleep.
fn serve<T, E: Polled>(
    core: &Core<T, E>,
    mut inner: MutexGuard<'_, Inner<T, E>>,
    sleeper: &E::Sleeper,
) {
    if inner.role == Role::Free {
        inner.take_over();
        while progress(&mut inner, E::progress) {}
    } else {
        sleeper.wake_up_polling();
        inner.awake();
        progress(&mut inner, E::progress_ready);
    }
    if !inner.engine.as_ref().is_some_and(|e| e.busy()) {
        inner.role = Role::Free;
        inner.async_state = AsyncState::Idle;
        return inner.check();
    }
    inner.check();
    if inner.can_sleep_polling(sleeper) {
        drop(inner);
        doze(core, sleeper);
    }
}

fn doze<T, E: Polled>(core: &Core<T, E>, sleeper: &E::Sleeper) {
    if lasts_in_full::<E>(LONGEST_SLEEP, |t| sleeper.doze(t)) {
        let mut inner = core.lock();
        if inner.role == Role::Event {
            inner.note_lost_wakeup(E::progress_ready);
        }
    }
}

impl<T, E: Polled> Inner<T, E> {
    /// Whether a thread of the program waits in MPI: one that polls, or that is parked and will,
    /// however long it is on its way.
    fn is_waited_in(&self) -> bool {
        matches!(self.role, Role::Caller | Role::CallerAsleep) || !self.waiters.is_empty()
    }

    /// The event thread polls from now on.
    pub(crate) fn take_over(&mut self) {
        self.role = Role::Event;
        count(self, Counter::EventTakeovers, 1);
        if let Some(e) = &mut self.engine {
            e.notice_takeover();
        }
    }

    /// Arms everything for the event thread's sleep while it polls, and drains once more. `false`:
    /// there is something to do first.
    pub(crate) fn can_sleep_polling(&mut self, sleeper: &E::Sleeper) -> bool {
        if let Some(e) = &mut self.engine {
            e.make_ready_to_sleep();
        }
        sleeper.arm_for_polling();
        let moved = match self.role {
            Role::Event => progress(self, E::progress_before_polling_asleep),
            _ => self
                .engine
                .as_mut()
                .is_some_and(E::progress_before_polling_asleep),
        };
        let can = !moved && !self.has_news(Safety::ThreadSafe);
        if !can {
            sleeper.disarm();
            self.awake();
        }
        can
    }
}

fn progress<T, E: Polled>(inner: &mut Inner<T, E>, how: fn(&mut E) -> bool) -> bool {
    let Some(engine) = &mut inner.engine else {
        return false;
    };
    let before = engine.arrivals();
    let moved = how(engine);
    let frames = engine.arrivals() - before;
    count(inner, Counter::EventProgress, frames);
    moved
}

fn count<T, E: Polled>(inner: &mut Inner<T, E>, c: Counter, n: u64) {
    if let Some(e) = &mut inner.engine {
        e.counters().add(c, n);
    }
}
