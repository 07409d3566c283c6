//! A plan, and one run of it.
//!
//! A [`Run`] is a plan (a schedule with its ops, and the properties of its communicator that it
//! needs) that runs, or rests until it is called again. While it does not run, it is in the plans
//! or with a persistent request, so a call that is like one before allocates nothing. Once all its
//! steps are ops of the executor it does without schedule and buffers ([`Run::work`]).

use super::Failure;
use super::channel::{ChannelId, Channels, ShmRegionUse, Watch};
use super::memory::{Memories, Memory, Store};
use super::pattern::PatternId;
use super::planner::KEPT_STEPS;
use super::plans::{Named, PlanKey, PlansId};
use super::signature_check::SignatureCheck;
use super::user::{Combining, UserStep};
use crate::messages::ReqId;
use kw_base::{ContextId, Peer};
use kw_coll::executor::{Op, Progress, Reservation};
use kw_coll::{Coll, SEND, Schedule, Slice, Step, Table, is_shm_buffer};
use kw_sys::buf::{Addr, Buf};
use kw_sys::region::Region;
use kw_types::comm::Group;
use std::sync::Arc;

/// Participants, and the context of their messages.
#[derive(Clone, Debug)]
pub struct CommView {
    /// The processes, by rank.
    pub members: Arc<Group>,
    /// Context of the communicator's collectives.
    pub context: ContextId,
    /// This process's rank.
    pub rank: u32,
    /// Tag that distinguishes this collective from others on the communicator: all ranks count
    /// alike.
    pub tag: i32,
    /// The communicator's shm region.
    pub shm_region: Option<ChannelId>,
    /// Rows that choose algorithms before those of the engine's table.
    pub rows: Option<Arc<Table>>,
    /// The communicator's plans.
    pub plans: Option<PlansId>,
}

/// A transfer that was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// `None` once it has ended.
    pub req: Option<ReqId>,
    pub peer: Peer,
    /// Receives: the sender's rank and the bytes that must come.
    pub expects: Option<(u32, u64)>,
}

/// Whether a run has its ops and temporaries.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Bound {
    /// No ops yet.
    #[default]
    Not,
    /// No temporaries.
    Ops,
    /// All is there.
    Yes,
}

/// Condition for which a background run waits.
#[derive(Clone, Copy, Default, Debug)]
pub(super) enum State {
    /// Nothing, or a message.
    #[default]
    Ready,
    /// The end of a send, after which it has something to do.
    HeldBySend,
    /// A turn or a flag on a shm region.
    OnShmRegion(Watch),
    /// A thread to call the user's function.
    WantsUser,
    /// A thread is in the user's function for it.
    InUser,
}

/// Resting place of a run that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Home {
    /// Nowhere: it is dropped.
    #[default]
    Nowhere,
    /// In the plans of its communicator, or in those of all communicators ([`Run::is_shared`]).
    Plans(PlansId),
    /// With a persistent request.
    Pattern(PatternId),
}

/// Resources of a run for the steps that the executor leaves to the engine.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub schedule: Schedule,
    pub memory: Memories,
    pub element: Option<Memory>,
    pub flights: Vec<Flight>,
    /// Flights before this one have ended.
    pub completed: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Run {
    /// The blocking call that it serves before its arguments are examined.
    pub(super) named: Named,
    pub(super) ops: Vec<Op>,
    pub(super) progress: Progress,
    /// Start addresses of the first two buffers, if they are contiguous.
    pub(super) bases: [Addr; 2],
    /// Its use of a shm region. Such a run continues to its end even after a failure: others wait
    /// for its flags.
    pub(super) region_use: Option<ShmRegionUse>,
    pub(super) combining: Option<Combining>,
    /// Its schedule and buffers. `None` once all steps are ops of the executor, which needs
    /// neither.
    pub(super) work: Option<Box<Work>>,
    pub(super) bound: Bound,
    /// Its position in its table of plans, added to the number of positions there.
    pub(super) at_home: u32,
    pub(super) home: Home,
    /// The key of its entry in the table, if any.
    pub(super) coll: Option<Coll>,
    /// With this many bytes.
    pub(super) bytes: u64,
    /// Steps before it, when the ranks compare their calls.
    pub(super) signature_check: Option<Box<SignatureCheck>>,
    pub(super) failure: Option<Failure>,
    pub(super) state: State,
    pub(super) comm_view: Option<CommView>,
    /// The key of the schedule, if it may be looked up again and has no name.
    pub(super) call: Option<Box<PlanKey>>,
    /// The counts of the blocks of such a call, if they are not equal.
    pub(super) counts: Box<[u64]>,
}

/// The place of a plan that has had none.
pub(super) const HOMELESS: u32 = u32::MAX;

impl Default for Run {
    fn default() -> Run {
        Run {
            named: Named::NOTHING,
            ops: Vec::new(),
            progress: Progress::default(),
            bases: [Addr::NULL; 2],
            region_use: None,
            combining: None,
            work: None,
            bound: Bound::Not,
            at_home: HOMELESS,
            home: Home::Nowhere,
            coll: None,
            bytes: 0,
            signature_check: None,
            failure: None,
            state: State::Ready,
            comm_view: None,
            call: None,
            counts: Box::default(),
        }
    }
}

