//! Events on their way to the tools that asked for them (MPI 5.0, 15.3.8).
//!
//! The owner of the lock records events ([`EventQueue`]); the thread that releases the lock, or the
//! progress thread, delivers them. The layer above knows the tools and calls them: it registered a
//! function for that, which runs without the lock, in one thread at a time. What a tool may do at
//! the place of delivery is its [`Safety`]; if the tools need more freedom than a place gives, the
//! events wait for a better one.

use crate::engine::Engine;
use crate::polled::Polled;
use crate::progress_lock::{Core, Inner, ProgressLock};
use kw_base::Tick;
use kw_base::events::{ALL, EventRecord, Wanted};
use kw_base::sync::Arc;
use std::collections::VecDeque;

/// Events that are kept; further ones are dropped, and counted.
const KEPT: usize = 4096;

/// Requirement of a place on the tools called there; also a tool's promise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Safety {
    /// Nothing: a thread of the program leaves MPI.
    #[default]
    None,
    /// No calls of MPI but those that read events: a thread of the program is about to sleep inside
    /// MPI.
    Restricted,
    /// Also that they may be called in any thread: the progress thread.
    ThreadSafe,
    /// Also in a signal handler. The library has no such place.
    SignalSafe,
}

/// Undelivered events, oldest first.
#[derive(Debug, Default)]
pub struct EventQueue {
    queue: VecDeque<(Tick, EventRecord)>,
    dropped: [u64; ALL.len()],
}

impl EventQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn push(&mut self, now: Tick, record: EventRecord) {
        if self.queue.len() < KEPT {
            self.queue.push_back((now, record));
        } else {
            self.dropped[record.event as usize] += 1;
        }
    }

    /// The oldest event.
    pub fn pop(&mut self) -> Option<(Tick, EventRecord)> {
        self.queue.pop_front()
    }

    /// How many events of a kind (position in [`ALL`]) were dropped since the last call.
    pub fn take_dropped(&mut self, event: usize) -> u64 {
        std::mem::take(&mut self.dropped[event])
    }
}

/// Calls the tools; `safety` is what the place requires of them. Runs without the lock.
pub type HandOut<T, E = Engine> = fn(&ProgressLock<T, E>, Safety);

/// The engine's knowledge of the tools.
#[derive(Debug)]
pub(crate) struct Tools<T, E: Polled> {
    hand_out: Option<HandOut<T, E>>,
    wanted: Wanted,
    /// The weakest promise of all tools.
    promise: Safety,
    /// A thread is delivering events.
    pub(crate) busy: bool,
}

impl<T, E: Polled> Default for Tools<T, E> {
    fn default() -> Self {
        Tools {
            hand_out: None,
            wanted: Wanted::default(),
            promise: Safety::default(),
            busy: false,
        }
    }
}

impl<T, E: Polled> Inner<T, E> {
    /// From now on these kinds of events are recorded, and delivered with `hand_out` to tools that
    /// all promise at least `promise`.
    pub fn set_tools(&mut self, wanted: Wanted, promise: Safety, hand_out: HandOut<T, E>) {
        self.tools.wanted = wanted;
        self.tools.promise = promise;
        self.tools.hand_out = Some(hand_out);
        self.ask_for_events();
    }

    pub(crate) fn ask_for_events(&mut self) {
        if let Some(e) = &mut self.engine {
            e.set_wanted(self.tools.wanted);
        }
    }

    /// Whether there are events to deliver in a place that requires this.
    pub(crate) fn has_news(&self, place: Safety) -> bool {
        let waiting = self
            .engine
            .as_ref()
            .is_some_and(|e| !e.event_queue().is_empty());
        waiting && !self.tools.busy && self.tools.promise >= place && self.tools.hand_out.is_some()
    }

    /// Recorded events; `None` without an engine.
    pub fn event_queue(&mut self) -> Option<&mut EventQueue> {
        self.engine.as_mut().map(E::event_queue_mut)
    }
}

/// Delivers recorded events. Call it without the lock.
pub(crate) fn deliver<T: Send + 'static, E: Polled>(core: &Arc<Core<T, E>>, place: Safety) {
    let mut inner = core.lock();
    if !inner.has_news(place) {
        return;
    }
    let Some(hand_out) = inner.tools.hand_out else {
        return;
    };
    inner.tools.busy = true;
    drop(inner);
    hand_out(&ProgressLock { core: core.clone() }, place);
    core.lock().tools.busy = false;
}
