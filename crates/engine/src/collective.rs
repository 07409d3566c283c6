//! Runs collective schedules (`kw_coll`) on the engine.
//!
//! A blocking call drives its own [`Run`]: [`Engine::drive`] goes as far as it can and says what it waits for, so that the
//! caller waits for that very transfer from that very peer. A non-blocking call hands the run over with
//! [`Engine::launch`]; it becomes a request like any other and goes on from [`Engine::progress`]. User functions are
//! never called from here: they are handed out ([`Drive::User`], [`Engine::take_user_step`]) to a thread that lets go of
//! the lane first.
//!
//! After a failure a run takes back what it can, and ends; transfers that were begun keep its temporaries until they have
//! ended.

mod binding;
mod choosing;
mod desk;
mod drive;
mod failure;
mod inter;
mod memory;
mod pattern;
mod plans;
mod preface;
mod run;
mod said;
mod user;

pub use desk::{BoardId, Watch};
pub use failure::{Failure, MessageFailure, Outcome};
pub use memory::Memory;
pub use pattern::Pattern;
pub use plans::{Caller, Named, PlansId};
pub use preface::{Judge, Preface, cut};
pub use run::{Circle, Drive, Run};
pub use user::{Combining, UserFunction, UserStep};

use crate::engine::{Engine, ReqId};
use choosing::Choosing;
use desk::{Desk, Desks};
use kw_base::counters::Counter;
use kw_base::slab::Slab;
use kw_coll::executor::{Progress, Reservation};
use kw_coll::{Ask, Coll, Schedule};
use kw_sys::buf::Addr;
use kw_sys::nontemporal::NontemporalCopier;
use kw_types::comm::Group;
use memory::Store;
use pattern::Patterns;
use plans::{Call, Plans};
use run::{Home, State};

/// Most steps of a plan that is kept: a longer one takes longer to run than to lay out.
const KEPT_STEPS: usize = 48;
/// Bytes of a call after which a rank that shares its core looks how ranks lie on the processors; of shorter calls, after one of so many.
const LONG_CALL: u64 = 16 << 10;
const SHORT_CALLS: u32 = 16;
/// Looks at a board before a wait.
const LOOKS: u32 = 100;

/// The schedules that run on one engine, and what they share.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    choosing: Option<Choosing>,
    /// More ranks than cores on this host: waiting means letting others run.
    crowded: bool,
    /// Blocking calls that have ended since this rank looked how ranks lie on the processors.
    ended: u32,
    running: Vec<(ReqId, Box<Run>)>,
    /// By communicator: the plans that may serve again, all of whose steps are the executor's.
    plans: Slab<Plans>,
    /// Those of all communicators that have steps for the engine.
    mixed: Plans,
    patterns: Patterns,
    store: Store,
    pub(crate) desks: Desks,
    /// How this rank writes long data on its shelves.
    publisher: NontemporalCopier,
    /// Some run has begun to wait on a board since a thread last made ready to sleep.
    pub(crate) unwatched: bool,
    /// What went wrong with requests that have ended and that nobody has taken.
    failed: Vec<(ReqId, Failure)>,
    /// A wait on a board for a rank that has left, and why it never ends.
    pub(crate) departed: Option<(Watch, String)>,
}

impl Collectives {
    /// A run of a plan begins: it has the next place on the board, if it uses one.
    #[inline(always)]
    fn enter_board(&mut self, run: &mut Run) {
        let place = match &run.berth {
            Some(berth) => self.desks.reserve(berth),
            None => Reservation::NONE,
        };
        run.begin(place);
    }

    /// A run has ended, and waits where it belongs until it is run again.
    #[inline(always)]
    fn rest(&mut self, mut run: Box<Run>) {
        run.state = State::Ready;
        match run.home {
            Home::Plans(_) if run.work.is_some() => self.mixed.keep(run),
            Home::Plans(plans) => {
                if let Some(plans) = self.plans.get_mut(plans.0) {
                    plans.keep(run);
                }
            }
            Home::Pattern(id) => self.patterns.rest(id, run),
            Home::Nowhere => {}
        }
    }

