//! Runs collective schedules (`kw_coll`) on the engine.
//!
//! A blocking call drives its own [`Run`]: [`Collectives::drive`] goes as far as it can and returns
//! the condition for which it waits, so that the caller waits for that very transfer from that very
//! peer. A non-blocking call hands the run over ([`crate::Engine::launch`]); it becomes a request
//! like any other and continues in [`crate::Engine::progress`]. User functions are never called
//! from here: they are handed out ([`Drive::User`], [`Running::take_user_step`]) to a thread that
//! releases the lock first.
//!
//! The parts: [`Planner`] has the plans, [`Channels`] the shm regions, [`Running`] the runs in the
//! background, [`Patterns`] those of persistent requests; `drive` advances one run, whose messages
//! are given with each call. After a failure a run cancels what it can, and ends; active transfers
//! keep its temporaries until they have ended.

mod binding;
mod channel;
mod choosing;
mod drive;
mod failure;
mod memory;
mod pattern;
mod planner;
mod plans;
mod run;
mod running;
mod signature;
mod signature_check;
mod user;
mod view;

pub use channel::{ChannelId, Channels, Watch};
pub use failure::{Failure, MessageFailure, Outcome};
pub use memory::Memory;
pub use pattern::{Pattern, Patterns};
pub use planner::Planner;
pub use plans::{Caller, Named, PlansId};
pub use run::{CommView, Drive, Run};
pub use running::Running;
pub use signature_check::{Judge, SignatureCheck, cut};
pub use user::{Combining, UserFunction, UserStep};
pub(crate) use view::RunView;

use crate::engine::Engine;
use crate::messages::{Messages, ReqId};
use crate::part::Part;
use drive::{Driving, ended_on_shm_region};
use kw_base::counters::Counter;
use kw_base::sync::thread;
use kw_boot::Job;
use kw_coll::Coll;
use kw_sys::clock;
use kw_sys::nontemporal::NontemporalCopier;
use kw_waiting::placement::Calls;
use kw_waiting::{Exchange, Spin, Turns, YieldAfter};
use memory::Store;
use run::{Home, State};

/// The collectives of one rank. Their `messages` are given with each call: always the same ones.
#[derive(Debug)]
pub struct Collectives {
    /// This rank's side of the shm regions.
    pub channels: Channels,
    /// Its plans.
    pub planner: Planner,
    /// Plans of persistent requests.
    pub patterns: Patterns,
    /// Background runs.
    pub running: Running,
    store: Store,
    /// How this rank writes long data on its shm buffers.
    publisher: NontemporalCopier,
    /// More ranks than cores on this host: waiting means letting others run.
    oversubscribed: bool,
    /// Whether blocking calls let others run before they return, if that applies.
    yield_after: YieldAfter,
    /// Blocking calls that have ended since this rank last compared the placement of ranks.
    calls: Calls,
}

impl Collectives {
    fn of(job: &Job) -> Collectives {
        let oversubscribed = job.oversubscribed();
        Collectives {
            channels: Channels::default(),
            planner: Planner::default(),
            patterns: Patterns::default(),
            running: Running::default(),
            store: Store::default(),
            publisher: NontemporalCopier::new(oversubscribed),
            oversubscribed,
            yield_after: YieldAfter::default(),
            calls: Calls::default(),
        }
    }

    fn driving<'a>(&'a mut self, messages: &'a mut Messages) -> Driving<'a> {
        Driving {
            channels: &mut self.channels,
            store: &mut self.store,
            publisher: &mut self.publisher,
            messages,
        }
    }

    /// Continues a run as far as it can without waiting.
    pub fn drive(&mut self, messages: &mut Messages, run: &mut Run) -> Drive {
        self.driving(messages).drive(run)
    }

    /// Runs a run of ops alone to its end, in line, if that needs no proper wait. Returns whether
    /// the run has ended; leaves any other run alone.
    #[inline(always)]
    pub fn run_ops(&mut self, messages: &mut Messages, run: &mut Run) -> bool {
        if !run.is_ready() || !run.is_of_ops() {
            return false;
        }
        while let Some(watch) = self.channels.run(run) {
            if !self.linger(messages, watch) {
                return false;
            }
        }
        ended_on_shm_region(messages, run);
        true
    }

