//! The lock, the progress thread and the hand-over between them in every interleaving: the code
//! itself, around an engine whose messages are flags ([`fake`]) and a place to sleep made of loom's
//! locks ([`sleeper`]).
//!
//! Checked properties: every thread ends, every message is handled, by some thread, and whenever
//! the lock is released a thread polls for the parked ones
//! ([`Inner::is_looked_after`](crate::progress_lock::Inner)). A lost wake-up is a deadlock of the
//! model, which loom reports, because no sleep here ends by time. Run with `make loom`.

mod fake;
mod sleeper;

use crate::messages::ReqId;
use crate::polled::{Polled, Sleep};
use crate::progress_lock::ProgressLock;
use crate::wait::WaitOn;
use fake::{Fake, World};
use kw_base::Key;
use kw_base::sync::{Arc, thread};
use kw_waiting::AsyncState;
use sleeper::ModelSleeper;

/// Only shared memory can bring something.
const MEMORY: bool = false;
/// Sockets can.
const SOCKETS: bool = true;

/// One rank: its lock, and what the world knows of it.
struct Rank<const SOCKETS: bool> {
    lock: ProgressLock<(), Fake<ModelSleeper<SOCKETS>>>,
    world: Arc<World>,
    place: Arc<ModelSleeper<SOCKETS>>,
}

impl<const SOCKETS: bool> Clone for Rank<SOCKETS> {
    fn clone(&self) -> Self {
        let core = self.lock.core.clone();
        Rank {
            lock: ProgressLock { core },
            world: self.world.clone(),
            place: self.place.clone(),
        }
    }
}

/// Names the `n`th request of the model.
fn request(n: usize) -> ReqId {
    ReqId(Key {
        index: n as u32,
        generation: 0,
    })
}

impl<const SOCKETS: bool> Rank<SOCKETS> {
    /// A rank with a progress thread that has nothing to do yet. `stays_away`: the program is known
    /// to stay away.
    fn new(stays_away: bool) -> Rank<SOCKETS> {
        let lock: ProgressLock<(), Fake<ModelSleeper<SOCKETS>>> = ProgressLock::new(());
        let (world, place) = (
            Arc::<World>::default(),
            Arc::<ModelSleeper<SOCKETS>>::default(),
        );
        let mut inner = lock.look();
        inner.engine = Some(Fake::new(world.clone()));
        inner.sleeper = Some(place.clone());
        inner.policy.async_progress.state = AsyncState::Idle;
        if stays_away {
            inner.policy.async_progress.trust();
        }
        drop(inner);
        Rank { lock, world, place }
    }

    /// A peer's message for request `n`; a timer goes off meanwhile.
    fn send(&self, n: usize) {
        self.place.alarm();
        self.world.put(n);
        self.place.ring();
    }

    /// A thread of the program starts these, and leaves MPI.
    fn start(&self, requests: impl IntoIterator<Item = usize>) {
        let mut guard = self.lock.lock();
        for n in requests {
            guard.engine.as_mut().unwrap().start(n);
        }
    }

    /// Polls once.
    fn test(&self) {
        let mut guard = self.lock.lock();
        guard.engine.as_mut().unwrap().progress();
    }

    /// Waits for request `n`.
    fn wait(&self, n: usize) {
        let on = WaitOn {
            requests: &[request(n)],
            ..WaitOn::default()
        };
        let done = |e: &Fake<ModelSleeper<SOCKETS>>| e.is_done(request(n));
        let guard = self.lock.lock();
        let guard = self
            .lock
            .wait(guard, on, |inner| inner.engine.as_ref().is_none_or(done));
        guard.leave();
    }

    /// MPI ends; everything must have ended before.
    fn stop(&self) {
        let mut guard = self.lock.lock();
        assert!(!guard.engine.as_ref().unwrap().busy(), "all was handled");
        assert!(guard.waiters.is_empty(), "no thread waits");
        guard.stop_event_thread();
        guard.engine = None;
    }
}

/// In every interleaving with at most this many preemptions.
fn model(preemptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(run);
}

/// A program of one thread, request 0 of which a peer's message ends.
fn with_peer<const SOCKETS: bool>(stays_away: bool, program: fn(&Rank<SOCKETS>)) {
    // With two, it goes unnoticed when the thread that arms the wake set forgets that the sleeper
    // may be up already.
    model(3, move || {
        let rank = Rank::<SOCKETS>::new(stays_away);
        let far = rank.clone();
        let peer = thread::spawn(move || far.send(0));
        program(&rank);
        peer.join().unwrap();
        rank.stop();
    });
}

/// Isend, compute, Wait: whichever thread handles the message, the wait ends.
fn wait_after_computing<const SOCKETS: bool>(rank: &Rank<SOCKETS>) {
    rank.start([0]);
    rank.wait(0);
}

/// Isend, Test, compute, Wait: the progress thread is preempted in the middle.
fn test_while_computing<const SOCKETS: bool>(rank: &Rank<SOCKETS>) {
    rank.start([0]);
    rank.test();
    rank.wait(0);
}

/// Isend, and nothing more: the progress thread handles the message.
fn compute<const SOCKETS: bool>(rank: &Rank<SOCKETS>) {
    rank.start([0]);
    rank.world.until_handled(0);
}

#[test]
fn loom_a_wait_after_computing_always_ends() {
    with_peer::<MEMORY>(false, wait_after_computing);
    with_peer::<SOCKETS>(false, wait_after_computing);
}

#[test]
fn loom_a_wait_after_a_hand_over_always_ends() {
    with_peer::<MEMORY>(true, wait_after_computing);
    with_peer::<SOCKETS>(true, wait_after_computing);
}

#[test]
fn loom_polling_is_handed_over_asleep_and_taken_back() {
    with_peer::<MEMORY>(true, test_while_computing);
    with_peer::<SOCKETS>(true, test_while_computing);
}

#[test]
fn loom_what_is_left_to_the_event_thread_is_done() {
    with_peer::<MEMORY>(false, compute);
    with_peer::<MEMORY>(true, compute);
    with_peer::<SOCKETS>(true, compute);
}

/// Waiting threads, one for each message, and the progress thread beside them.
fn parked<const SOCKETS: bool>(threads: usize, preemptions: usize) {
    model(preemptions, move || {
        let rank = Rank::<SOCKETS>::new(false);
        rank.start(0..threads);
        let waiting = |n| {
            let rank = rank.clone();
            thread::spawn(move || rank.wait(n))
        };
        let waiting: Vec<_> = (0..threads).map(waiting).collect();
        for n in 0..threads {
            rank.send(n);
        }
        for w in waiting {
            w.join().unwrap();
        }
        rank.stop();
    });
}

#[test]
fn loom_somebody_polls_for_two_threads() {
    parked::<MEMORY>(2, 2);
    parked::<SOCKETS>(2, 2);
}

#[test]
fn loom_somebody_polls_for_three_threads() {
    parked::<MEMORY>(3, 1);
}
