//! One schedule that runs.

use super::desk::{Berth, BoardId, Desks, Watch};
use super::kept::Call;
use super::memory::{Memories, Memory};
use super::preface::Preface;
use crate::engine::{Failure, ReqId};
use kw_base::{ContextId, Peer};
use kw_coll::Table;
use kw_coll::{SEND, SHELVES, Schedule, Slice, Step, TEMPS};
use kw_sys::buf::{Addr, Buf};
use kw_sys::callback::{UserOp, UserOpCount};
use kw_sys::reduce::Kernel;
use kw_types::comm::Group;
use std::sync::Arc;

/// Who takes part, and by what their messages are known.
#[derive(Clone, Debug)]
pub struct Circle {
    /// The processes, by rank.
    pub members: Arc<Group>,
    /// Context of the communicator's collectives.
    pub context: ContextId,
    /// This process's rank.
    pub rank: u32,
    /// Tells this collective from others on the communicator: all ranks count their calls alike.
    pub tag: i32,
    /// The communicator's board.
    pub board: Option<BoardId>,
    /// Rows that choose algorithms before those of the engine's table.
    pub rows: Option<Arc<Table>>,
}

/// A user's function, with either width of its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserFunction {
    /// `int` length.
    Int(UserOp),
    /// `MPI_Count` length.
    Count(UserOpCount),
}

/// How two contributions are combined.
#[derive(Clone, Copy, Debug)]
pub enum Combining {
    /// Nothing is.
    Nothing,
    /// By a loop of ours.
    Kernel(Kernel),
    /// By a function of the user, who wants this datatype handle.
    User(UserFunction, usize),
}

/// A call of the user's function that a schedule waits for; made with the lane released.
#[derive(Clone, Copy, Debug)]
pub struct UserStep {
    function: UserFunction,
    datatype: usize,
    left: Addr,
    right: Addr,
    count: u64,
    extent: i64,
}

impl UserStep {
    /// A call on `count` elements that lie `extent` bytes apart.
    pub fn new(
        function: UserFunction,
        datatype: usize,
        left: Addr,
        right: Addr,
        count: u64,
        extent: i64,
    ) -> UserStep {
        UserStep {
            function,
            datatype,
            left,
            right,
            count,
            extent,
        }
    }

    /// Calls the user's function: `right[i] = left[i] op right[i]`.
    pub fn call(self) {
        match self.function {
            UserFunction::Count(f) => {
                f.call(self.left, self.right, self.count as i64, self.datatype)
            }
            UserFunction::Int(f) => {
                let mut done = 0;
                while done < self.count {
                    let n = (self.count - done).min(i32::MAX as u64);
                    let by = done as i64 * self.extent;
                    f.call(
                        self.left.offset(by),
                        self.right.offset(by),
                        n as i32,
                        self.datatype,
                    );
                    done += n;
                }
            }
        }
    }
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

/// A schedule with its memory and how far it has come.
#[derive(Debug, Default)]
pub struct Run {
    pub(super) circle: Option<Circle>,
    /// What the schedule answers, if that may be asked again.
    pub(super) call: Option<Call>,
    /// Likewise, the counts of the blocks where they are not equal.
    pub(super) counts: Vec<u64>,
    pub(super) schedule: Schedule,
    /// Of shelves it touches the lines only.
    pub(super) lines_only: bool,
    pub(super) memory: Memories,
    pub(super) element: Option<Memory>,
    pub(super) combining: Option<Combining>,
    pub(super) pc: usize,
    pub(super) flights: Vec<Flight>,
    /// Flights before this one have ended.
    pub(super) landed: usize,
    pub(super) failure: Option<Failure>,
    /// What comes before, when the ranks compare their calls.
    pub(super) preface: Option<Box<Preface>>,
    /// What the table was asked with.
    pub(super) bytes: u64,
    /// Its place on a board. Such a run goes on to its end even after a failure: others watch it.
    pub(super) berth: Option<Berth>,
    /// It has said on the board that it has begun.
    pub(super) raised: bool,
    /// Members that a step which watches all has found.
    pub(super) come: u32,
    /// What it waits for on a board, when nobody drives it.
    pub(super) waits: Option<Watch>,
    /// It waits for the end of a send, when nobody drives it, and has something to do after that.
    pub(super) held_by_send: bool,
    /// Some thread is in the user's function for this schedule.
    pub(super) with_user: bool,
    pub(super) wants_user: bool,
}

impl Run {
    /// Nothing to do.
    pub fn idle(circle: Circle) -> Run {
        Run {
            circle: Some(circle),
            ..Run::default()
        }
    }

    /// Rank 0 tells all others what is in `word`.
    pub fn tell(circle: Circle, word: &Buf) -> Run {
        let what = Slice::whole(SEND, word.len());
        let mut run = Run::idle(circle);
        match &run.circle {
            Some(c) if c.rank == 0 => (1..c.members.size()).for_each(|r| {
                run.schedule.send(r, what);
            }),
            _ => {
                run.schedule.recv(0, what);
            }
        }
        run.add(Memory::stream(word.clone()));
        run
    }