impl Run {
    /// Nothing to do.
    pub fn idle(comm_view: CommView) -> Run {
        Run {
            comm_view: Some(comm_view),
            ..Run::default()
        }
    }

    /// Rank 0 sends all others the contents of `word`.
    pub fn tell(comm_view: CommView, word: &Buf) -> Run {
        let what = Slice::whole(SEND, word.len());
        let (mut run, mut schedule) = (Run::idle(comm_view), Schedule::default());
        match &run.comm_view {
            Some(c) if c.rank == 0 => (1..c.members.size()).for_each(|r| {
                schedule.send(r, what);
            }),
            _ => {
                schedule.recv(0, what);
            }
        }
        run.work().schedule = schedule;
        run.add(Memory::stream(word.clone()));
        run
    }

    /// The ranks compare their records before anything else happens.
    pub fn begin_with(&mut self, signature_check: SignatureCheck) {
        self.signature_check = Some(Box::new(signature_check));
    }

    /// Data that the ranks compare.
    #[inline]
    pub fn signature_check(&mut self) -> Option<&mut SignatureCheck> {
        self.signature_check.as_deref_mut()
    }

    /// Adds one of the caller's buffers; they are numbered in the order in which they are added.
    #[inline]
    pub fn add(&mut self, memory: Memory) {
        self.work().memory.user.push(memory);
    }

    /// Takes the caller's first two buffers; [`Run::add`] others.
    #[inline]
    pub fn take_buffers(&mut self, buffers: [Memory; 2]) {
        let at = |m: &Memory| m.plain().map_or(Addr::NULL, |(addr, _)| addr);
        let [send, recv] = &buffers;
        self.bases = [at(send), at(recv)];
        if self.bound == Bound::Not || self.work.is_some() {
            let user = &mut self.work().memory.user;
            user.reserve_exact(2);
            user.extend(buffers);
        }
    }

    /// Its resources for steps.
    #[inline]
    pub(super) fn work(&mut self) -> &mut Work {
        self.work.get_or_insert_default()
    }

    /// Sets how elements are combined, and what an element is.
    #[inline]
    pub fn combine(&mut self, combining: Combining, element: Memory) {
        self.combining = Some(combining);
        if let Some(work) = &mut self.work {
            work.element = Some(element);
        }
    }

    /// Calls in these words take this plan from now on, before their arguments are examined.
    #[cold]
    pub fn name(&mut self, named: Named) {
        if matches!(self.home, Home::Plans(_)) && self.region_use.is_some() {
            self.named = named;
            if self.bound != Bound::Not {
                self.settle_name();
            }
        }
    }

    /// Once it is bound: only a plan that needs nothing but the addresses of the buffers can have a
    /// name, and then it is found by nothing else.
    #[cold]
    pub(super) fn settle_name(&mut self) {
        if self.is_shared() {
            self.named = Named::NOTHING;
        } else if !self.named.is_nothing() {
            (self.at_home, self.call) = (HOMELESS, None);
        }
    }

    /// Whether the plan is cached for all communicators: it has steps for the engine, or its ops
    /// would make the memory of a communicator grow with its ranks.
    #[inline(always)]
    pub(super) fn is_shared(&self) -> bool {
        self.work.is_some() || self.ops.len() > KEPT_STEPS
    }

    /// Distinguishes its messages from those of the call before.
    #[inline]
    pub fn set_tag(&mut self, tag: i32) {
        if let Some(comm_view) = &mut self.comm_view {
            comm_view.tag = tag;
        }
    }

    /// Condition on a shm region for which it waits in the background.
    #[inline]
    pub(super) fn waits_on(&self) -> Option<Watch> {
        match self.state {
            State::OnShmRegion(watch) => Some(watch),
            _ => None,
        }
    }

