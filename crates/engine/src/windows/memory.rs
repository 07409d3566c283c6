//! The memory that a rank exposes in a window, and operations of others on it.

use super::Window;
use super::check::{Checks, Whose};
use super::locks::Locks;
use super::tally::Tally;
use crate::messages::{Messages, ReqId, SendMode, Started, Want};
use kw_base::{ContextId, Peer};
use kw_path::shm::window::SharedMemory;
use kw_proto::rma::{
    AccessKind, Accumulate, Applied, During, Exposed, LockMode, Operation, Placed,
};
use kw_sys::buf::{Addr, Buf};
use kw_sys::reduce::{self, Kernel};
use kw_types::comm::Group;
use kw_types::layout::Basic;
use std::sync::Arc;

/// Most bytes that are sent back without memory of their own.
const SHORT: usize = 64;

/// The memory of a window.
#[derive(Clone, Debug)]
pub enum Memory {
    /// The program's.
    Lent {
        /// Its first byte.
        base: Addr,
        /// Bytes.
        size: u64,
    },
    /// Allocated for the window.
    Own(Buf),
    /// Shared with ranks of the host.
    Shared {
        /// The memory of all of them.
        memory: Arc<SharedMemory>,
        /// The rank in the window of each place in it.
        ranks: Vec<u32>,
    },
    /// The attached regions.
    Dynamic,
}

/// A region that the program has attached to a dynamic window.
#[derive(Clone, Copy, Debug)]
struct Attached {
    base: Addr,
    size: u64,
}

impl Attached {
    fn first(&self) -> i128 {
        self.base.bits() as i128
    }

    fn end(&self) -> i128 {
        self.first() + self.size as i128
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Area {
    memory: Memory,
    /// Attached regions, by address.
    attached: Vec<Attached>,
}

impl Area {
    pub fn new(memory: Memory) -> Area {
        Area {
            memory,
            attached: Vec::new(),
        }
    }

    /// Base of displacements.
    pub fn base(&self) -> usize {
        match &self.memory {
            Memory::Lent { base, .. } => base.bits(),
            Memory::Own(buf) => buf.contiguous().unwrap_or_default(),
            Memory::Shared { memory, .. } => memory.part(memory.index()).0.bits(),
            Memory::Dynamic => 0,
        }
    }

    /// Whether any byte of a buffer is exposed.
    pub fn shares_memory(&self, buf: &Buf) -> bool {
        match &self.memory {
            Memory::Lent { base, size } => Buf::bytes(*base, *size).shares_memory(buf),
            Memory::Own(own) => own.shares_memory(buf),
            Memory::Shared { memory, .. } => {
                let (base, size) = memory.part(memory.index());
                Buf::bytes(base, size).shares_memory(buf)
            }
            Memory::Dynamic => {
                let mut all = self.attached.iter();
                all.any(|a| Buf::bytes(a.base, a.size).shares_memory(buf))
            }
        }
    }

    pub fn is_dynamic(&self) -> bool {
        matches!(self.memory, Memory::Dynamic)
    }

    /// Attaches a region; returns whether it overlaps none that is attached.
    pub fn attach(&mut self, base: Addr, size: u64) -> bool {
        let new = Attached { base, size };
        let mut others = self.attached.iter();
        if others.any(|a| a.first() < new.end() && new.first() < a.end() || a.base == base) {
            return false;
        }
        let at = self.attached.partition_point(|a| a.first() < new.first());
        self.attached.insert(at, new);
        true
    }

    /// Detaches the region that begins at an address; returns whether there was one.
    pub fn detach(&mut self, base: Addr) -> bool {
        let at = self.attached.iter().position(|a| a.base == base);
        at.map(|at| self.attached.remove(at)).is_some()
    }

    /// The data of a place, if all of it is exposed.
    pub fn find(&self, place: &Placed<'_>) -> Option<Buf> {
        let len = place.len()?;
        let Some((first, end)) = place.reach() else {
            return Some(Buf::EMPTY);
        };
        let size = match &self.memory {
            Memory::Lent { size, .. } => *size,
            Memory::Own(buf) => buf.len(),
            Memory::Shared { memory, .. } => memory.part(memory.index()).1,
            Memory::Dynamic => return self.find_attached(place, len, (first, end)),
        };
        if first < 0 || end > size as i128 {
            return None;
        }
        Some(match (&self.memory, place.layout) {
            (Memory::Own(buf), Some(layout)) => buf.typed_at(place.at, place.count, layout),
            (Memory::Own(buf), None) => buf.slice(place.at as u64, len),
            (Memory::Lent { base, .. }, _) => lent(base.assume_offset(place.at), place),
            (Memory::Shared { memory, .. }, _) => {
                let (base, _) = memory.part(memory.index());
                lent(base.assume_offset(place.at), place)
            }
            (Memory::Dynamic, _) => return None,
        })
    }

    /// Runs `what` while no other rank combines with this rank's memory.
    fn combining<T>(&self, what: impl FnOnce() -> T) -> T {
        match &self.memory {
            Memory::Shared { memory, .. } => memory.combine(memory.index(), what),
            // All ranks come through the owner of the lock.
            _ => what(),
        }
    }

    /// The same if displacements are addresses.
    fn find_attached(
        &self,
        place: &Placed<'_>,
        len: u64,
        (first, end): (i128, i128),
    ) -> Option<Buf> {
        let after = self.attached.partition_point(|a| a.first() <= first);
        let region = self.attached.get(after.checked_sub(1)?)?;
        let mut reached = region.end();
        for next in &self.attached[after..] {
            if reached >= end || next.first() != reached {
                break;
            }
            reached = next.end();
        }
        let away = place.at as i128 - region.first();
        let away = i64::try_from(away).ok().filter(|_| reached >= end)?;
        (len != 0).then(|| lent(region.base.assume_offset(away), place))
    }
}

/// The kind of access that an accumulate is for other accesses.
pub(super) fn combines(op: reduce::Op, basic: Basic) -> AccessKind {
    AccessKind::Accumulate {
        op: op.handle(),
        writes: op != reduce::Op::NoOp,
        basic,
    }
}

fn lent(at: Addr, place: &Placed<'_>) -> Buf {
    match place.layout {
        Some(layout) => Buf::typed(at, place.count, layout),
        None => Buf::bytes(at, place.count),
    }
}

/// An active long put or get of another rank.
#[derive(Debug)]
pub(super) struct Going {
    pub req: ReqId,
    pub origin: u32,
    /// It was refused, and is only waited for.
    pub refused: bool,
}

/// The memory of a window with the means to answer.
pub(super) struct ExposedMemory<'a> {
    pub checks: Option<&'a mut Checks>,
    pub whose: Whose,
    pub tally: &'a mut Tally,
    pub area: &'a Area,
    pub locks: &'a mut Locks,
    /// Ranks that have got the lock, and have not been told.
    pub granted: &'a mut Vec<u32>,
    pub going: &'a mut Vec<Going>,
    pub messages: &'a mut Messages,
    pub context: ContextId,
    pub group: &'a Group,
    pub me: u32,
}

impl ExposedMemory<'_> {
    fn peer(&self, rank: u32) -> Peer {
        self.group.peer(rank)
    }