    /// The ranks compare what they say before anything else happens.
    pub fn begin_with(&mut self, preface: Preface) {
        self.preface = Some(Box::new(preface));
    }

    /// What the ranks compare.
    #[inline]
    pub fn preface(&mut self) -> Option<&mut Preface> {
        self.preface.as_deref_mut()
    }

    /// Adds one of the caller's buffers; they are numbered in the order in which they are added.
    #[inline]
    pub fn add(&mut self, memory: Memory) {
        self.memory.user.push(memory);
    }

    /// Says how elements are combined, and what one is.
    #[inline]
    pub fn combine(&mut self, combining: Combining, element: Memory) {
        self.combining = Some(combining);
        self.element = Some(element);
    }

    /// Becomes the same collective, from the beginning (persistent requests); it was empty. The tag stays: messages between two
    /// ranks keep their order, so one round is never taken for the next.
    pub(super) fn follow(&mut self, pattern: &Run) {
        self.circle.clone_from(&pattern.circle);
        self.schedule.copy_from(&pattern.schedule);
        self.memory.user.clone_from(&pattern.memory.user);
        self.element.clone_from(&pattern.element);
        (self.combining, self.bytes) = (pattern.combining, pattern.bytes);
        self.lines_only = pattern.lines_only;
        self.preface = pattern.preface.as_ref().map(|p| Box::new(p.again()));
    }

    /// Whether a failure ends it. Wrong amounts of data do not: other ranks would wait in vain for what this one passes on.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some() && self.berth.is_none() && !self.is_uneven()
    }

    #[cold]
    fn is_uneven(&self) -> bool {
        matches!(self.failure, Some(Failure::Uneven { .. }))
    }

    /// Remembers the first failure, but one that ends it rather than one that does not.
    #[cold]
    pub(super) fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() || self.is_uneven() && !matches!(failure, Failure::Uneven { .. })
        {
            self.failure = Some(failure);
        }
    }

    #[inline]
    fn shelf(&self, slice: Slice) -> Option<&Berth> {
        if (SHELVES..TEMPS).contains(&slice.buf) {
            return self.berth.as_ref();
        }
        None
    }

    /// First byte and bytes of a slice with data, where they lie in a row as they are.
    #[inline]
    pub(super) fn plain(&self, slice: Slice, desks: &Desks) -> Option<(Addr, u64)> {
        if slice.is_empty() {
            return None;
        }
        match self.shelf(slice) {
            Some(berth) => desks.memory(berth, slice).plain(0, slice.len),
            None => self.memory.plain(slice),
        }
    }

    /// The message buffer of a slice.
    #[inline]
    pub(super) fn buf(&self, slice: Slice, desks: &Desks) -> Buf {
        if slice.is_empty() {
            return Buf::EMPTY;
        }
        match self.shelf(slice) {
            Some(berth) => desks.memory(berth, slice).buf(0, slice.len),
            None => self.memory.buf(slice),
        }
    }

    /// Address of a slice's first element.
    #[inline]
    pub(super) fn addr(&self, slice: Slice, desks: &Desks) -> Addr {
        match self.shelf(slice) {
            Some(berth) => desks.memory(berth, slice).addr(0),
            None => self.memory.addr(slice),
        }
    }

    /// As it was when its schedule had just been laid out.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.flights.clear();
        (self.pc, self.landed) = (0, 0);
        (self.with_user, self.wants_user) = (false, false);
        (self.combining, self.element, self.preface) = (None, None, None);
        (self.berth, self.waits) = (None, None);
        self.held_by_send = false;
        (self.raised, self.come) = (false, 0);
    }

    /// Whether this transfer, for which it waits, is a send, and steps follow that do something: with the end of the last sends it ends, which
    /// nobody hears before the next call.
    #[cold]
    pub(super) fn goes_on_after_send(&self, req: ReqId) -> bool {
        let rest = self.schedule.steps.get(self.pc..).unwrap_or_default();
        let only_waits = rest
            .iter()
            .all(|s| matches!(s, Step::Await(_) | Step::Fence));
        let is_send = |f: &Flight| f.req == Some(req) && f.expects.is_none();
        self.flights.iter().any(is_send) && !only_waits
    }

    /// Gives back the memory of lists longer than that, which they had for another schedule.
    #[inline]
    pub(super) fn trim(&mut self, steps: usize) {
        if self.schedule.steps.capacity() > steps {
            self.schedule.steps.shrink_to(steps);
            self.flights.shrink_to(steps);
        }
    }

    /// As new, but with the memory of its lists; it was reset before.
    pub(super) fn empty(&mut self) {
        self.schedule.clear();
        (self.circle, self.call) = (None, None);
    }

    /// The user's function has returned.
    #[inline]
    pub fn user_done(&mut self) {
        self.with_user = false;
        self.wants_user = false;
        self.pc += 1;
    }
}

/// What a schedule waits for.
#[derive(Clone, Copy, Debug)]
pub enum Drive {
    /// It has ended.
    Done,
    /// This transfer, which that peer ends.
    Waiting(ReqId, Peer),
    /// This on a board.
    Board(Watch),
    /// A call of the user's function; [`Run::user_done`] afterwards.
    User(UserStep),
}