    /// Polls a shm region for as long as a blocking receive polls for its message, before the
    /// caller begins a proper wait: ranks that call a collective together wait for little more than
    /// a cache line.
    #[inline]
    pub fn linger(&mut self, messages: &mut Messages, watch: Watch) -> bool {
        if self.oversubscribed || watch.is_turn() {
            return false;
        }
        let mut spin = Spin::new(messages.at_once);
        while !self.channels.reached(watch) {
            if !spin.goes_on(clock::now) {
                return false;
            }
        }
        messages.count(Counter::WaitsSpun, 1);
        true
    }

    /// A blocking call begins to wait for others.
    pub fn begins_to_wait(&mut self, run: &Run) {
        if self.oversubscribed {
            self.yield_after.begins(exchange(run), clock::now);
        }
    }

    /// The call has waited, and its run has ended. Returns whether others are to run before it
    /// returns.
    pub fn has_waited(&mut self, run: &Run) -> bool {
        self.oversubscribed && self.yield_after.ends(exchange(run), clock::now)
    }

    /// Ends a run that can never come to its end. This rank's turn on the shm region passes on.
    #[cold]
    fn abandon(&mut self, messages: &mut Messages, run: &mut Run, failure: Failure) {
        run.fail(failure);
        self.driving(messages).give_up(run);
        if run.region_use.is_some() {
            self.channels.end(run);
        }
    }

    /// A rank for which the others always wait never polls without success; it notes its CPU here.
    #[inline]
    fn spread_now_and_then(&mut self, messages: &mut Messages, bytes: u64) {
        if self.oversubscribed && self.calls.ended(bytes) {
            messages.spread(clock::now());
        }
    }

    /// Takes back a run; returns its error, if any.
    fn put_back(&mut self, messages: &mut Messages, mut run: Box<Run>) -> Option<Failure> {
        let failure = run.failure.take();
        if failure.is_some() {
            self.leave(messages, &mut run);
        }
        run.reset(&mut self.store);
        if failure.is_none() || matches!(run.home, Home::Pattern(_)) {
            self.rest(run);
        }
        failure
    }

    /// A run has ended, and rests where it belongs until it is run again.
    #[inline(always)]
    fn rest(&mut self, mut run: Box<Run>) {
        run.state = State::Ready;
        match run.home {
            Home::Plans(plans) => self.planner.keep(plans, run),
            Home::Pattern(id) => self.patterns.rest(id, run),
            Home::Nowhere => {}
        }
    }

    /// Transfers of a failed run that are still in flight go on without it, and keep the memory
    /// they are in.
    #[cold]
    fn leave(&mut self, messages: &mut Messages, run: &mut Run) {
        if let Some(check) = run.signature_check.as_mut().and_then(|c| c.run()) {
            self.leave(messages, check);
        }
        let Some(work) = &mut run.work else { return };
        work.memory.block = None;
        let flights = work.flights.iter_mut();
        flights
            .filter_map(|f| f.req.take())
            .for_each(|req| messages.requests_mut().release(req));
    }

    /// Makes a run a request, which [`crate::Engine::progress`] drives from now on.
    pub(crate) fn launch(&mut self, messages: &mut Messages, run: Box<Run>) -> ReqId {
        let req = messages.requests_mut().open();
        self.running.add(req, run);
        self.advance(messages, self.running.len() - 1);
        messages.flush();
        req
    }

    /// Advances the background runs whose wait on a shm region is over. Returns whether there was
    /// one.
    #[cold]
    fn look_at_shm_regions(&mut self, messages: &mut Messages) -> bool {
        let mut any = false;
        let mut i = self.running.len();
        while i > 0 {
            i -= 1;
            if self.running.has_reached(i, &self.channels) {
                any = true;
                self.advance(messages, i);
            }
        }
        if any {
            messages.flush();
        }
        any
    }