    fn reply(&mut self, origin: u32, tag: i32, data: &Buf) -> Started {
        let to = self.peer(origin);
        let from = (self.context, self.me, tag);
        self.messages.send(to, from, SendMode::Standard, data)
    }

    /// Like [`ExposedMemory::reply`], for data that does not change.
    fn reply_and_forget(&mut self, origin: u32, tag: i32, data: &Buf) {
        if let Started::Request(req) = self.reply(origin, tag, data) {
            self.messages.release(req);
        }
    }

    /// An operation of an origin.
    fn note(&mut self, origin: u32, kind: AccessKind, memory: &Buf) {
        if let Some(checks) = &mut self.checks {
            checks.access(self.whose, origin, kind, memory);
        }
    }

    /// Sends back few bytes.
    fn reply_bytes(&mut self, origin: u32, tag: i32, bytes: &[u8]) {
        let (to, from) = (self.peer(origin), (self.context, self.me, tag));
        let write = |out: &mut [u8]| out.copy_from_slice(bytes);
        if self.messages.send_at_once(to, from, bytes.len(), write) {
            return;
        }
        let data = Buf::alloc(bytes.len());
        data.write(0, bytes);
        self.reply_and_forget(origin, tag, &data);
    }

    fn put_long(&mut self, origin: u32, place: &Placed<'_>, tag: i32) -> Applied {
        let found = self.area.find(place);
        let refused = found.is_none();
        let into = found.unwrap_or(Buf::EMPTY);
        self.note(origin, AccessKind::Put, &into);
        let want = Want {
            context: self.context,
            source: Some((origin, self.peer(origin))),
            tag: Some(tag),
        };
        let req = self.messages.recv(want, into);
        self.going.push(Going {
            req,
            origin,
            refused,
        });
        Applied::GoesOn
    }

    fn get(&mut self, origin: u32, place: &Placed<'_>, tag: i32) -> Applied {
        let Some(from) = self.area.find(place) else {
            self.reply_and_forget(origin, tag, &Buf::EMPTY);
            return Applied::Refused;
        };
        self.note(origin, AccessKind::Get, &from);
        match self.reply(origin, tag, &from) {
            Started::Done => Applied::Done,
            Started::Request(req) => {
                self.going.push(Going {
                    req,
                    origin,
                    refused: false,
                });
                Applied::GoesOn
            }
        }
    }

    /// Part of the data of a place.
    fn part(&self, place: &Placed<'_>, from: u64, len: u64) -> Option<Buf> {
        let all = self.area.find(place)?;
        let inside = from.checked_add(len).is_some_and(|end| end <= all.len());
        inside.then(|| all.slice(from, len))
    }

