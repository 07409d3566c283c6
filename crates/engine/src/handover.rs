//! Hand-over of communication to the progress thread when the last thread of the program leaves
//! MPI, and back. The table is [`kw_waiting::async_progress`].

use crate::polled::{Polled, Sleep};
use crate::progress_lock::{Guard, Inner, Role};
use kw_base::sync::Arc;
use kw_waiting::AsyncState;
use kw_waiting::async_progress::Event;
use kw_waiting::constants::progress_thread::HAND_OVER_TRIES;
use std::time::Duration;

/// Action on the progress thread after the lock was released, so that it finds the lock free.
pub(crate) enum Call<S> {
    /// Incoming data has to wake it.
    HandOver(Arc<S>),
    /// It has to wake.
    Rouse(Arc<S>),
}

impl<S: Sleep> Call<S> {
    /// Calls the progress thread.
    pub(crate) fn now(self) {
        match self {
            Call::HandOver(sleeper) => sleeper.hand_over(),
            Call::Rouse(sleeper) => sleeper.rouse(),
        }
    }
}

impl<T, E: Polled> Inner<T, E> {
    /// Calls the progress thread, if there is one.
    fn call(&self, how: fn(Arc<E::Sleeper>) -> Call<E::Sleeper>) -> Option<Call<E::Sleeper>> {
        self.event_thread.as_ref()?;
        self.sleeper.clone().map(how)
    }

    /// Has the progress thread end by itself, wherever it sleeps.
    pub(crate) fn dismiss(&mut self) {
        self.policy.async_progress.state = AsyncState::Off;
        if let Some(call) = self.call(Call::Rouse) {
            call.now();
        }
    }

    /// The progress thread has polled while no thread was in MPI, and a thread is back: the
    /// progress thread no longer has the role.
    #[cold]
    pub(crate) fn displace(&mut self) {
        self.policy
            .async_progress
            .entered(E::now(), self.policy.watch);
        if self.role != Role::Event {
            return;
        }
        self.role = Role::Free;
        if let Some(s) = &self.sleeper {
            s.disarm();
        }
        self.awake();
    }

    /// Actions when a thread releases the lock.
    #[inline]
    pub(crate) fn needs_attention(&self) -> bool {
        match &self.engine {
            None => false,
            Some(e) => {
                self.role == Role::CallerAsleep && e.is_unwatched()
                    || (!self.waiters.is_empty() || self.role == Role::CallerAsleep)
                        && e.ended() != self.reported
                    || self.role == Role::Free
                        && (self.policy.async_progress.state.needs_kick() && e.busy()
                            || self.policy.async_progress.tries_to_leave()
                                && e.may_hold_up_others())
                    || !e.event_queue().is_empty() && !self.tools.busy
            }
        }
    }

    /// Leaves polling to the progress thread in its sleep: incoming data will wake it. `false`: it
    /// must be woken for that.
    fn hand_over(&mut self) -> bool {
        let Some(sleeper) = self.sleeper.clone() else {
            return false;
        };
        let engine = self.engine.as_ref();
        let may = self.policy.async_progress.is_to_leave()
            && self.event_thread.is_some()
            && engine.is_some_and(E::may_hold_up_others);
        if !may {
            return false;
        }
        let arm = |inner: &mut Self| {
            let before = E::now();
            let can = inner.can_sleep_polling(&sleeper);
            can.then(|| (E::now(), before))
        };
        let Some((now, before)) = (0..HAND_OVER_TRIES).find_map(|_| arm(self)) else {
            return false;
        };
        self.take_over();
        let transfer = self
            .engine
            .as_ref()
            .map_or(Duration::ZERO, E::transfer_time);
        self.policy
            .async_progress
            .left(now, now.since(before), transfer);
        true
    }
}

impl<T: Send + 'static, E: Polled> Guard<'_, T, E> {
    /// Does what [`Inner::needs_attention`] has found necessary; returns what has to be done after
    /// the lock is released.
    #[cold]
    pub(crate) fn attend(&mut self) -> Option<Call<E::Sleeper>> {
        self.wake_parked();
        let inner = &mut **self;
        inner.reported = inner.engine.as_ref().map_or(0, E::ended);
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
        if inner.hand_over() {
            return inner.call(Call::HandOver);
        }
        let kick = inner.policy.async_progress.on(Event::Left);
        if !kick || inner.alarm {
            return None;
        }
        if inner.event_thread.is_some() {
            return inner.call(Call::Rouse);
        }
        inner.event_thread = crate::event_thread::spawn(core);
        if inner.event_thread.is_none() {
            inner.policy.async_progress.state = AsyncState::Off;
        }
        None
    }

    /// Ends the progress thread. Call before the engine is taken out.
    pub fn stop_event_thread(&mut self) {
        self.closing = true;
        let call = self.call(Call::Rouse);
        let Some(t) = self.event_thread.take() else {
            return;
        };
        if let Some(call) = call {
            call.now();
        }
        // A panic of the progress thread was printed by it; there is nothing left to tell.
        let _ = self.apart(|| t.join());
        self.policy.async_progress.state = AsyncState::Off;
    }
}