    /// Advances all background runs.
    #[cold]
    pub(crate) fn advance_all(&mut self, messages: &mut Messages) {
        self.channels.turned = false;
        let mut i = self.running.len();
        while i > 0 {
            i -= 1;
            self.advance(messages, i);
        }
        messages.flush();
    }

    fn advance(&mut self, messages: &mut Messages, i: usize) {
        let Some((req, mut run)) = self.running.take_at(i) else {
            return;
        };
        match self.drive(messages, &mut run) {
            Drive::Done => {
                let failure = self.put_back(messages, run);
                self.end(messages, req, failure);
            }
            waits => self.running.wait(req, run, waits),
        }
    }

    /// A call of a user's function for a background run has returned.
    pub fn user_step_done(&mut self, messages: &mut Messages, req: ReqId) {
        if let Some(i) = self.running.user_done(req) {
            self.advance(messages, i);
            messages.flush();
        }
    }
}

impl Part for Collectives {
    fn new(job: &Job) -> Collectives {
        Collectives::of(job)
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        self.running.len() != 0
    }

    #[cold]
    fn advance(&mut self, messages: &mut Messages) {
        self.advance_all(messages);
    }

    #[cold]
    fn look(&mut self, messages: &mut Messages) -> bool {
        self.look_at_shm_regions(messages)
    }

    #[inline(always)]
    fn may_hold_up_others(&self) -> bool {
        self.running.len() != 0
    }

    fn is_held_by_send(&self) -> bool {
        self.running.is_held_by_send()
    }

    fn make_ready_to_sleep(&mut self) {
        self.running.watch(&mut self.channels);
    }

    #[inline(always)]
    fn awake(&mut self) {
        self.channels.awake();
    }
}

/// A participant of a collective may send, and so bring data that others wait for: partitioned
/// transfers and other collectives advance with it.
impl Engine {
    /// Makes a run a request, which [`Engine::progress`] drives from now on.
    pub fn launch(&mut self, run: Box<Run>) -> ReqId {
        let req = self.parts.collectives.launch(&mut self.messages, run);
        self.settle();
        req
    }

    /// Takes back a run that has ended; returns its error, if any.
    #[inline(always)]
    pub fn recycle(&mut self, run: Box<Run>) -> Option<Failure> {
        let (collectives, messages) = (&mut self.parts.collectives, &mut self.messages);
        collectives.spread_now_and_then(messages, run.bytes);
        if run.work.is_some() || run.failure.is_some() {
            return self.put_back(run);
        }
        collectives.rest(run);
        self.go_on_after_collective();
        None
    }

    #[inline(never)]
    fn put_back(&mut self, run: Box<Run>) -> Option<Failure> {
        let failure = self.parts.collectives.put_back(&mut self.messages, run);
        self.go_on_after_collective();
        failure
    }

    /// The next collective's turn on a shm region may have come.
    #[inline(always)]
    fn go_on_after_collective(&mut self) {
        if self.parts.collectives.channels.turned {
            self.parts.collectives.advance_all(&mut self.messages);
        }
        self.settle();
    }

    /// Ends a run that can never come to its end, because of this failure.
    #[cold]
    pub fn abandon(&mut self, mut run: Box<Run>, failure: Failure) -> Option<Failure> {
        let messages = &mut self.messages;
        self.parts.collectives.abandon(messages, &mut run, failure);
        self.recycle(run)
    }
}

/// The exchange between all ranks that this run makes.
fn exchange(run: &Run) -> Option<Exchange> {
    match run.coll? {
        Coll::Alltoall => Some(Exchange::Alltoall),
        Coll::Allgather => Some(Exchange::Allgather),
        _ => None,
    }
}

/// Lets others on this CPU do their part of an exchange.
#[cold]
pub fn let_others_go_on() {
    let mut turns = Turns::default();
    loop {
        let before = clock::now();
        thread::yield_now();
        if !turns.others_ran(clock::now().since(before)) {
            return;
        }
    }
}
