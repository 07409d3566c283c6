//! The event thread: serves communication while no thread of the program is inside MPI. Its duty is the table in
//! [`kw_core::duty`].

use crate::engine::Engine;
use crate::events::{self, Safety};
use crate::lane::{Core, Inner, LONGEST_SLEEP, Role, lasts_in_full};
use crate::sleeper::Sleeper;
use kw_base::counters::Counter;
use kw_base::events::Event as News;
use kw_base::sync::{Arc, MutexGuard, thread};
use kw_core::duty::{Duty, Event};
use std::time::Duration;

/// Bytes of stack: progress recurses nowhere.
const STACK: usize = 256 << 10;
/// Quiet ticks with nothing going on before the thread sleeps for good.
const NOTHING_TICKS: u32 = 20;
/// Ticks grow to this many times `KW_WATCH` while they find no long stay outside MPI; the budget may have them further apart.
const LIVELY_FACTOR: u32 = 64;
/// What a wake-up takes from the computation beside it, as a fraction of the processor's time that it was seen to use: caches
/// and the switch itself come on top (measured: 13 to 27 us lost for 13 to 18 us used).
const LOST_FOR_USED: (u32, u32) = (3, 2);

/// Starts it; `None` when the system gives no thread (progress then depends on calls, as in other libraries).
pub(crate) fn spawn<T: Send + 'static>(core: Arc<Core<T>>) -> Option<thread::JoinHandle<()>> {
    let name = "kw-event".to_string();
    std::thread::Builder::new()
        .name(name)
        .stack_size(STACK)
        .spawn(move || run(&core))
        .ok()
}

fn run<T: Send + 'static>(core: &Arc<Core<T>>) {
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
        match inner.duty {
            Duty::Off => {
                // Switched off: nobody waits for this thread any more.
                inner.event_thread = None;
                return;
            }
            Duty::Idle => {
                drop(inner);
                sleeper.rest(None);
                look.begin();
            }
            Duty::Watching => watch(inner, &sleeper, &mut look),
            Duty::Serving => {
                inner.habit.woken(look.cost);
                serve(core, inner, &sleeper);
                look.skip();
                events::deliver(core, Safety::ThreadSafe);
            }
            Duty::Displaced => inner.duty = inner.duty.on(Event::Woken).0,
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

fn watch<T>(mut inner: MutexGuard<'_, Inner<T>>, sleeper: &Sleeper, look: &mut Look) {
    let now = kw_sys::clock::now();
    let (before, cost) = look.take_account();
    // Kicks come when they come: only looks that were due grant the program another trial.
    let due = inner.budget.pause(now).is_zero();
    inner.budget.spend(now, cost);
    count(&mut inner, Counter::EventLooks, 1);
    let event = look.judge(&inner);
    if event == Event::Quiet {
        inner.budget.refund(before + cost);
    }
    if due || event == Event::Quiet {
        inner.habit.trust();
    }
    inner.duty = inner.duty.on(event).0;
    if inner.duty == Duty::Watching {
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
    fn skip(&mut self) {
        self.used = kw_sys::clock::of_this_thread();
    }

    /// What the look before this one cost, and this one.
    fn take_account(&mut self) -> (Duration, Duration) {
        let (before, used) = (self.cost, kw_sys::clock::of_this_thread());
        let (lost, per) = LOST_FOR_USED;
        self.cost = (used - self.used) * lost / per;
        self.used = used;
        (before, self.cost)
    }

    fn judge<T>(&mut self, inner: &Inner<T>) -> Event {
        let busy = inner.engine.as_ref().is_some_and(|e| e.busy());
        let lively = inner.entries != self.entries;
        self.entries = inner.entries;
        self.nothing = if busy { 0 } else { self.nothing + 1 };
        self.factor = (self.factor * 2).clamp(1, LIVELY_FACTOR);
        // Whoever went to sleep for each wait would be kicked by each call. Where ranks share cores, every kick takes the processor from
        // one; elsewhere it makes this thread look sooner.
        let calls = lively && inner.crowded;
        match (inner.is_waited_in(), busy, lively) {
            (true, ..) if !calls => Event::Waiter,
            (_, false, _) if self.nothing >= NOTHING_TICKS => Event::Nothing,
            (_, true, false) => Event::Quiet,
            _ => Event::Lively,
        }
    }
}

/// One stretch of duty: what there is to do, then a sleep.
fn serve<T>(core: &Core<T>, mut inner: MutexGuard<'_, Inner<T>>, sleeper: &Sleeper) {
    if inner.role == Role::Free {
        inner.take_over();
        while progress(&mut inner, Engine::progress) {}
    } else {
        sleeper.wake_up_on_duty();
        inner.awake();
        progress(&mut inner, Engine::progress_ready);
    }
    if !inner.engine.as_ref().is_some_and(|e| e.busy()) {
        inner.role = Role::Free;
        inner.duty = Duty::Idle;
        return inner.check();
    }
    inner.check();
    if inner.can_sleep_on_duty(sleeper) {
        drop(inner);
        doze(core, sleeper);
    }
}

fn doze<T>(core: &Core<T>, sleeper: &Sleeper) {
    if lasts_in_full(LONGEST_SLEEP, |t| sleeper.doze(t)) {
        let mut inner = core.lock();
        if inner.role == Role::Event {
            inner.note_lost_wakeup(Engine::progress_ready);
        }
    }
}

impl<T> Inner<T> {
    /// Whether a thread of the program waits in MPI: one that polls, or that is parked and will, however long it is on its way.
    fn is_waited_in(&self) -> bool {
        matches!(self.role, Role::Caller | Role::CallerAsleep) || !self.waiters.is_empty()
    }

    /// The event thread has the duty from now on.
    pub(crate) fn take_over(&mut self) {
        self.role = Role::Event;
        count(self, Counter::EventTakeovers, 1);
        if let Some(e) = &mut self.engine {
            let active = e.machine.active() as i64;
            e.notice(News::EventTakeover, [active, 0, 0, 0]);
        }
    }

    /// Arms everything for the event thread's sleep on duty, and drains once more. `false`: there is something to do first.
    pub(crate) fn can_sleep_on_duty(&mut self, sleeper: &Sleeper) -> bool {
        if let Some(e) = &mut self.engine {
            e.make_ready_to_sleep();
        }
        sleeper.arm_for_duty();
        let moved = match self.role {
            Role::Event => progress(self, Engine::progress_before_serving_asleep),
            _ => self
                .engine
                .as_mut()
                .is_some_and(Engine::progress_before_serving_asleep),
        };
        let can = !moved && !self.has_news(Safety::ThreadSafe);
        if !can {
            sleeper.disarm();
            self.awake();
        }
        can
    }
}

fn progress<T>(inner: &mut Inner<T>, how: fn(&mut Engine) -> bool) -> bool {
    let Some(engine) = &mut inner.engine else {
        return false;
    };
    let before = engine.arrivals;
    let moved = how(engine);
    let frames = engine.arrivals - before;
    count(inner, Counter::EventProgress, frames);
    moved
}

fn count<T>(inner: &mut Inner<T>, c: Counter, n: u64) {
    if let Some(e) = &mut inner.engine {
        e.counters.add(c, n);
    }
}
