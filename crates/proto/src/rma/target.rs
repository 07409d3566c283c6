//! The target's side: frames that have come, and when they may be applied.
//!
//! Each origin has a stream of frames. A stream stands still at a lock that is not granted, at a
//! fence that this rank has not ended, and at a flush or an end of an epoch before operations that
//! have not ended. [`Exposed`] carries out the effect of an operation on memory.

use super::by_rank::ByRank;
use super::{During, Frame, LockMode, Operation, TargetLocation};
use kw_types::layout::Layout;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Most datatypes of an origin that a target keeps.
pub const MOST_TYPES: usize = 64;

/// Place of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'a> {
    /// Displacement 0 of the first element, in bytes from the beginning of the window.
    pub at: i64,
    /// Elements; for contiguous data: bytes.
    pub count: u64,
    /// Datatype; none for contiguous bytes.
    pub layout: Option<&'a Arc<Layout>>,
}

impl Placed<'_> {
    /// Bytes of data.
    pub fn len(&self) -> Option<u64> {
        let each = self.layout.map_or(1, |l| l.size());
        let len = self.count.checked_mul(each)?;
        (len <= i64::MAX as u64).then_some(len)
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// First byte and end of the data; `None` when there is none.
    pub fn reach(&self) -> Option<(i128, i128)> {
        match self.layout {
            Some(layout) => layout.reach(self.at, self.count),
            None if self.count == 0 => None,
            None => Some((self.at as i128, self.at as i128 + self.count as i128)),
        }
    }
}

/// Result of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// It has ended.
    Done,
    /// [`Target::ended`] will be called.
    GoesOn,
    /// It names memory outside the window: nothing was done.
    Refused,
}

/// Memory of a window, and the way back to its origins.
pub trait Exposed {
    /// Applies an operation.
    fn apply(&mut self, origin: u32, op: Operation<'_, Placed<'_>>) -> Applied;
    /// Sends the answer to a flush or an unlock; `refused`: an operation before it was refused.
    fn answer(&mut self, origin: u32, tag: i32, refused: bool);
    /// Asks for the lock; returns whether it is granted at once. Otherwise [`Target::granted`] is
    /// called.
    fn lock(&mut self, origin: u32, mode: LockMode) -> bool;
    /// Gives the lock back; returns the origins that have it now.
    fn unlock(&mut self, origin: u32) -> Vec<u32>;
    /// Receives the place where an origin's next operation was called ([`Frame::CalledAt`]).
    fn called_at(&mut self, _origin: u32, _during: During, _lasts: bool, _site: &[u8]) {}
    /// Operations in epochs of this kind have ended; `origin`: only those of this one.
    fn over(&mut self, _during: During, _origin: Option<u32>) {}
}

/// The epoch of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Mode {
    #[default]
    None,
    Locked,
    Unchecked,
    Fence,
    Started,
}

impl Mode {
    fn during(self) -> Option<During> {
        match self {
            Mode::None => None,
            Mode::Locked | Mode::Unchecked => Some(During::Lock),
            Mode::Fence => Some(During::Fence),
            Mode::Started => Some(During::Posted),
        }
    }
}

/// Reason why a stream waits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Gate {
    #[default]
    Open,
    /// The lock.
    Lock,
    /// This fence of the target.
    Fence(u64),
    /// The end of operations; then a frame is answered.
    Answer { tag: i32, unlock: bool },
    /// The end of operations of a started epoch.
    Complete,
}

/// Frames that have come from one origin.
#[derive(Default, Debug)]
struct Stream {
    batches: VecDeque<Vec<u8>>,
    /// Bytes of the first message that were read.
    read: usize,
    mode: Mode,
    gate: Gate,
    /// Active operations.
    pending: u64,
    /// How many of these belong to a fence epoch.
    fenced: u64,
    refused: bool,
    types: HashMap<u32, Arc<Layout>>,
}

/// See the module.
#[derive(Default, Debug)]
pub struct Target {
    streams: ByRank<Stream>,
    /// Fences of this rank that have ended.
    fences: u64,
    /// Operations of fence epochs that have ended, and that must have ended for the active fence.
    arrived: u64,
    expected: u64,
    /// A fence is active.
    fencing: bool,
    /// Origins of the posted epoch that have not completed, in order.
    posted: Vec<u32>,
    /// Bytes have come that are not frames.
    broken: bool,
}

