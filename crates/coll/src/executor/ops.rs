//! Ops, and the interpreter that runs them.

use super::flow::Seen;
use super::{Flags, FlowControl, LAST_STAGE, Reservation, Wait};
use crate::{Schedule, Slice, Step, is_shm_buffer};

/// A byte of one of the areas that a [`ExecContext`] knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AreaOffset {
    /// The area.
    pub area: u32,
    /// Bytes from its beginning.
    pub by: u32,
}

/// One op of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Copies bytes.
    Copy {
        /// Source.
        from: AreaOffset,
        /// Destination.
        to: AreaOffset,
        /// Length in bytes.
        len: u32,
    },
    /// `right = left op right`.
    Reduce {
        /// Left operand.
        left: AreaOffset,
        /// Right operand and result.
        right: AreaOffset,
        /// Length in bytes, of whole elements.
        len: u32,
    },
    /// `into = left op right`.
    Combine {
        /// Left operand.
        left: AreaOffset,
        /// Right operand.
        right: AreaOffset,
        /// Result, none of both.
        into: AreaOffset,
        /// Length in bytes, of whole elements.
        len: u32,
    },
    /// Announces to the others that this rank has come to this stage.
    Raise(u32),
    /// Waits until that member of this node has come to a stage.
    Watch {
        /// The member.
        member: u32,
        /// The stage.
        stage: u32,
    },
    /// Waits until all members of this node have come to a stage.
    WatchAll(u32),
    /// The schedule's step of this index, which the owner of the run does.
    Step(u32),
}

/// Memory and flags that a plan's ops act on.
pub trait ExecContext {
    /// The flags of the ranks.
    type Flags: Flags;

    /// The flags, separate from the rest: the interpreter keeps that in registers.
    fn flags(&mut self) -> &mut Self::Flags;

    /// Copies bytes that do not overlap.
    fn copy(&mut self, from: AreaOffset, to: AreaOffset, len: u32);

    /// `right = left op right` for the elements in `len` bytes.
    fn reduce(&mut self, left: AreaOffset, right: AreaOffset, len: u32);

    /// `into = left op right` for the elements in `len` bytes.
    fn combine(&mut self, left: AreaOffset, right: AreaOffset, into: AreaOffset, len: u32);
}

/// Resolver of slices to locations.
pub trait Resolver {
    /// The slice's first byte and its bytes, if it is contiguous, and always will be for this plan.
    /// Never asked for an empty slice.
    fn row(&self, slice: Slice) -> Option<(AreaOffset, u64)>;

    /// Whether elements are combined by one of the library's loops, so that reductions can be ops.
    fn combines(&self) -> bool;

    /// Copies of this many bytes and more are better done by the owner.
    fn long(&self) -> u64;

    /// Member of the node that a rank of the communicator is.
    fn member(&self, rank: u32) -> Option<u32>;
}

/// The ops of a schedule that uses shared memory. For others all steps are left to the owner, which
/// needs no ops for that ([`Progress::next_step`]).
pub fn bind(schedule: &Schedule, resolver: &impl Resolver, ops: &mut Vec<Op>) {
    ops.clear();
    ops.reserve(schedule.steps.len());
    let mut i = 0;
    while let Some(&step) = schedule.steps.get(i) {
        let pair = (step, schedule.steps.get(i + 1).copied());
        let fused = fuse(pair, resolver);
        ops.push(fused.unwrap_or_else(|| one(step, resolver).unwrap_or(Op::Step(i as u32))));
        i += 1 + fused.is_some() as usize;
    }
}

/// A copy and a reduction into its destination are one op if others do not wait for the copy.
fn fuse(pair: (Step, Option<Step>), resolver: &impl Resolver) -> Option<Op> {
    let (Step::Copy { from, to }, Some(Step::Reduce { left, right })) = pair else {
        return None;
    };
    let alone = to == right && !is_shm_buffer(to.buf);
    if !alone || !resolver.combines() {
        return None;
    }
    let ((a, len), (b, room), (c, fits)) = (
        row(left, resolver)?,
        row(from, resolver)?,
        row(to, resolver)?,
    );
    (len == room && room == fits).then_some(Op::Combine {
        left: a,
        right: b,
        into: c,
        len: u32::try_from(len).ok()?,
    })
}

fn one(step: Step, resolver: &impl Resolver) -> Option<Op> {
    Some(match step {
        Step::Copy { from, to } => {
            let ((from, len), (to, room)) = (row(from, resolver)?, row(to, resolver)?);
            let len = u32::try_from(len)
                .ok()
                .filter(|_| len == room && len < resolver.long())?;
            Op::Copy { from, to, len }
        }
        Step::Reduce { left, right } if resolver.combines() => {
            let ((left, len), (right, room)) = (row(left, resolver)?, row(right, resolver)?);
            let len = u32::try_from(len).ok().filter(|_| len == room)?;
            Op::Reduce { left, right, len }
        }
        Step::Raise(stage) => Op::Raise(stage),
        Step::Watch { rank, stage } => Op::Watch {
            member: resolver.member(rank)?,
            stage,
        },
        Step::WatchAll(stage) => Op::WatchAll(stage),
        _ => return None,
    })
}

fn row(slice: Slice, resolver: &impl Resolver) -> Option<(AreaOffset, u64)> {
    if slice.is_empty() {
        return None;
    }
    resolver.row(slice)
}

