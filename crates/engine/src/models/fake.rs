//! An engine that does nothing but wait: a request ends when the flag of its message is found.

use crate::collective::Watch;
use crate::events::EventQueue;
use crate::messages::ReqId;
use crate::polled::{Polled, Sleep};
use kw_base::counters::Counters;
use kw_base::events::Wanted;
use kw_base::sync::atomic::{AtomicBool, Ordering};
use kw_base::sync::{Arc, Condvar, Mutex};
use kw_base::{Peer, Tick};
use std::marker::PhantomData;
use std::time::Duration;

/// Requests that a model may have.
pub const MOST: usize = 3;

/// The world outside the rank, and observers.
#[derive(Debug, Default)]
pub struct World {
    inbox: [AtomicBool; MOST],
    handled: Mutex<[bool; MOST]>,
    changed: Condvar,
}

impl World {
    /// The message of request `n` arrives.
    pub fn put(&self, n: usize) {
        self.inbox[n].store(true, Ordering::Release);
    }

    /// Waits, outside MPI, until request `n` has ended.
    pub fn until_handled(&self, n: usize) {
        let mut handled = self.handled.lock().unwrap();
        while !handled[n] {
            handled = self.changed.wait(handled).unwrap();
        }
    }

    fn note(&self, n: usize) {
        self.handled.lock().unwrap()[n] = true;
        self.changed.notify_all();
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Request {
    #[default]
    None,
    Active,
    Ended,
}

/// The engine.
#[derive(Debug)]
pub struct Fake<P> {
    world: Arc<World>,
    requests: [Request; MOST],
    ended: u64,
    counters: Counters,
    event_queue: EventQueue,
    place: PhantomData<P>,
}

impl<P> Fake<P> {
    pub fn new(world: Arc<World>) -> Fake<P> {
        Fake {
            world,
            requests: Default::default(),
            ended: 0,
            counters: Counters::default(),
            event_queue: EventQueue::default(),
            place: PhantomData,
        }
    }

    /// Starts request `n`.
    pub fn start(&mut self, n: usize) {
        self.requests[n] = Request::Active;
    }

    fn look(&mut self, n: usize) -> bool {
        let came =
            self.requests[n] == Request::Active && self.world.inbox[n].load(Ordering::Acquire);
        if came {
            self.requests[n] = Request::Ended;
            self.ended += 1;
            self.world.note(n);
        }
        came
    }
}

impl<P: Sleep> Polled for Fake<P> {
    type Sleeper = P;

    /// Does nothing: a model does the same again when it is run again.
    fn now() -> Tick {
        Tick(0)
    }

    fn used() -> Duration {
        Duration::ZERO
    }

    fn progress(&mut self) -> bool {
        (0..MOST).fold(false, |moved, n| self.look(n) || moved)
    }

    fn progress_from(&mut self, _: Peer) -> bool {
        self.progress()
    }

    fn progress_before_sleep(&mut self) -> bool {
        self.progress()
    }

    fn progress_ready(&mut self) -> bool {
        self.progress()
    }

    fn progress_before_polling_asleep(&mut self) -> bool {
        self.progress()
    }

    fn make_ready_to_sleep(&mut self) {}

    fn sleep_for(&mut self, _: Watch) {}

    fn awake(&mut self) {}

    fn longest_sleep(&self, longest: Duration) -> Duration {
        longest
    }

    fn fetch_time(&self) -> Duration {
        Duration::ZERO
    }

    fn transfer_time(&self) -> Duration {
        Duration::ZERO
    }

    fn asked_in_vain(&mut self) {}

    fn doubt(&mut self, _: crate::wait::WaitOn<'_>) {}

    fn spread(&mut self, _: Tick) {}

    fn busy(&self) -> bool {
        self.requests.contains(&Request::Active)
    }

    fn may_hold_up_others(&self) -> bool {
        self.busy()
    }

    fn is_done(&self, req: ReqId) -> bool {
        self.requests[req.0.index as usize] == Request::Ended
    }

    fn reached(&self, _: Watch) -> bool {
        false
    }

    fn wants_user(&self) -> bool {
        false
    }

    fn is_unwatched(&self) -> bool {
        false
    }

    fn used_by_host_ranks(&self) -> Option<Duration> {
        None
    }

    fn sent(&self) -> u64 {
        0
    }

    fn arrivals(&self) -> u64 {
        self.ended
    }

    fn ended(&self) -> u64 {
        self.ended
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn set_wanted(&mut self, _: Wanted) {}

    fn notice_takeover(&mut self) {}

    fn event_queue(&self) -> &EventQueue {
        &self.event_queue
    }

    fn event_queue_mut(&mut self) -> &mut EventQueue {
        &mut self.event_queue
    }
}
