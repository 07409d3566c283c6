//! Who looks after communication when the last thread of the program leaves MPI: the hand-over to the event thread, and back. The table is
//! [`kw_core::duty`].

use crate::lane::{Guard, Inner, Role};
use crate::polled::{Polled, Sleep};
use kw_base::sync::{Arc, thread};
use kw_core::duty::{Duty, Event};

/// What is to be done about the event thread once the lane is free, so that it finds it free.
pub(crate) struct Call<S> {
    sleeper: Arc<S>,
    thread: thread::Thread,
    duty: Duty,
}

impl<S: Sleep> Call<S> {
    /// Does it.
    pub(crate) fn now(self) {
        match self.duty {
            Duty::Serving => self.sleeper.hand_over(),
            duty => self.sleeper.rouse(&self.thread, duty),
        }
    }
}

impl<T, E: Polled> Inner<T, E> {
    /// Calls the event thread, if there is one, out of this duty (and into this one if it is `Serving`).
    fn call(&self, duty: Duty) -> Option<Call<E::Sleeper>> {
        Some(Call {
            sleeper: self.sleeper.clone()?,
            thread: self.event_thread.as_ref()?.thread().clone(),
            duty,
        })
    }

    /// Has the event thread end by itself, wherever it sleeps.
    pub(crate) fn dismiss(&mut self) {
        self.duty = Duty::Off;
        if let Some(call) = self.call(Duty::Off) {
            call.now();
        }
    }

    /// The event thread has the role, but a thread in MPI wants it.
    #[cold]
    pub(crate) fn displace(&mut self) {
        self.habit.is_back(E::now(), self.watch);
        self.duty = self.duty.on(Event::Entered).0;
        self.role = Role::Free;
        if let Some(s) = &self.sleeper {
            s.disarm();
        }
        self.awake();
    }

    /// What must be done when a thread lets go of the lane.
    #[inline]
    pub(crate) fn needs_attention(&self) -> bool {
        match &self.engine {
            None => false,
            Some(e) => {
                self.role == Role::CallerAsleep && e.is_unwatched()
                    || (!self.waiters.is_empty() || self.role == Role::CallerAsleep)
                        && e.ended() != self.told
                    || self.duty.needs_kick() && self.role == Role::Free && e.busy()
                    || !e.noticed().is_empty() && !self.tools.busy
            }
        }
    }

    /// Gives the event thread its duty in its sleep: what comes will wake it. `false`: it must be woken to take the duty.
    fn hand_over(&mut self) -> bool {
        let Some(sleeper) = self.sleeper.clone() else {
            return false;
        };
        let (next, _) = self.duty.on(Event::LeftAsBefore);
        let may = self.habit.is_to_leave() && next == Duty::Serving && self.event_thread.is_some();
        if !may || !sleeper.is_shared() || !self.can_sleep_on_duty(&sleeper) {
            return false;
        }
        self.duty = next;
        self.take_over();
        self.habit.left(E::now());
        true
    }
}

impl<T: Send + 'static, E: Polled> Guard<'_, T, E> {
    /// Sees to what [`Inner::needs_attention`] has found, but for what is to be done with the lane free: that is returned.
    #[cold]
    pub(crate) fn attend(&mut self) -> Option<Call<E::Sleeper>> {
        self.wake_parked();
        let inner = &mut **self;
        inner.told = inner.engine.as_ref().map_or(0, E::ended);
        if inner.role == Role::CallerAsleep
            && let Some(s) = &inner.sleeper
        {
            s.ring();
        }
        let busy = inner.engine.as_ref().is_some_and(|e| e.busy());
        if inner.role == Role::Free && inner.waiters.is_empty() && busy {
            return self.leave_to_event_thread();
        }
        None
    }

    fn leave_to_event_thread(&mut self) -> Option<Call<E::Sleeper>> {
        let core = self.core.clone();
        let inner = &mut **self;
        let before = inner.duty;
        if inner.hand_over() {
            return inner.call(Duty::Serving);
        }
        let (next, kick) = before.on(Event::Left);
        inner.duty = next;
        if !kick {
            return None;
        }
        if inner.event_thread.is_some() {
            return inner.call(before);
        }
        inner.event_thread = crate::event_thread::spawn(core);
        if inner.event_thread.is_none() {
            inner.duty = Duty::Off;
        }
        None
    }

    /// Ends the event thread. Call before the engine is taken out.
    pub fn stop_event_thread(&mut self) {
        self.closing = true;
        let call = self.call(Duty::Off);
        let Some(t) = self.event_thread.take() else {
            return;
        };
        if let Some(call) = call {
            call.now();
        }
        // A panic of the event thread was printed by it; there is nothing left to tell.
        let _ = self.apart(|| t.join());
        self.duty = Duty::Off;
    }
}