    /// Combines; the old data is sent back if it is requested.
    fn accumulate(&mut self, origin: u32, how: &Accumulate<'_, Placed<'_>>) -> Applied {
        let target = self.part(&how.place, how.from, how.len);
        let kernel = reduce::Op::by_handle(how.op as usize)
            .and_then(|op| Some((op, Kernel::find(op, how.basic)?)));
        let (Some(target), Some((op, kernel))) = (target, kernel) else {
            if let Some(tag) = how.reply {
                self.reply_and_forget(origin, tag, &Buf::EMPTY);
            }
            return Applied::Refused;
        };
        let kind = combines(op, how.basic);
        self.note(origin, kind, &target);
        if let Some(tag) = how.reply
            && how.len <= SHORT as u64
        {
            let mut before = [0; SHORT];
            let before = &mut before[..how.len as usize];
            self.area.combining(|| {
                target.read(0, before);
                if op != reduce::Op::NoOp {
                    kernel.combine_packed(how.basic, how.data, &target);
                }
            });
            self.reply_bytes(origin, tag, before);
            return Applied::Done;
        }
        let before = match how.reply {
            None => Buf::EMPTY,
            Some(tag) => match Buf::try_alloc(target.len() as usize) {
                Some(room) => room,
                None => {
                    self.reply_and_forget(origin, tag, &Buf::EMPTY);
                    return Applied::Refused;
                }
            },
        };
        self.area.combining(|| {
            target.copy_to(0, &before, 0, before.len());
            if op != reduce::Op::NoOp {
                kernel.combine_packed(how.basic, how.data, &target);
            }
        });
        if let Some(tag) = how.reply {
            self.reply_and_forget(origin, tag, &before);
        }
        Applied::Done
    }

    fn compare_and_swap(
        &mut self,
        origin: u32,
        element: (i64, Basic),
        tag: i32,
        (compare, swap): (&[u8], &[u8]),
    ) -> Applied {
        let (at, basic) = element;
        let place = Placed {
            at,
            count: basic.size(),
            layout: None,
        };
        let Some(target) = self.area.find(&place) else {
            self.reply_and_forget(origin, tag, &Buf::EMPTY);
            return Applied::Refused;
        };
        self.note(origin, AccessKind::Swap, &target);
        let mut now = [0; 32];
        let now = &mut now[..compare.len()];
        self.area.combining(|| {
            target.read(0, now);
            if now == compare {
                target.write(0, swap);
            }
        });
        self.reply_bytes(origin, tag, now);
        Applied::Done
    }
}

impl Exposed for ExposedMemory<'_> {
    fn apply(&mut self, origin: u32, op: Operation<'_, Placed<'_>>) -> Applied {
        self.tally.served += 1;
        match op {
            Operation::Put { place, data } => match self.area.find(&place) {
                Some(target) => {
                    let touched = target.slice(0, data.len() as u64);
                    self.note(origin, AccessKind::Put, &touched);
                    target.write(0, data);
                    Applied::Done
                }
                None => Applied::Refused,
            },
            Operation::PutLong { place, tag } => self.put_long(origin, &place, tag),
            Operation::Get { place, tag } => self.get(origin, &place, tag),
            Operation::Accumulate(how) => self.accumulate(origin, &how),
            Operation::CompareAndSwap {
                at,
                basic,
                tag,
                compare,
                swap,
            } => self.compare_and_swap(origin, (at, basic), tag, (compare, swap)),
        }
    }

    fn answer(&mut self, origin: u32, tag: i32, refused: bool) {
        match &mut self.checks {
            None => self.reply_bytes(origin, tag, &[refused as u8]),
            Some(checks) => {
                let mut bytes = vec![refused as u8];
                bytes.extend(checks.answer(origin));
                self.reply_bytes(origin, tag, &bytes);
            }
        }
    }

    fn lock(&mut self, origin: u32, mode: LockMode) -> bool {
        let mut granted = self.locks.request(origin, mode);
        let own = granted.iter().position(|&g| g == origin);
        own.map(|at| granted.swap_remove(at));
        self.granted.append(&mut granted);
        self.tally.lock_waits += own.is_none() as u64;
        own.is_some()
    }

    fn unlock(&mut self, origin: u32) -> Vec<u32> {
        self.locks.release(origin)
    }

    fn called_at(&mut self, origin: u32, during: During, lasts: bool, site: &[u8]) {
        if let Some(checks) = &mut self.checks {
            checks.called_at(origin, during, lasts, site);
        }
    }

    fn over(&mut self, during: During, origin: Option<u32>) {
        if let Some(checks) = &mut self.checks {
            checks.end(during, origin);
        }
    }
}

impl Window {
    /// Takes the results of long puts and gets of others that have ended; returns whether there
    /// were any.
    pub(super) fn end_going(&mut self, messages: &mut Messages) -> bool {
        let mut ended = Vec::new();
        self.going.retain(|going| match messages.take(going.req) {
            None => true,
            Some(outcome) => {
                ended.push((going.origin, going.refused || outcome.failure.is_some()));
                false
            }
        });
        for &(origin, failed) in &ended {
            let (target, mut side) = self.exposed(messages);
            target.ended(origin, failed, &mut side);
        }
        !ended.is_empty()
    }
}
