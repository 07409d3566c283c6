//! Interface between the lock, the progress thread and the hand-over on one side, and the guarded
//! state and the place where threads sleep on the other: the [`Engine`] and its [`Sleeper`], or
//! their replacements in a model (`models`).

use crate::collective::Watch;
use crate::engine::Engine;
use crate::events::EventQueue;
use crate::messages::ReqId;
use crate::sleeper::Sleeper;
use crate::wait::WaitOn;
use kw_base::counters::{Counter, Counters};
use kw_base::events::{Event, Wanted};
use kw_base::{Peer, Tick};
use kw_waiting::constants::wait::SHORT_SLEEP;
use std::fmt::Debug;
use std::time::Duration;

/// How long a thread in MPI is about to sleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nap {
    /// An ordinary wait: waking up must be cheap.
    Short,
    /// The wait has lasted long: it also ends when a process of this host has ended.
    Long,
}

/// Place where the threads of a rank sleep; see [`Sleeper`], whose functions these are.
pub trait Sleep: Debug + Send + Sync + 'static {
    /// A thread in MPI announces that it is about to sleep.
    fn arm(&self, nap: Nap);
    /// The state for the progress thread's sleep while it polls.
    fn arm_for_polling(&self);
    /// Takes the announcement back.
    fn disarm(&self);
    /// A thread in MPI sleeps, armed for this nap; returns whether anything but the time ended
    /// that.
    fn sleep(&self, nap: Nap, timeout: Duration) -> bool;
    /// The progress thread is awake after this nap; with the lock.
    fn wake_up(&self, nap: Nap);
    /// The progress thread is awake after its sleep while it polls; with the lock.
    fn wake_up_polling(&self);
    /// Lets incoming data wake the sleeping progress thread, after `arm_for_polling`.
    fn hand_over(&self);
    /// Incoming data no longer wakes the progress thread; with the lock.
    fn take_back(&self);
    /// The progress thread sleeps, idle or watching.
    fn rest(&self, timeout: Option<Duration>);
    /// The progress thread sleeps while it polls, armed; like `sleep`.
    fn doze(&self, timeout: Duration) -> bool;
    /// Wakes the progress thread, wherever it sleeps.
    fn rouse(&self);
    /// Wakes the thread that is armed, if one is.
    fn ring(&self);
}

/// The guarded state, as far as waiting is concerned; see [`Engine`], whose functions most of these
/// are.
pub trait Polled: Debug + Send + 'static {
    /// Place where its threads sleep.
    type Sleeper: Sleep;
    /// The time.
    fn now() -> Tick;
    /// The time of a thread that waits: virtual where the network is.
    fn clock(&self) -> Tick {
        Self::now()
    }
    /// CPU time of the calling thread.
    fn used() -> Duration;
    /// Moves everything that can be moved; returns whether anything was.
    fn progress(&mut self) -> bool;
    /// The poll for frames of this peer only.
    fn progress_from(&mut self, peer: Peer) -> bool;
    /// The second drain of a thread in MPI that is about to sleep.
    fn progress_before_sleep(&mut self) -> bool;
    /// `progress` of the progress thread after a sleep.
    fn progress_ready(&mut self) -> bool;
    /// The second drain of the progress thread.
    fn progress_before_polling_asleep(&mut self) -> bool;
    /// A thread is about to sleep; before it is armed.
    fn make_ready_to_sleep(&mut self);
    /// Data on this shm region has to end the sleep.
    fn sleep_for(&mut self, watch: Watch);
    /// It is awake, or does not sleep after all.
    fn awake(&mut self);
    /// How long a thread that waits may sleep at most; `longest` if nothing makes it less.
    fn longest_sleep(&self, longest: Duration) -> Duration;
    /// How long a waiting thread polls beyond the usual time.
    fn fetch_time(&self) -> Duration;
    /// How long the network takes for the longest active transfer with another host.
    fn transfer_time(&self) -> Duration;
    /// The program waits without success.
    fn asked_in_vain(&mut self);
    /// It has waited for long: asks the ranks that this depends on whether it can still end.
    fn doubt(&mut self, on: WaitOn<'_>);
    /// Compares the placement of ranks if that is due, and may move this thread to another CPU.
    fn spread(&mut self, now: Tick);
    /// Whether anything is active that needs progress.
    fn busy(&self) -> bool;
    /// Whether others may wait for what this rank does about that.
    fn may_hold_up_others(&self) -> bool;
    /// Whether the request has ended.
    fn is_done(&self, req: ReqId) -> bool;
    /// Whether the condition on a shm region has come true.
    fn reached(&self, watch: Watch) -> bool;
    /// Whether a thread of the program must call a function of the user.
    fn wants_user(&self) -> bool;
    /// Whether a schedule waits for a shm region that no sleeper watches yet.
    fn is_unwatched(&self) -> bool;
    /// Total CPU time of the ranks of this host, if it can be read.
    fn used_by_host_ranks(&self) -> Option<Duration>;
    /// Messages that this rank has sent since the start.
    fn sent(&self) -> u64;
    /// Frames handled since the start.
    fn arrivals(&self) -> u64;
    /// Requests ended since the start.
    fn ended(&self) -> u64;
    /// The lock's own counters.
    fn counters(&mut self) -> &mut Counters;
    /// The kinds of events that are recorded from now on.
    fn set_wanted(&mut self, wanted: Wanted);
    /// Notes that the progress thread has taken over.
    fn notice_takeover(&mut self);
    /// Recorded events.
    fn event_queue(&self) -> &EventQueue;
    /// Recorded events, mutable.
    fn event_queue_mut(&mut self) -> &mut EventQueue;
}