    /// Whether a schedule that nobody drives can only go on when a send has ended.
    pub(crate) fn is_held_by_send(&self) -> bool {
        let held = |r: &Run| matches!(r.state, State::HeldBySend);
        self.running.iter().any(|(_, run)| held(run))
    }

    /// Schedules that have not ended and that nobody drives.
    #[inline]
    pub(crate) fn active(&self) -> usize {
        self.running.len()
    }

    /// What a schedule that nobody drives waits for: on a board, or for transfers that have not been taken.
    #[cold]
    pub(crate) fn waits_of(&self, req: ReqId) -> Option<(Option<Watch>, Vec<ReqId>)> {
        let (_, run) = self.running.iter().find(|r| r.0 == req)?;
        let flights = run.flights().iter().filter_map(|f| f.req).collect();
        Some((run.waits_on(), flights))
    }

    #[cold]
    pub(crate) fn take_running(&mut self, req: ReqId) -> Option<Box<Run>> {
        let at = self.running.iter().position(|r| r.0 == req)?;
        Some(self.running.swap_remove(at).1)
    }

    /// A thread of this rank is about to sleep: whatever runs wait for on boards wakes it.
    pub(crate) fn make_ready_to_sleep(&mut self) {
        self.unwatched = false;
        for (_, run) in &self.running {
            if let Some(watch) = run.waits_on() {
                self.desks.sleep_for(watch);
            }
        }
    }
}

impl Engine {
    /// Takes a board for a new communicator, whose ranks on this host then [`Engine::open_board`] it by this number. `None`:
    /// there is none.
    pub fn claim_board(&mut self) -> Option<u32> {
        self.paths.boards()?.claim()
    }

    /// Likewise for something short-lived: only while at least half of the boards are free.
    pub fn claim_spare_board(&mut self) -> Option<u32> {
        self.paths.boards()?.claim_spare()
    }

    /// Gives back a board that nobody has opened.
    pub fn unclaim_board(&mut self, number: u32) {
        if let Some(boards) = self.paths.boards() {
            boards.unclaim(number);
        }
    }

    /// This rank's side of a board that was claimed for a communicator of these processes.
    pub fn open_board(&mut self, number: u32, members: &Group) -> Option<BoardId> {
        let board = self.paths.boards()?.open(number);
        let places = members.iter().map(|peer| self.paths.place(peer));
        Some(self.collectives.desks.add(Desk::new(board, places)))
    }

    /// The communicator is gone; its board goes with the last collective on it.
    pub fn leave_board(&mut self, board: BoardId) {
        self.collectives.desks.leave(board);
    }

    /// A new communicator's plans.
    pub fn open_plans(&mut self) -> PlansId {
        PlansId(self.collectives.plans.insert(Plans::default()))
    }

    /// The communicator is gone. Plans that run go when they have ended.
    pub fn close_plans(&mut self, id: PlansId) {
        self.collectives.plans.remove(id.0);
    }

    /// The plan of a blocking call in these words, with its buffers, if there has been such a call. `counts` says whether a list
    /// of counts is the caller's. The tag is still that of the call before ([`Run::set_tag`]).
    #[inline(always)]
    pub fn plan_named(
        &mut self,
        plans: PlansId,
        named: Named,
        buffers: [Addr; 2],
        counts: impl Fn(&[u64]) -> bool,
    ) -> Option<Box<Run>> {
        let collectives = &mut self.collectives;
        let plans = collectives.plans.get_mut(plans.0)?;
        let mut run = plans.named(named, counts)?;
        run.bases = buffers;
        collectives.enter_board(&mut run);
        Some(run)
    }

    /// The plan of an earlier call that asked for the same, with buffers of this sort, if it is still there; otherwise
    /// [`Engine::plan`] it. The caller gives it the buffers ([`Run::take_buffers`]).
    #[inline]
    pub fn plan_again(
        &mut self,
        caller: &Caller,
        (coll, bytes, unit): (Coll, u64, Option<u64>),
        ask: &Ask,
        buffers: &[Memory; 2],
    ) -> Option<Box<Run>> {
        let (call, counts) = Call::of(coll, bytes, unit, ask, buffers)?;
        let collectives = &mut self.collectives;
        let plans = collectives.plans.get_mut(caller.plans?.0)?;
        let found = plans.of(caller, &call, counts);
        let mut run = found.or_else(|| collectives.mixed.of(caller, &call, counts))?;
        run.set_tag(caller.tag);
        collectives.enter_board(&mut run);
        Some(run)
    }