/// Reason why the interpreter stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It continues when this has come true.
    Wait(Wait),
    /// The owner does the schedule's step of this index, and then [`Progress::pass`]es it.
    Step(u32),
    /// All ops are done.
    End,
}

/// One run of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Its place in the shared memory.
    pub place: Reservation,
    /// This rank's description of its call, as one word that is the same on all ranks; 0: none.
    pub signature: u64,
    /// A rank whose signature differs, by member, and its signature.
    pub odd: Option<(u32, u64)>,
    /// The next op.
    pc: u32,
    /// Members that an op which watches all has found.
    come: u32,
    /// It has marked itself.
    raised: bool,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new(Reservation::NONE, 0)
    }
}

impl Progress {
    /// A run of no ops.
    pub fn new(place: Reservation, signature: u64) -> Progress {
        Progress {
            place,
            signature,
            odd: None,
            pc: 0,
            come: 0,
            raised: false,
        }
    }

    /// This plan from the start, with other memory.
    #[inline(always)]
    pub fn begin(&mut self, place: Reservation) {
        self.place = place;
        (self.pc, self.come, self.raised) = (0, 0, false);
    }

    /// The current op.
    pub fn at(&self) -> u32 {
        self.pc
    }

    /// The owner's next step in a plan of this many steps that uses no shared memory: everything is
    /// left to the owner, step by step.
    #[inline]
    pub fn next_step(&self, steps: u32) -> Next {
        match self.pc < steps {
            true => Next::Step(self.pc),
            false => Next::End,
        }
    }

    /// The owner has done the step that it was asked for.
    #[inline]
    pub fn pass(&mut self) {
        self.pc += 1;
    }

    /// Runs as far as possible without waiting. `only_here`: no messages are exchanged, so only
    /// ranks that wait on this rank's flags depend on it.
    #[inline(always)]
    pub fn go_on<G: ExecContext>(
        &mut self,
        ops: &[Op],
        only_here: bool,
        flow: &mut FlowControl,
        context: &mut G,
    ) -> Next {
        if let Some(wait) = flow.open(&mut self.place, context.flags()) {
            return Next::Wait(wait);
        }
        let mut pc = self.pc;
        let next = loop {
            let Some(op) = ops.get(pc as usize) else {
                break Next::End;
            };
            let seen = match *op {
                Op::Copy { from, to, len } => {
                    context.copy(from, to, len);
                    Seen::Yes
                }
                Op::Reduce { left, right, len } => {
                    context.reduce(left, right, len);
                    Seen::Yes
                }
                Op::Combine {
                    left,
                    right,
                    into,
                    len,
                } => {
                    context.combine(left, right, into, len);
                    Seen::Yes
                }
                Op::Raise(stage) => {
                    self.raise(stage, flow, context.flags());
                    Seen::Yes
                }
                Op::Watch { member, stage } => {
                    let watched = (member, stage);
                    flow.look(&self.place, self.signature, watched, context.flags())
                }
                Op::WatchAll(stage) => self.watch_all(stage, flow, context.flags()),
                Op::Step(step) => break Next::Step(step),
            };
            match seen {
                Seen::Yes => pc += 1,
                Seen::NotYet(wait) => break Next::Wait(wait),
                Seen::Elsewhere(theirs) => {
                    // No rank that waits on this rank's flags must wait for a value that is never
                    // stored; if messages are exchanged the rank continues anyway, because others
                    // wait for those.
                    self.contradicted(op, theirs);
                    if only_here {
                        self.raise(LAST_STAGE, flow, context.flags());
                        break Next::End;
                    }
                    pc += self.skips(op, flow.members()) as u32;
                }
            }
        };
        self.pc = match next {
            Next::End => ops.len() as u32,
            _ => pc,
        };
        next
    }

    #[inline(always)]
    fn raise<F: Flags>(&mut self, stage: u32, flow: &mut FlowControl, flags: &mut F) {
        flow.raise(&self.place, self.signature, stage, flags);
        self.raised = true;
    }

    #[inline(always)]
    fn watch_all<F: Flags>(&mut self, stage: u32, flow: &mut FlowControl, flags: &mut F) -> Seen {
        while self.come < flow.members() {
            let seen = flow.look(&self.place, self.signature, (self.come, stage), flags);
            if seen != Seen::Yes {
                return seen;
            }
            self.come += 1;
        }
        self.come = 0;
        Seen::Yes
    }

    /// Another rank is in another call than this one.
    #[cold]
    #[inline(never)]
    fn contradicted(&mut self, op: &Op, theirs: u64) {
        let member = match *op {
            Op::Watch { member, .. } => member,
            _ => self.come,
        };
        if self.odd.is_none() {
            self.odd = Some((member, theirs));
        }
    }

    /// Gives up on the member that is in another call; an op that watches all still waits for the
    /// others. Returns whether that ends the op.
    #[cold]
    #[inline(never)]
    fn skips(&mut self, op: &Op, members: u32) -> bool {
        let more = matches!(op, Op::WatchAll(_)) && self.come + 1 < members;
        self.come = if more { self.come + 1 } else { 0 };
        !more
    }

    /// The run has ended, with or without success: marks it, and lets the next collective begin.
    /// Returns whether there is one.
    #[inline(always)]
    pub fn end<F: Flags>(&mut self, flow: &mut FlowControl, flags: &mut F) -> bool {
        if !self.raised {
            flow.raise(&self.place, self.signature, 0, flags);
        }
        flow.end(&self.place)
    }
}
