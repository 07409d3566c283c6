//! Carries out what [`kw_waiting::PollBackoff`] decides about unsuccessful test calls (MPI_Test,
//! MPI_Iprobe, ...): yields, sleeps on the doorbell, asks the ranks they depend on whether they have
//! left ([`crate::departed`]).
//!
//! Called with the lock held, in the thread of the program that polls.

use crate::engine::Engine;
use crate::hang::Lasting;
use crate::polled::Sleep;
use crate::progress_lock::{Guard, Inner, Role};
use crate::wait::{WaitOn, sleep_once};
use kw_base::Tick;
use kw_base::counters::Counter;
use kw_base::sync::thread;
use kw_sys::cpus;
use kw_waiting::Decision;
use std::time::Duration;

impl<T> Inner<T> {
    fn clock(&self) -> Tick {
        let engine = self.engine.as_ref();
        engine.map_or_else(kw_sys::clock::now, |e| e.messages.paths.clock())
    }

    #[inline]
    fn looked_in_vain(&mut self, moved: bool) -> bool {
        if let Some(engine) = &mut self.engine {
            engine.asked_in_vain();
        }
        self.policy.polls.note(self.entries, moved)
    }
}

/// Calls after which one that ends at once progresses. Built-in.
const CALLS_PER_PROGRESS: u64 = 16;

impl<T: Send + 'static> Guard<'_, T> {
    /// Progresses after [`CALLS_PER_PROGRESS`] calls, whatever calls they were. For calls that end at
    /// once, which a program may repeat until another rank changes its memory: the progress thread
    /// leaves such a rank alone, since it enters MPI all the time.
    #[inline]
    pub fn progress_now_and_then(&mut self) {
        let inner = &mut **self;
        if inner.entries.wrapping_sub(inner.progressed_at) < CALLS_PER_PROGRESS {
            return;
        }
        inner.progressed_at = inner.entries;
        if let Some(engine) = &mut inner.engine {
            engine.progress();
        }
    }

    /// Looks with `find`; progresses and looks again if it finds nothing; lets others run if it has
    /// found nothing many times. For calls that may return without a result. If that has gone on
    /// for long, `doubt` asks whether the result can still come ([`Engine::doubt`]), and ends it
    /// otherwise.
    #[inline]
    pub fn poll<R>(
        &mut self,
        mut find: impl FnMut(&mut Inner<T>) -> Option<R>,
        doubt: impl FnOnce(&mut Inner<T>),
    ) -> Option<R> {
        let inner = &mut **self;
        let found = find(inner);
        if found.is_some() {
            return found;
        }
        let engine = inner.engine.as_mut()?;
        let began = inner
            .policy
            .polls
            .is_due()
            .then(|| engine.messages.paths.clock());
        let moved = engine.progress();
        let found = find(inner);
        let of_many = found.is_none() && inner.looked_in_vain(moved);
        match began {
            Some(began) if of_many => self.back_off(began, &mut find, doubt),
            _ => found,
        }
    }

    /// One more unsuccessful poll of many, which began at `began`: yields, and polls again.
    #[cold]
    fn back_off<R>(
        &mut self,
        began: Tick,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
        doubt: impl FnOnce(&mut Inner<T>),
    ) -> Option<R> {
        let now = self.clock();
        let policy = &mut self.policy;
        let (oversubscribed, times) = (policy.oversubscribed, policy.times);
        let decision =
            policy
                .polls
                .found_nothing([began, now], oversubscribed, times, cpus::waited);
        match decision {
            Decision::Nothing => return None,
            Decision::CheckPeers => return self.check_peers(now, find, doubt),
            // Another thread of this rank polls, and sleeps if need be.
            _ if matches!(self.role, Role::Caller | Role::CallerAsleep) => {
                self.apart(thread::yield_now);
                let after = self.clock();
                self.policy.polls.gave_way(now, after, false);
                return find(self);
            }
            Decision::Yield | Decision::Sleep(_) => {}
        }
        self.role = Role::Caller;
        if let Some(s) = &self.sleeper {
            s.take_back();
        }
        let found = match decision {
            Decision::Sleep(most) => self.nap(most, find),
            _ => self.give_way(now, find),
        };
        let asleep = matches!(decision, Decision::Sleep(_));
        let after = self.clock();
        self.policy.polls.gave_way(now, after, asleep);
        self.role = Role::Free;
        self.pass_on();
        found
    }

    fn check_peers<R>(
        &mut self,
        now: Tick,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
        doubt: impl FnOnce(&mut Inner<T>),
    ) -> Option<R> {
        doubt(self);
        self.on_lasting(Lasting {
            on: WaitOn::default(),
            since: now,
            now,
            polls: true,
        });
        self.wake_waiters();
        find(self)
    }

    fn give_way<R>(
        &mut self,
        now: Tick,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
    ) -> Option<R> {
        let oversubscribed = self.policy.oversubscribed;
        self.apart(thread::yield_now);
        let engine = self.engine.as_mut()?;
        engine.counters.hit(Counter::PollsYielded);
        if oversubscribed {
            engine.messages.spread(now);
        }
        engine.progress();
        find(self)
    }

    fn nap<R>(
        &mut self,
        most: Duration,
        find: &mut impl FnMut(&mut Inner<T>) -> Option<R>,
    ) -> Option<R> {
        let mut found = None;
        self.engine.as_mut()?.counters.hit(Counter::PollsSlept);
        sleep_once(self, WaitOn::default(), most, &mut |s| {
            s.engine.as_mut().map(Engine::progress);
            found = find(s);
            found.is_some()
        });
        found
    }
}
