//! The progress thread: polls while no thread of the program is inside MPI. Its states are the
//! table in [`kw_waiting::async_progress`].

use crate::events::{self, Safety};
use crate::polled::{Polled, Sleep};
use crate::progress_lock::{Core, Inner, Role};
use crate::wait::lasts_in_full;
use kw_base::counters::Counter;
use kw_base::sync::{Arc, MutexGuard, thread};
use kw_waiting::AsyncState;
use kw_waiting::async_progress::{Costs, Event, Looks, Sight};
use kw_waiting::constants::wait::LONGEST_SLEEP;

/// Bytes of stack: progress recurses nowhere.
const STACK: usize = 256 << 10;

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
    kw_sys::threads::ask_for_short_turns();
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
        match inner.policy.async_progress.state {
            AsyncState::Off => {
                // Switched off: no thread waits for this thread any more.
                inner.event_thread = None;
                return;
            }
            AsyncState::Idle | AsyncState::Finished => {
                drop(inner);
                sleeper.rest(None);
                look.begin();
            }
            AsyncState::Watching => watch(inner, &*sleeper, &mut look),
            AsyncState::Polling => {
                inner.policy.async_progress.woken();
                serve(core, inner, &*sleeper);
                look.costs.skip(E::used());
                events::deliver(core, Safety::ThreadSafe);
            }
            AsyncState::Preempted => {
                inner.policy.async_progress.on(Event::Woken);
            }
        }
    }
}

/// Observation of the last tick, and costs of ticks.
#[derive(Default)]
struct Look {
    looks: Looks,
    costs: Costs,
}

fn watch<T, E: Polled>(
    mut inner: MutexGuard<'_, Inner<T, E>>,
    sleeper: &E::Sleeper,
    look: &mut Look,
) {
    let now = E::now();
    let costs = look.costs.of_check(E::used());
    count(&mut inner, Counter::EventLooks, 1);
    let event = look.judge(&inner);
    let moved = event == Event::EagerOnly && progress(&mut inner, E::progress);
    if moved {
        look.looks.factor = 1;
    }
    let watch = inner.policy.watch;
    let progress = &mut inner.policy.async_progress;
    progress.looked(now, costs, event, moved);
    if progress.state == AsyncState::Watching {
        let pause = progress.pause(now, watch, &look.looks);
        inner.alarm = true;
        drop(inner);
        sleeper.rest(Some(pause));
    }
}

impl Look {
    /// It was kicked, and checks again.
    fn begin(&mut self) {
        self.looks = Looks::default();
    }

    fn judge<T, E: Polled>(&mut self, inner: &Inner<T, E>) -> Event {
        let engine = inner.engine.as_ref();
        self.looks.judge(Sight {
            entries: inner.entries,
            busy: engine.is_some_and(E::busy),
            holds_up: engine.is_some_and(E::may_hold_up_others),
            waited_in: inner.is_waited_in(),
            oversubscribed: inner.policy.async_progress.budget.is_oversubscribed(),
        })
    }
}

/// One stretch of polling: everything that can be done, then a sleep.
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
        inner.policy.async_progress.on(Event::AllEnded);
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
    /// Whether a thread of the program waits in MPI: one that polls, or that is parked and will
    /// poll, however long it is on its way.
    fn is_waited_in(&self) -> bool {
        matches!(self.role, Role::Caller | Role::CallerAsleep) || !self.waiters.is_empty()
    }

    /// The progress thread polls from now on.
    pub(crate) fn take_over(&mut self) {
        self.role = Role::Event;
        count(self, Counter::EventTakeovers, 1);
        if let Some(e) = &mut self.engine {
            e.notice_takeover();
        }
    }

    /// Arms everything for the progress thread's sleep while it polls, and drains once more.
    /// `false`: there is something to do first.
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