    /// Chooses an algorithm and lays out this rank's part. `bytes` as `table.txt` explains; `unit`: bytes of a unit of the
    /// shelves, where a board may be used; `buffers`: the first two. The caller gives it the buffers ([`Run::take_buffers`]).
    #[inline]
    pub fn plan(
        &mut self,
        circle: Circle,
        (coll, bytes, unit): (Coll, u64, Option<u64>),
        ask: &Ask,
        buffers: &[Memory; 2],
    ) -> Box<Run> {
        if self.collectives.choosing.is_none() {
            self.open_collectives();
        }
        let collectives = &mut self.collectives;
        let mut run = Box::<Run>::default();
        let mut schedule = Schedule::default();
        let board = circle.board.zip(unit);
        if let Some(choosing) = &collectives.choosing {
            let mut ask = Ask {
                bytes,
                chooser: Some(choosing.chooser()),
                board: board.and_then(|(id, unit)| collectives.desks.view(id, unit)),
                ..*ask
            };
            let rows = circle.rows.as_deref();
            let (algorithm, fan) = choosing.choose(rows, coll, bytes, &ask);
            ask.fan = fan;
            (algorithm.emit)(&ask, &mut schedule);
        }
        run.berth = board.and_then(|(id, unit)| collectives.desks.berth(id, &schedule, unit));
        let mut signature = 0;
        if let Some((call, counts)) = Call::of(coll, bytes, unit, ask, buffers) {
            signature = call.said().0;
            run.call = Some(Box::new(call));
            run.counts = counts.into();
            if let Some(plans) = circle.plans.filter(|_| schedule.steps.len() <= KEPT_STEPS) {
                run.home = Home::Plans(plans);
            }
        }
        run.work().schedule = schedule;
        (run.circle, run.bytes) = (Some(circle), bytes);
        run.progress = Progress::new(Reservation::NONE, signature);
        collectives.enter_board(&mut run);
        run
    }

    /// Whether the ranks of the job are on one host and more than its processors, as all know it alike.
    pub fn shares_cores(&self) -> bool {
        self.agreed().site().shared
    }

    #[cold]
    fn open_collectives(&mut self) {
        self.collectives.choosing = Some(Choosing::of(self.agreed()));
        self.collectives.crowded = self.job().crowded();
        self.collectives.publisher = NontemporalCopier::new(self.collectives.crowded);
    }

    /// Ends a run that can never come to its end. This rank's turn on the board passes on.
    #[cold]
    pub fn abandon(&mut self, mut run: Box<Run>, failure: Failure) -> Option<Failure> {
        run.fail(failure);
        self.give_up(&mut run);
        if run.berth.is_some() {
            self.collectives.desks.end(&mut run);
        }
        self.recycle(run)
    }

    /// Looks at a board for a moment, before the caller makes a proper wait of it: ranks that call a collective together wait
    /// for little more than a cache line.
    #[inline]
    pub fn linger(&mut self, watch: Watch) -> bool {
        if self.collectives.crowded || watch.is_turn() {
            return false;
        }
        let came = (0..LOOKS).any(|_| self.reached(watch));
        if came {
            self.counters.hit(Counter::WaitsSpun);
        }
        came
    }

    /// Whether what a schedule waits for on a board has come.
    #[inline]
    pub fn reached(&self, watch: Watch) -> bool {
        self.collectives.desks.reached(watch)
    }

    /// Transfers of a failed run that are still under way go on without it, and keep the memory they are in.
    #[cold]
    fn leave(&mut self, run: &mut Run) -> Option<Failure> {
        if let Some(work) = &mut run.work {
            work.memory.block = None;
            let flights = work.flights.iter_mut();
            flights
                .filter_map(|f| f.req.take())
                .for_each(|req| self.release(req));
        }
        run.failure.take()
    }