    /// Whether a failure ends it. Wrong amounts of data do not: other ranks would wait forever for
    /// the data that this one passes on.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some() && self.region_use.is_none() && !self.is_uneven()
    }

    #[cold]
    fn is_uneven(&self) -> bool {
        matches!(self.failure, Some(Failure::Uneven { .. }))
    }

    /// Remembers the first failure, but prefers one that ends it to one that does not.
    #[cold]
    pub(super) fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() || self.is_uneven() && !matches!(failure, Failure::Uneven { .. })
        {
            self.failure = Some(failure);
        }
    }

    #[inline]
    fn at_work(&self) -> &Reservation {
        &self.progress.place
    }

    #[inline]
    fn shm_buffer(&self, slice: Slice) -> Option<&ShmRegionUse> {
        self.region_use
            .as_ref()
            .filter(|_| is_shm_buffer(slice.buf))
    }

    #[inline]
    fn memory(&self) -> Option<&Memories> {
        self.work.as_ref().map(|w| &w.memory)
    }

    /// The bytes of a slice with data, if they are contiguous.
    #[inline]
    pub(super) fn row<'a>(&'a self, slice: Slice, channels: &'a Channels) -> Option<Region<'a>> {
        if slice.is_empty() {
            return None;
        }
        match self.shm_buffer(slice) {
            Some(region_use) => channels.shm_buffer(region_use, self.at_work(), slice),
            None => self.memory()?.row(slice),
        }
    }

    /// The elements of a slice with the gaps between them, for the library's loops.
    #[inline]
    pub(super) fn stretch<'a>(
        &'a self,
        slice: Slice,
        channels: &'a Channels,
    ) -> Option<Region<'a>> {
        match self.shm_buffer(slice) {
            Some(region_use) => channels.shm_buffer(region_use, self.at_work(), slice),
            None => self.memory()?.stretch(slice),
        }
    }

    /// The message buffer of a slice that is in no shm buffer.
    #[inline]
    pub(super) fn buf(&self, slice: Slice) -> Buf {
        match self.memory() {
            Some(memory) if !is_shm_buffer(slice.buf) => memory.buf(slice),
            _ => Buf::EMPTY,
        }
    }

    /// The transfers that were started.
    pub(super) fn flights(&self) -> &[Flight] {
        self.work.as_ref().map_or(&[], |w| &w.flights)
    }

    /// Restores the state before its first run, without the caller's buffers unless it has them for
    /// good.
    pub(super) fn reset(&mut self, store: &mut Store) {
        if let Some(work) = &mut self.work {
            if !matches!(self.home, Home::Pattern(_)) {
                work.memory.user.clear();
                work.element = None;
            }
            work.memory.clear(store);
            work.flights.clear();
            work.completed = 0;
            if !work.schedule.temps.is_empty() && self.bound == Bound::Yes {
                self.bound = Bound::Ops;
            }
        }
    }

    /// It may rest for long: reduces its memory to the necessary.
    #[cold]
    pub(super) fn shrink(&mut self) {
        self.ops.shrink_to_fit();
        if let Some(work) = &mut self.work {
            work.schedule.steps.shrink_to_fit();
            work.schedule.temps.shrink_to_fit();
            work.flights.shrink_to_fit();
        }
    }

    /// The next run of it begins on this place of the shm region.
    #[inline(always)]
    pub(super) fn begin(&mut self, place: Reservation) {
        self.progress.begin(place);
    }

    /// Whether this transfer, for which it waits, is a send, and further steps follow: when the
    /// last sends end the run ends, which is noticed only at the next call.
    #[cold]
    pub(super) fn goes_on_after_send(&self, req: ReqId) -> bool {
        let mut rest = (self.progress.at()..).map_while(|at| self.op(at));
        let waits = |op| matches!(self.step_of(op), Some(Step::Await(_) | Step::Fence));
        let only_waits = rest.all(waits);
        let is_send = |f: &Flight| f.req == Some(req) && f.expects.is_none();
        self.flights().iter().any(is_send) && !only_waits
    }

    /// Whether nothing precedes its first op.
    #[inline(always)]
    pub(super) fn is_ready(&self) -> bool {
        self.bound == Bound::Yes && self.signature_check.is_none()
    }

    /// Once it is ready: whether all its steps are ops of the executor, on a shm region.
    #[inline(always)]
    pub(super) fn is_of_ops(&self) -> bool {
        self.work.is_none()
    }

    /// Its steps, while it has any.
    #[inline]
    pub(super) fn steps(&self) -> &[Step] {
        self.work.as_ref().map_or(&[], |w| &w.schedule.steps)
    }

    /// The op with that index. Without a shm region there is one for each step, and none needs to
    /// be kept.
    fn op(&self, at: u32) -> Option<Op> {
        match self.region_use {
            Some(_) => self.ops.get(at as usize).copied(),
            None => ((at as usize) < self.steps().len()).then_some(Op::Step(at)),
        }
    }

    /// The step that an op is, if it is one.
    #[inline]
    pub(super) fn step_of(&self, op: Op) -> Option<Step> {
        match op {
            Op::Step(i) => self.steps().get(i as usize).copied(),
            _ => None,
        }
    }

    /// The current step, if it is one that the executor leaves to the engine.
    pub(super) fn step(&self) -> Option<Step> {
        self.step_of(self.op(self.progress.at())?)
    }

    /// The call of the user's function that it waits for ([`Drive::User`]). Make it with the lock
    /// released.
    #[cold]
    pub fn user_step(&self) -> Option<UserStep> {
        let (Some(Combining::User(f, datatype)), Some(Step::Reduce { left, right })) =
            (self.combining, self.step())
        else {
            return None;
        };
        let memory = self.memory()?;
        let (left, right) = (memory.operand(left), memory.operand(right));
        Some(UserStep::new(f, datatype, left, right))
    }

    /// The user's function has returned.
    #[inline]
    pub fn user_done(&mut self) {
        self.state = State::Ready;
        self.progress.pass();
    }
}

/// Condition for which a schedule waits.
#[derive(Clone, Copy, Debug)]
pub enum Drive {
    /// It has ended.
    Done,
    /// The end of this transfer, which depends on that peer.
    Waiting(ReqId, Peer),
    /// This condition on a shm region.
    ShmRegion(Watch),
    /// [`Run::user_step`]; [`Run::user_done`] afterwards.
    User,
}
