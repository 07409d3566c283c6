//! The lane: whoever owns it may touch the machines.

use crate::engine::{Engine, ReqId};
use kw_base::Peer;
use kw_base::sync::{Mutex, MutexGuard};

/// What the lane guards: the engine (once started) and what the layer above keeps beside it.
#[derive(Debug)]
pub struct Inner<T> {
    /// `None` before initialisation and after finalisation.
    pub engine: Option<Engine>,
    /// The upper layer's own state.
    pub above: T,
}

/// Ownership of the lane.
pub type Guard<'a, T> = MutexGuard<'a, Inner<T>>;

/// What a thread waits for, so that exactly it is woken.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitOn<'a> {
    /// Requests any of whose completion may end the wait; empty: wake me on anything that arrives.
    pub requests: &'a [ReqId],
    /// The only peer it can come from, if known.
    pub from: Option<Peer>,
}

/// The lock with a role.
#[derive(Debug)]
pub struct Lane<T> {
    inner: Mutex<Inner<T>>,
}

impl<T> Lane<T> {
    /// A lane with no engine yet.
    pub fn new(above: T) -> Lane<T> {
        Lane {
            inner: Mutex::new(Inner {
                engine: None,
                above,
            }),
        }
    }

    /// Takes the lane.
    pub fn lock(&self) -> Guard<'_, T> {
        // A poisoned lane means a panic of ours was caught at the C boundary; the machines are still consistent enough
        // to finalize or abort.
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Progresses, polling and then sleeping, until `ready` says so. The lane is let go while sleeping.
    pub fn wait<'a>(
        &'a self,
        guard: Guard<'a, T>,
        on: WaitOn<'_>,
        mut ready: impl FnMut(&mut Inner<T>) -> bool,
    ) -> Guard<'a, T> {
        let mut guard = guard;
        let _ = on;
        while !ready(&mut guard) {
            todo!()
        }
        guard
    }
}