impl Polled for Engine {
    type Sleeper = Sleeper;

    #[inline]
    fn now() -> Tick {
        kw_sys::clock::now()
    }

    #[inline]
    fn clock(&self) -> Tick {
        self.messages.paths.clock()
    }

    fn used() -> Duration {
        kw_sys::clock::of_this_thread()
    }

    #[inline(always)]
    fn progress(&mut self) -> bool {
        Engine::progress(self)
    }

    #[inline(always)]
    fn progress_from(&mut self, peer: Peer) -> bool {
        Engine::progress_from(self, peer)
    }

    fn progress_before_sleep(&mut self) -> bool {
        Engine::progress_before_sleep(self)
    }

    fn progress_ready(&mut self) -> bool {
        Engine::progress_ready(self)
    }

    fn progress_before_polling_asleep(&mut self) -> bool {
        Engine::progress_before_polling_asleep(self)
    }

    fn make_ready_to_sleep(&mut self) {
        self.parts.make_ready_to_sleep();
    }

    fn sleep_for(&mut self, watch: Watch) {
        self.parts.collectives.channels.sleep_for(watch);
    }

    #[inline]
    fn awake(&mut self) {
        self.parts.awake();
    }

    fn longest_sleep(&self, longest: Duration) -> Duration {
        let longest = match self.messages.paths.pending() {
            true => SHORT_SLEEP.min(longest),
            false => longest,
        };
        longest.min(self.messages.patience())
    }

    #[inline]
    fn fetch_time(&self) -> Duration {
        self.messages.fetch_time()
    }

    fn transfer_time(&self) -> Duration {
        self.messages.transfer_time()
    }

    #[inline(always)]
    fn asked_in_vain(&mut self) {
        Engine::asked_in_vain(self);
    }

    fn doubt(&mut self, on: WaitOn<'_>) {
        Engine::doubt(self, on);
    }

    #[inline(always)]
    fn spread(&mut self, now: Tick) {
        self.messages.spread(now);
    }

    #[inline(always)]
    fn busy(&self) -> bool {
        Engine::busy(self)
    }

    #[inline]
    fn may_hold_up_others(&self) -> bool {
        Engine::may_hold_up_others(self)
    }

    #[inline(always)]
    fn is_done(&self, req: ReqId) -> bool {
        self.messages.requests().is_done(req)
    }

    #[inline(always)]
    fn reached(&self, watch: Watch) -> bool {
        self.parts.collectives.channels.reached(watch)
    }

    #[inline(always)]
    fn wants_user(&self) -> bool {
        self.parts.collectives.running.wants_user()
    }

    #[inline(always)]
    fn is_unwatched(&self) -> bool {
        self.parts.collectives.running.is_unwatched()
    }

    fn used_by_host_ranks(&self) -> Option<Duration> {
        self.host_ranks.used(&self.job)
    }

    #[inline]
    fn sent(&self) -> u64 {
        let counters = &self.messages.machine.endpoint.out.counters;
        counters.get(Counter::EagerSent) + counters.get(Counter::RndvSent)
    }

    #[inline(always)]
    fn arrivals(&self) -> u64 {
        self.messages.arrivals
    }

    #[inline(always)]
    fn ended(&self) -> u64 {
        self.messages.requests().ended()
    }

    #[inline(always)]
    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn set_wanted(&mut self, wanted: Wanted) {
        self.messages.machine.endpoint.out.wanted = wanted;
    }

    fn notice_takeover(&mut self) {
        let active = self.messages.requests().active() as i64;
        tracing::trace!("the progress thread takes over, {active} request(s) are active");
        self.messages
            .record(Event::EventTakeover, [active, 0, 0, 0]);
    }

    #[inline(always)]
    fn event_queue(&self) -> &EventQueue {
        &self.messages.outlet.event_queue
    }

    fn event_queue_mut(&mut self) -> &mut EventQueue {
        &mut self.messages.outlet.event_queue
    }
}
