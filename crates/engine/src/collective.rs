//! Runs collective schedules (`kw_coll`) on the engine.
//!
//! A blocking call drives its own [`Run`]: [`Engine::drive`] goes as far as it can and says what it waits for, so that the
//! caller waits for that very transfer from that very peer. A non-blocking call hands the run over with
//! [`Engine::launch`]; it becomes a request like any other and goes on from [`Engine::progress`]. User functions are
//! never called from here: they are handed out ([`Drive::User`], [`Engine::take_user_step`]) to a thread that lets go of
//! the lane first.
//!
//! After a failure a run takes back what it can, and ends; its temporaries stay until the transfers that were begun have
//! ended (`leaving`).

mod choosing;
mod desk;
mod inter;
mod kept;
mod memory;
mod pattern;
mod preface;
mod ring;
mod run;
mod said;

pub use desk::{BoardId, Like, Short, Watch};
pub use kept::Caller;
pub use memory::Memory;
pub use pattern::Pattern;
pub use preface::{Judge, Preface, cut};
pub use run::{Circle, Combining, Drive, Run, UserFunction, UserStep};

use crate::engine::{Engine, Failure, Outcome, ReqId, SendMode, Started, Want};
use choosing::Choosing;
use desk::{Desk, Desks};
use kept::Call;
use kw_base::counters::Counter;
use kw_coll::Shelf;
use kw_coll::{Ask, Coll, SHELVES, Slice, Step, TEMPS};
use kw_sys::buf::Buf;
use kw_sys::nontemporal::{self, NontemporalCopier};
use kw_types::comm::Group;
use memory::Store;
use run::Flight;

/// Schedules that are kept for the next calls.
const KEPT: usize = 16;
/// Most steps of a kept schedule: a longer one takes longer to run than to lay out.
const KEPT_STEPS: usize = 64;
/// Runs whose memory is kept.
const SPARE: usize = 4;
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
    /// Runs that have ended and whose schedules may serve again, the last one last.
    kept: Vec<Box<Run>>,
    spare: Vec<Box<Run>>,
    store: Store,
    pub(crate) desks: Desks,
    /// How this rank writes long data on its shelves.
    publisher: NontemporalCopier,
    /// Some run has begun to wait on a board since a thread last made ready to sleep.
    pub(crate) unwatched: bool,
    /// A wait on a board for a rank that has left, and why it never ends.
    pub(crate) departed: Option<(Watch, String)>,
    /// What failed runs have left: transfers that could not be taken back, and the memory they are in.
    leaving: Vec<(Vec<ReqId>, Buf)>,
}

impl Collectives {
    /// The next place on the board, for a run whose schedule uses it.
    #[inline]
    fn take_berth(&mut self, run: &mut Run, unit: Option<u64>) {
        let shelf = run.schedule.shelf;
        let board = run.circle.as_ref().and_then(|c| c.board);
        if let Some((board, unit)) = board.zip(unit).filter(|_| shelf != Shelf::None) {
            let lines_only = run.lines_only;
            run.berth = self.desks.berth(board, &run.schedule, lines_only, unit);
            if let (Some(berth), Some(call)) = (&mut run.berth, &run.call) {
                berth.said = call.said();
            }
        }
    }

    /// Keeps a schedule, in the place of that whose last use was longest ago.
    #[inline]
    fn keep(&mut self, mut run: Box<Run>) {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        run.trim(KEPT_STEPS);
        self.kept.push(run);
    }

    #[cold]
    fn spare(&mut self, mut run: Box<Run>) {
        if self.spare.len() < SPARE {
            run.empty();
            self.spare.push(run);
        }
    }