    /// Takes back a run that has ended; says what went wrong, if anything did.
    #[inline]
    pub fn recycle(&mut self, run: Box<Run>) -> Option<Failure> {
        self.spread_now_and_then(run.bytes);
        let failure = self.put_back(run);
        if self.collectives.desks.turned {
            self.advance_collectives();
        }
        self.settle();
        failure
    }

    /// A rank for which the others always wait never looks in vain; it notes here where it runs.
    #[inline]
    fn spread_now_and_then(&mut self, bytes: u64) {
        if !self.collectives.crowded {
            return;
        }
        self.collectives.ended += 1;
        if self.collectives.ended >= SHORT_CALLS || bytes >= LONG_CALL {
            self.collectives.ended = 0;
            self.spread(kw_sys::clock::now());
        }
    }

    /// Takes back a run; says what went wrong, if anything did.
    #[inline(always)]
    fn put_back(&mut self, run: Box<Run>) -> Option<Failure> {
        if run.work.is_some() || run.failure.is_some() {
            return self.clear_and_put_back(run);
        }
        self.collectives.rest(run);
        None
    }

    #[inline(never)]
    fn clear_and_put_back(&mut self, mut run: Box<Run>) -> Option<Failure> {
        let failure = match run.failure {
            None => None,
            Some(_) => self.leave(&mut run),
        };
        run.reset(&mut self.collectives.store);
        if failure.is_none() || matches!(run.home, Home::Pattern(_)) {
            self.collectives.rest(run);
        }
        failure
    }

    /// Makes a run a request, which [`Engine::progress`] drives from now on.
    pub fn launch(&mut self, run: Box<Run>) -> ReqId {
        let req = ReqId(self.machine.requests.open());
        self.collectives.running.push((req, run));
        self.advance(self.collectives.running.len() - 1);
        self.flush();
        self.settle();
        req
    }

    /// Goes on with the runs that nobody drives and whose wait on a board is over. Says whether there was one.
    #[cold]
    pub(crate) fn look_at_boards(&mut self) -> bool {
        let mut any = false;
        let mut i = self.collectives.running.len();
        while i > 0 {
            i -= 1;
            let waits = self.collectives.running[i].1.waits_on();
            if waits.is_some_and(|w| self.reached(w)) {
                any = true;
                self.advance(i);
            }
        }
        if any {
            self.flush();
        }
        any
    }

    /// Goes on with all runs that nobody drives.
    #[cold]
    pub(crate) fn advance_collectives(&mut self) {
        self.collectives.desks.turned = false;
        let mut i = self.collectives.running.len();
        while i > 0 {
            i -= 1;
            self.advance(i);
        }
        self.flush();
    }

    fn advance(&mut self, i: usize) {
        let state = self.collectives.running[i].1.state;
        if matches!(state, State::WantsUser | State::InUser) {
            return;
        }
        // Put back at the end: whoever walks the list does so from there.
        let (req, mut run) = self.collectives.running.swap_remove(i);
        let drive = self.drive(&mut run);
        if let Drive::Done = drive {
            let failure = self.put_back(run);
            self.end_collective(req, failure);
            return;
        }
        run.state = match drive {
            Drive::User => State::WantsUser,
            Drive::Board(watch) => State::OnBoard(watch),
            Drive::Waiting(req, _) if run.goes_on_after_send(req) => State::HeldBySend,
            Drive::Waiting(..) | Drive::Done => State::Ready,
        };
        self.collectives.unwatched |= run.waits_on().is_some();
        self.collectives.running.push((req, run));
    }

    /// Whether some run waits for a call of a user's function.
    #[inline]
    pub fn wants_user(&self) -> bool {
        self.collectives.active() != 0
            && self
                .collectives
                .running
                .iter()
                .any(|(_, r)| matches!(r.state, State::WantsUser))
    }

    /// The call has returned.
    pub fn user_step_done(&mut self, req: ReqId) {
        let Some(i) = self.collectives.running.iter().position(|r| r.0 == req) else {
            return;
        };
        self.collectives.running[i].1.user_done();
        self.advance(i);
        self.flush();
    }
}