impl Target {
    /// Frames of an origin have come. Those for its own role as origin are given to `notice`.
    pub fn on_frames(
        &mut self,
        origin: u32,
        bytes: &[u8],
        exposed: &mut impl Exposed,
        mut notice: impl FnMut(Frame<'_>),
    ) {
        if Frame::may_be_for_origin(bytes)
            && let Some((frame, rest)) = Frame::decode(bytes)
            && frame.is_for_origin()
        {
            notice(frame);
            self.broken |= !rest.is_empty();
            return;
        }
        let stream = self.streams.get_or_make(origin, Stream::default);
        if !stream.batches.is_empty() {
            stream.batches.push_back(bytes.to_vec());
            return self.run_one(origin, exposed);
        }
        let (mut rest, mut others) = (bytes, Vec::new());
        while self.pass(origin, exposed, &mut others) && !rest.is_empty() {
            rest = &rest[self.take_frame(origin, rest, exposed)..];
        }
        if !rest.is_empty()
            && let Some(stream) = self.streams.get_mut(origin)
        {
            stream.batches.push_back(rest.to_vec());
        }
        self.run(others, exposed);
    }

    /// Whether bytes that are not frames, or frames out of place, have come since the last call.
    pub fn take_broken(&mut self) -> bool {
        std::mem::take(&mut self.broken)
    }

    /// An active operation of an origin has ended; `failed`: it was refused or has failed.
    pub fn ended(&mut self, origin: u32, failed: bool, exposed: &mut impl Exposed) {
        let Some(stream) = self.streams.get_mut(origin) else {
            return;
        };
        stream.pending = stream.pending.saturating_sub(1);
        stream.refused |= failed;
        if stream.fenced > 0 {
            stream.fenced -= 1;
            self.arrived += 1;
        }
        self.run_one(origin, exposed);
    }

    /// These origins have the lock now.
    pub fn granted(&mut self, origins: Vec<u32>, exposed: &mut impl Exposed) {
        for origin in &origins {
            self.grant(*origin);
        }
        self.run(origins, exposed);
    }

    fn grant(&mut self, origin: u32) {
        if let Some(stream) = self.streams.get_mut(origin)
            && stream.gate == Gate::Lock
        {
            (stream.gate, stream.mode) = (Gate::Open, Mode::Locked);
        }
    }

    /// The fence of this rank has learnt how many operations belong to the epoch.
    pub fn fence(&mut self, expected: u64, exposed: &mut impl Exposed) {
        self.expected += expected;
        self.fencing = true;
        self.end_fence(exposed);
    }

    /// Whether no fence is active.
    pub fn has_fenced(&self) -> bool {
        !self.fencing
    }

    fn end_fence(&mut self, exposed: &mut impl Exposed) {
        if !self.fencing || self.arrived < self.expected {
            return;
        }
        self.fencing = false;
        self.fences += 1;
        exposed.over(During::Fence, None);
        let fences = self.fences;
        let mut ready = Vec::new();
        for (origin, stream) in self.streams.iter_mut() {
            if stream.gate == Gate::Fence(fences) {
                (stream.gate, stream.mode) = (Gate::Open, Mode::Fence);
                ready.push(origin);
            }
        }
        self.run(ready, exposed);
    }

    /// MPI_Win_post.
    pub fn post(&mut self, origins: impl Iterator<Item = u32>) {
        self.posted.clear();
        self.posted.extend(origins);
        self.posted.sort_unstable();
    }

    /// Whether all origins of the posted epoch have completed.
    pub fn has_completed(&self) -> bool {
        self.posted.is_empty()
    }

    /// Origins of the posted epoch that have not completed.
    pub fn not_completed(&self) -> impl Iterator<Item = u32> {
        self.posted.iter().copied()
    }

    /// Continues with an origin, and with others that get a lock.
    fn run_one(&mut self, origin: u32, exposed: &mut impl Exposed) {
        let mut others = Vec::new();
        while self.step(origin, exposed, &mut others) {}
        self.run(others, exposed);
    }

    /// Continues with these origins, and with others that get a lock.
    fn run(&mut self, mut origins: Vec<u32>, exposed: &mut impl Exposed) {
        while let Some(origin) = origins.pop() {
            while self.step(origin, exposed, &mut origins) {}
        }
        self.end_fence(exposed);
    }

    /// Takes the next frame of an origin; returns whether there was one and it could be taken.
    fn step(&mut self, origin: u32, exposed: &mut impl Exposed, others: &mut Vec<u32>) -> bool {
        if !self.pass(origin, exposed, others) {
            return false;
        }
        let Some(stream) = self.streams.get_mut(origin) else {
            return false;
        };
        let Some(batch) = stream.batches.pop_front() else {
            return false;
        };
        let read = std::mem::take(&mut stream.read);
        let read = read + self.take_frame(origin, &batch[read..], exposed);
        if read < batch.len()
            && let Some(stream) = self.streams.get_mut(origin)
        {
            stream.read = read;
            stream.batches.push_front(batch);
        }
        true
    }

    /// Whether the next frame of an origin may be taken. Ends the wait of its stream, if the reason
    /// is over.
    #[inline(always)]
    fn pass(&mut self, origin: u32, exposed: &mut impl Exposed, others: &mut Vec<u32>) -> bool {
        match self.streams.get(origin) {
            Some(stream) if stream.gate == Gate::Open => true,
            Some(_) => self.end_wait(origin, exposed, others),
            None => false,
        }
    }

    fn end_wait(&mut self, origin: u32, exposed: &mut impl Exposed, others: &mut Vec<u32>) -> bool {
        let Some(stream) = self.streams.get_mut(origin) else {
            return false;
        };
        match stream.gate {
            Gate::Open => {}
            Gate::Lock | Gate::Fence(_) => return false,
            Gate::Answer { .. } | Gate::Complete if stream.pending > 0 => return false,
            Gate::Complete => {
                (stream.gate, stream.mode) = (Gate::Open, Mode::None);
                if let Ok(at) = self.posted.binary_search(&origin) {
                    self.posted.remove(at);
                }
            }
            Gate::Answer { tag, unlock } => {
                stream.gate = Gate::Open;
                exposed.answer(origin, tag, std::mem::take(&mut stream.refused));
                if stream.mode.during() == Some(During::Lock) {
                    exposed.over(During::Lock, Some(origin));
                }
                if unlock && std::mem::take(&mut stream.mode) == Mode::Locked {
                    for granted in exposed.unlock(origin) {
                        self.grant(granted);
                        others.push(granted);
                    }
                }
            }
        }
        true
    }

    /// Takes the first of an origin's frames; returns how many bytes of them are done with.
    fn take_frame(&mut self, origin: u32, bytes: &[u8], exposed: &mut impl Exposed) -> usize {
        let (Some((frame, rest)), Some(stream)) =
            (Frame::decode(bytes), self.streams.get_mut(origin))
        else {
            // The peer is faulty: its frames cannot be trusted.
            self.broken = true;
            return bytes.len();
        };
        let len = bytes.len() - rest.len();
        match frame {
            Frame::Op(op) => {
                // A reply tells its origin that it was refused: the next answer does not.
                let replies = op.has_reply();
                let op = op.with_place(|p| stream.place(p)).filter(fits);
                let Some(op) = op.filter(|_| stream.mode != Mode::None) else {
                    self.broken = true;
                    return len;
                };
                match exposed.apply(origin, op) {
                    Applied::GoesOn => {
                        stream.pending += 1;
                        stream.fenced += (stream.mode == Mode::Fence) as u64;
                    }
                    how => {
                        stream.refused |= how == Applied::Refused && !replies;
                        self.arrived += (stream.mode == Mode::Fence) as u64;
                    }
                }
            }
            Frame::Lock(mode) => match exposed.lock(origin, mode) {
                true => stream.mode = Mode::Locked,
                false => stream.gate = Gate::Lock,
            },
            Frame::CalledAt { lasts, site } => {
                if let Some(during) = stream.mode.during() {
                    exposed.called_at(origin, during, lasts, site);
                }
            }
            control => self.broken |= !stream.take(control, self.fences),
        }
        len
    }
}

impl Stream {
    /// Takes a frame that is neither an operation nor about the lock; returns whether there may be
    /// one.
    fn take(&mut self, frame: Frame<'_>, fences: u64) -> bool {
        match frame {
            Frame::Unchecked => self.mode = Mode::Unchecked,
            Frame::Start => self.mode = Mode::Started,
            Frame::Complete => self.gate = Gate::Complete,
            Frame::Unlock { tag } => self.gate = Gate::Answer { tag, unlock: true },
            Frame::Flush { tag } => self.gate = Gate::Answer { tag, unlock: false },
            Frame::Fence(number) if number > fences => self.gate = Gate::Fence(number),
            Frame::Fence(_) => self.mode = Mode::Fence,
            Frame::ForgetTypes => self.types.clear(),
            Frame::Type { id, layout } => match Layout::decode(layout) {
                Some(layout) if self.types.len() < MOST_TYPES => {
                    self.types.insert(id, Arc::new(layout));
                }
                _ => return false,
            },
            Frame::Lock(_) | Frame::CalledAt { .. } | Frame::Op(_) | Frame::Post | Frame::Wake => {
                return false;
            }
        }
        true
    }

    fn place(&self, place: TargetLocation) -> Option<Placed<'_>> {
        Some(match place {
            TargetLocation::Row { at, len } => Placed {
                at,
                count: len,
                layout: None,
            },
            TargetLocation::Typed { at, count, id } => Placed {
                at,
                count,
                layout: Some(self.types.get(&id)?),
            },
        })
    }
}

/// Whether the data of an operation lies inside the data of its place.
fn fits(op: &Operation<'_, Placed<'_>>) -> bool {
    let room = |place: &Placed<'_>, end: Option<u64>| match (place.len(), end) {
        (Some(len), Some(end)) => end <= len,
        _ => false,
    };
    match op {
        Operation::Put { place, data } => room(place, Some(data.len() as u64)),
        Operation::Accumulate(how) => room(&how.place, how.from.checked_add(how.len)),
        Operation::PutLong { .. } | Operation::Get { .. } | Operation::CompareAndSwap { .. } => {
            true
        }
    }
}