    /// Whether a schedule that nobody drives can only go on when a send has ended.
    pub(crate) fn is_held_by_send(&self) -> bool {
        self.running.iter().any(|(_, run)| run.held_by_send)
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
        let flights = run.flights.iter().filter_map(|f| f.req).collect();
        Some((run.waits, flights))
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
            if let Some(watch) = run.waits {
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

    /// The schedule of an earlier call that asked for the same, if it is still there; otherwise [`Engine::plan`] it.
    #[inline]
    pub fn plan_again(
        &mut self,
        caller: &Caller,
        coll: Coll,
        bytes: u64,
        unit: Option<u64>,
        ask: &Ask,
    ) -> Option<Box<Run>> {
        let (call, counts) = Call::of(coll, bytes, unit, ask)?;
        let collectives = &mut self.collectives;
        let mut kept = collectives.kept.iter();
        let at = kept.rposition(|r| r.suits(caller, &call, counts))?;
        let mut run = collectives.kept.remove(at);
        run.circle.as_mut()?.tag = caller.tag;
        collectives.take_berth(&mut run, unit);
        Some(run)
    }

    /// Chooses an algorithm and lays out this rank's part. `bytes` as `table.txt` explains; `unit`: bytes of a unit of the
    /// shelves, where a board may be used. The caller adds its buffers.
    #[inline]
    pub fn plan(
        &mut self,
        circle: Circle,
        coll: Coll,
        bytes: u64,
        unit: Option<u64>,
        ask: &Ask,
    ) -> Box<Run> {
        if self.collectives.choosing.is_none() {
            self.open_collectives();
        }
        if !self.collectives.leaving.is_empty() {
            self.reap();
        }
        let collectives = &mut self.collectives;
        let mut run = collectives.spare.pop().unwrap_or_default();
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
            (algorithm.emit)(&ask, &mut run.schedule);
        }
        run.lines_only = unit.is_some_and(|unit| run.schedule.touches_lines_only(unit));
        (run.circle, run.bytes) = (Some(circle), bytes);
        if let Some((call, counts)) = Call::of(coll, bytes, unit, ask) {
            run.call = Some(call);
            run.counts.clear();
            run.counts.extend_from_slice(counts);
        }
        collectives.take_berth(&mut run, unit);
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

    /// Goes on with a run as far as it can without waiting.
    #[inline]
    pub fn drive(&mut self, run: &mut Run) -> Drive {
        if run.preface.is_some()
            && let Some(waits) = self.compare(run)
        {
            return waits;
        }
        if let Some(berth) = &mut run.berth
            && let Some(watch) = self.collectives.desks.open(berth)
        {
            return Drive::Board(watch);
        }
        let element = run.element.as_ref().unwrap_or(&Memory::NONE);
        run.memory
            .lay_out(&run.schedule, element, &mut self.collectives.store);
        while !run.has_failed() {
            let Some(&step) = run.schedule.steps.get(run.pc) else {
                match self.fence(run) {
                    Some((req, peer)) => return Drive::Waiting(req, peer),
                    None if !run.has_failed() => {
                        self.end_on_board(run);
                        return Drive::Done;
                    }
                    None => break,
                }
            };
            match step {
                Step::Send { to, what } => self.start_send(run, to, what),
                Step::Recv { from, into } => self.start_recv(run, from, into),
                Step::Copy { from, to } => {
                    let Collectives {
                        desks, publisher, ..
                    } = &mut self.collectives;
                    if combine(run, from, to, desks) {
                        run.pc += 1;
                    } else {
                        copy(run, from, to, desks, publisher)
                    }
                }
                Step::Await(slot) => {
                    if let Some((req, peer)) = self.landed(run, slot as usize) {
                        return Drive::Waiting(req, peer);
                    }
                }
                Step::Fence => {
                    if let Some((req, peer)) = self.fence(run) {
                        return Drive::Waiting(req, peer);
                    }
                }
                Step::Raise(_) | Step::Watch { .. } | Step::WatchAll(_) => {
                    if let Some(watch) = self.on_board(run, step) {
                        return Drive::Board(watch);
                    }
                }
                Step::Reduce { left, right } => {
                    if let Some(step) = reduce(run, left, right, &self.collectives.desks) {
                        return Drive::User(step);
                    }
                }
            }
            run.pc += 1;
        }
        self.give_up(run);
        Drive::Done
    }

    /// A step on the board; what it waits for.
    #[inline]
    fn on_board(&mut self, run: &mut Run, step: Step) -> Option<Watch> {
        let berth = run.berth.as_ref();
        let found = berth.and_then(|b| Some((b, self.collectives.desks.get(b.desk)?)));
        let Some((berth, desk)) = found else {
            run.fail(Failure::Other("this rank has no board".into()));
            return None;
        };
        let waits = match step {
            Step::Raise(stage) => {
                desk.raise(berth, stage);
                run.raised = true;
                None
            }
            Step::Watch { rank, stage } => desk.watch(berth, rank, stage),
            Step::WatchAll(stage) => desk.watch_all(berth, &mut run.come, stage),
            _ => None,
        };
        if desk.odd.is_some() {
            self.contradicted(run);
        }
        waits
    }

    /// Another rank of the board is in another call than this one. Nobody who watches this rank shall wait for stages that it does not come
    /// to; where messages are exchanged, too, it goes on, because others wait for those.
    #[cold]
    fn contradicted(&mut self, run: &mut Run) {
        let (Some(berth), Some(circle)) = (&run.berth, &run.circle) else {
            return;
        };
        let Some(desk) = self.collectives.desks.get(berth.desk) else {
            return;
        };
        let Some((other, theirs)) = desk.odd.take() else {
            return;
        };
        let failure = berth.said.failure(circle.rank, other, theirs);
        if run.schedule.slots == 0 {
            desk.raise(berth, desk::LAST_STAGE);
            run.raised = true;
            run.pc = run.schedule.steps.len();
        }
        run.fail(failure);
    }

    /// Ends a run that can never come to its end. This rank's turn on the board passes on.
    #[cold]
    pub fn abandon(&mut self, mut run: Box<Run>, failure: Failure) -> Option<Failure> {
        run.fail(failure);
        self.give_up(&mut run);
        if let Some(berth) = &run.berth {
            self.collectives.desks.end(berth, run.raised);
        }
        self.recycle(run)
    }

    #[inline]
    fn end_on_board(&mut self, run: &mut Run) {
        if let Some(berth) = &run.berth {
            self.collectives.desks.end(berth, run.raised);
            self.counters.hit(Counter::BoardCollectives);
            self.counters.add(Counter::BoardBytes, run.bytes);
        }
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

    #[inline]
    fn start_send(&mut self, run: &mut Run, to: u32, what: Slice) {
        let buf = run.buf(what, &self.collectives.desks);
        let Some(c) = &run.circle else { return };
        let peer = c.members.peer(to);
        let mode = match run.schedule.fetched {
            true => SendMode::Fetched,
            false => SendMode::Standard,
        };
        let started = self.send(peer, c.context, c.rank, c.tag, mode, &buf);
        let req = match started {
            Started::Done => None,
            Started::Request(id) => Some(id),
        };
        run.flights.push(Flight {
            req,
            peer,
            expects: None,
        });
    }

    #[inline]
    fn start_recv(&mut self, run: &mut Run, from: u32, into: Slice) {
        let buf = run.buf(into, &self.collectives.desks);
        let Some(c) = &run.circle else { return };
        let peer = c.members.peer(from);
        let want = Want {
            context: c.context,
            source: Some((from, peer)),
            tag: Some(c.tag),
        };
        let req = Some(match run.schedule.fetched {
            true => self.recv_fetched(want, peer, &buf),
            false => self.recv(want, &buf),
        });
        run.flights.push(Flight {
            req,
            peer,
            expects: Some((from, buf.len())),
        });
    }

    /// What a slot still waits for; takes its outcome when it has ended.
    #[inline]
    fn landed(&mut self, run: &mut Run, slot: usize) -> Option<(ReqId, kw_base::Peer)> {
        let flight = &mut run.flights[slot];
        let req = flight.req?;
        if !self.is_done(req) {
            return Some((req, flight.peer));
        }
        flight.req = None;
        let outcome = self.take(req)?;
        let came = match (outcome.failure, flight.expects) {
            (Some(Failure::Truncated { came, .. }), Some(expects)) => Some((expects, came)),
            (Some(failure), _) => {
                run.fail(failure);
                None
            }
            (None, expects) => expects.map(|e| (e, outcome.len)),
        };
        if let Some(((from, want), came)) = came
            && came != want
        {
            let failure = mismatch(run, from, came, want);
            run.fail(failure);
        }
        None
    }

    #[inline]
    fn fence(&mut self, run: &mut Run) -> Option<(ReqId, kw_base::Peer)> {
        while run.landed < run.flights.len() && !run.has_failed() {
            if let Some(left) = self.landed(run, run.landed) {
                return Some(left);
            }
            run.landed += 1;
        }
        None
    }

    /// After a failure: takes back what has not begun.
    #[cold]
    fn give_up(&mut self, run: &mut Run) {
        for flight in &mut run.flights {
            let Some(req) = flight.req else { continue };
            self.cancel(req);
            if self.is_done(req) {
                self.take(req);
                flight.req = None;
            }
        }
    }

    /// Transfers of a failed run that are still under way go on without it.
    #[cold]
    fn leave(&mut self, run: &mut Run) {
        let going: Vec<ReqId> = run
            .flights
            .iter_mut()
            .filter_map(|f| f.req.take())
            .collect();
        match run.memory.block.take() {
            Some(block) => self.collectives.leaving.push((going, block)),
            None => going.into_iter().for_each(|req| self.release(req)),
        }
        self.reap();
    }

    /// Gives back the memory of failed runs whose transfers have ended.
    #[cold]
    fn reap(&mut self) {
        for (mut going, block) in std::mem::take(&mut self.collectives.leaving) {
            going.retain(|&req| {
                let done = self.is_done(req);
                if done {
                    self.take(req);
                }
                !done
            });
            if going.is_empty() {
                self.collectives.store.give(block);
            } else {
                self.collectives.leaving.push((going, block));
            }
        }
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

    #[inline]
    fn put_back(&mut self, mut run: Box<Run>) -> Option<Failure> {
        let failure = run.failure.take();
        if failure.is_some() {
            self.leave(&mut run);
        }
        run.memory.clear(&mut self.collectives.store);
        run.reset();
        let short = run.schedule.steps.len() <= KEPT_STEPS;
        if run.call.is_some() && failure.is_none() && short {
            self.collectives.keep(run);
        } else {
            self.collectives.spare(run);
        }
        failure
    }

    /// Makes a run a request, which [`Engine::progress`] drives from now on.
    pub fn launch(&mut self, run: Box<Run>) -> ReqId {
        let req = ReqId(self.machine.open());
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
            let waits = self.collectives.running[i].1.waits;
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
        if self.collectives.running[i].1.wants_user {
            return;
        }
        // Put back at the end: whoever walks the list does so from there.
        let (req, mut run) = self.collectives.running.swap_remove(i);
        let drive = self.drive(&mut run);
        if let Drive::Done = drive {
            let failure = self.put_back(run);
            self.machine.close(
                req.0,
                Outcome {
                    failure,
                    ..Outcome::CLEAN
                },
            );
            return;
        }
        run.wants_user = matches!(drive, Drive::User(_));
        run.waits = match drive {
            Drive::Board(watch) => Some(watch),
            _ => None,
        };
        run.held_by_send = match drive {
            Drive::Waiting(req, _) => run.goes_on_after_send(req),
            _ => false,
        };
        self.collectives.unwatched |= run.waits.is_some();
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
                .any(|(_, r)| r.wants_user && !r.with_user)
    }

    /// A call of a user's function that some run waits for. Make it with the lane released, then
    /// [`Engine::user_step_done`].
    pub fn take_user_step(&mut self) -> Option<(ReqId, UserStep)> {
        let (req, run) = self
            .collectives
            .running
            .iter_mut()
            .find(|(_, r)| r.wants_user && !r.with_user)?;
        let Some(&Step::Reduce { left, right }) = run.schedule.steps.get(run.pc) else {
            return None;
        };
        run.with_user = true;
        Some((*req, reduce(run, left, right, &self.collectives.desks)?))
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

#[inline]
fn copy(run: &mut Run, from: Slice, to: Slice, desks: &Desks, publisher: &mut NontemporalCopier) {
    if let (Some((a, n)), Some((b, m))) = (run.plain(from, desks), run.plain(to, desks))
        && n == m
        && n < publisher.long()
    {
        return a.copy_to(b, n);
    }
    copy_any(run, from, to, desks, publisher);
}

/// Copies long data, and what does not lie in a row on one of the sides.
#[inline(never)]
fn copy_any(
    run: &mut Run,
    from: Slice,
    to: Slice,
    desks: &Desks,
    publisher: &mut NontemporalCopier,
) {
    let (a, b) = (run.buf(from, desks), run.buf(to, desks));
    if a.len() != b.len() {
        let me = run.circle.as_ref().map_or(0, |c| c.rank);
        let failure = mismatch(run, me, a.len(), b.len());
        return run.fail(failure);
    }
    let long = a.len() >= publisher.long();
    let rows = a.region().zip(b.region()).filter(|_| long);
    match (rows, on_shelf(from), on_shelf(to)) {
        (Some((a, b)), _, true) => publisher.copy(a, b),
        (Some((a, b)), true, _) => nontemporal::fetch(a, b),
        _ => {
            a.copy_to(0, &b, 0, a.len());
        }
    }
}

/// Runs a copy and a reduction into what was copied as one, where data lies in a row and others do not wait for it.
#[inline]
fn combine(run: &Run, right: Slice, into: Slice, desks: &Desks) -> bool {
    let Some(&Step::Reduce { left, right: to }) = run.schedule.steps.get(run.pc + 1) else {
        return false;
    };
    let (true, Some(Combining::Kernel(kernel))) = (to == into && !on_shelf(into), run.combining)
    else {
        return false;
    };
    let at = |slice| run.plain(slice, desks);
    match (at(left), at(right), at(into)) {
        (Some((a, _)), Some((b, n)), Some((c, m))) if n == m => {
            kernel.run_into(a, b, c, left.len);
            true
        }
        _ => false,
    }
}

#[inline]
fn on_shelf(slice: Slice) -> bool {
    (SHELVES..TEMPS).contains(&slice.buf)
}

#[inline]
fn reduce(run: &Run, left: Slice, right: Slice, desks: &Desks) -> Option<UserStep> {
    let (a, b) = (run.addr(left, desks), run.addr(right, desks));
    match run.combining? {
        Combining::Nothing => None,
        Combining::Kernel(k) => {
            k.run(a, b, left.len);
            None
        }
        Combining::User(f, datatype) => {
            let extent = run.element.as_ref().map_or(0, |e| e.extent());
            Some(UserStep::new(f, datatype, a, b, left.len, extent))
        }
    }
}

#[cold]
fn mismatch(run: &Run, from: u32, came: u64, wants: u64) -> Failure {
    let Some(c) = &run.circle else {
        return Failure::Truncated { came, fits: wants };
    };
    // On an intercommunicator, whose ranks are those of both groups in a row here, the process tells who is meant.
    let name = |rank: u32| match c.members.peer(rank) {
        kw_base::Peer(p) if p == rank => format!("rank {rank}"),
        p => format!("rank {rank} (process {p} of the job)"),
    };
    let (giver, taker) = (name(from), name(c.rank));
    let text = format!(
        "{giver} gives {came} bytes to a collective in which {taker} takes {wants} from it: counts or datatypes differ"
    );
    Failure::Uneven { came, wants, text }
}
