//! This rank as a target: its memory, which ranks hold its lock, and operations of others on it.

use super::channel::Channel;
use super::check::{Checks, Whose};
use super::combine::{Combine, combines, compare_and_swap};
use super::locks::Locks;
use super::memory::Area;
use super::tally::Tally;
use crate::messages::{Messages, ReqId, Started};
use kw_proto::rma::{
    AccessKind, Accumulate, Applied, During, Exposed, Frame, LockMode, Operation, Placed, Target,
};
use kw_sys::buf::Buf;
use kw_sys::reduce::Op;
use kw_types::layout::Basic;

/// Most bytes that are sent back without memory of their own.
const SHORT: usize = 64;

/// An active long put or get of another rank.
#[derive(Debug)]
struct Going {
    req: ReqId,
    origin: u32,
    /// It was refused, and is only waited for.
    refused: bool,
}

/// The memory of this rank, and what others have under way on it.
#[derive(Debug)]
pub(super) struct ExposedMemory {
    pub channel: Channel,
    pub area: Area,
    pub locks: Locks,
    /// Ranks that have been granted the lock and have not been told yet.
    granted: Vec<u32>,
    going: Vec<Going>,
    pub checks: Option<Checks>,
    /// Counts of operations of others.
    pub tally: Tally,
}

impl ExposedMemory {
    /// The memory as conflicts name it.
    pub fn whose(&self) -> Whose {
        Whose {
            base: self.area.base(),
            rank: self.channel.me,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Exposure {
    pub target: Target,
    pub memory: ExposedMemory,
}

impl Exposure {
    pub fn new(channel: Channel, area: Area, locks: Locks, checks: Option<Checks>) -> Exposure {
        Exposure {
            target: Target::default(),
            memory: ExposedMemory {
                channel,
                area,
                locks,
                granted: Vec::new(),
                going: Vec::new(),
                checks,
                tally: Tally::default(),
            },
        }
    }

    /// The state of other ranks' accesses, and the means to carry them out.
    fn serving<'a>(&'a mut self, messages: &'a mut Messages) -> (&'a mut Target, Serving<'a>) {
        let memory = &mut self.memory;
        (&mut self.target, Serving { memory, messages })
    }

    /// Whether no operation is under way that others wait for, and no rank waits for the lock.
    pub fn is_settled(&self) -> bool {
        self.memory.going.is_empty() && !self.memory.locks.is_awaited()
    }

    /// Applies frames of a rank of the window; returns how many posts are among them.
    pub fn apply(&mut self, messages: &mut Messages, origin: u32, bytes: &[u8]) -> u32 {
        let (mut posts, mut woken) = (0, false);
        let (target, mut side) = self.serving(messages);
        target.on_frames(origin, bytes, &mut side, |notice| {
            posts += (notice == Frame::Post) as u32;
            woken |= notice == Frame::Wake;
        });
        match woken {
            true => self.grant(messages),
            false => self.pass_on(messages),
        }
        if self.target.take_broken() {
            tracing::error!("rank {origin} of a window sent an invalid operation");
        }
        posts
    }

    /// The second half of a fence: this many operations on this memory belong to the epoch.
    pub fn fence(&mut self, messages: &mut Messages, expected: u64) {
        let (target, mut side) = self.serving(messages);
        target.fence(expected, &mut side);
    }

    /// Takes the results of long puts and gets of others that have ended; returns whether there
    /// were any.
    pub fn end_going(&mut self, messages: &mut Messages) -> bool {
        let mut ended = Vec::new();
        let going = &mut self.memory.going;
        going.retain(|going| match messages.requests_mut().take(going.req) {
            None => true,
            Some(outcome) => {
                ended.push((going.origin, going.refused || outcome.failure.is_some()));
                false
            }
        });
        for &(origin, failed) in &ended {
            let (target, mut side) = self.serving(messages);
            target.ended(origin, failed, &mut side);
        }
        !ended.is_empty()
    }

    /// Gives the lock back for a rank.
    pub fn release(&mut self, messages: &mut Messages, rank: u32) {
        let granted = self.memory.locks.release(rank);
        self.memory.granted.extend(granted);
        self.pass_on(messages);
    }

    /// Grants the lock to waiting ranks, as far as it is free.
    pub fn grant(&mut self, messages: &mut Messages) {
        let granted = self.memory.locks.grant();
        self.memory.granted.extend(granted);
        self.pass_on(messages);
    }

    /// Gives back the lock if a rank holds it that has died, and others wait; returns whether there
    /// was one.
    pub fn free_lock_of_dead(&mut self, messages: &mut Messages) -> bool {
        let ExposedMemory { channel, locks, .. } = &self.memory;
        if !locks.is_awaited() {
            return false;
        }
        let peers = &messages.machine.endpoint.peers;
        let is_gone =
            |&rank: &u32| rank < channel.size() && peers.why_gone(channel.peer(rank)).is_some();
        let Some(dead) = locks.holders().into_iter().find(is_gone) else {
            return false;
        };
        self.release(messages, dead);
        true
    }

    /// Wakes the ranks that have got the lock.
    fn pass_on(&mut self, messages: &mut Messages) {
        while !self.memory.granted.is_empty() {
            let granted = std::mem::take(&mut self.memory.granted);
            let (target, mut side) = self.serving(messages);
            target.granted(granted, &mut side);
        }
    }
}

/// The memory with the means to answer.
struct Serving<'a> {
    memory: &'a mut ExposedMemory,
    messages: &'a mut Messages,
}

impl Serving<'_> {
    fn reply(&mut self, origin: u32, tag: i32, data: &Buf) {
        let channel = &self.memory.channel;
        channel.send_and_forget(self.messages, origin, tag, data);
    }

    /// Answers without data.
    fn refuse(&mut self, origin: u32, tag: i32) {
        self.reply(origin, tag, &Buf::EMPTY);
    }

    fn reply_bytes(&mut self, origin: u32, tag: i32, bytes: &[u8]) {
        let channel = &self.memory.channel;
        channel.send_bytes(self.messages, origin, tag, bytes);
    }

    /// An operation of an origin.
    fn note(&mut self, origin: u32, kind: AccessKind, memory: &Buf) {
        if self.memory.checks.is_none() {
            return;
        }
        let whose = self.memory.whose();
        if let Some(checks) = &mut self.memory.checks {
            checks.access(whose, origin, kind, memory);
        }
    }

    fn put_long(&mut self, origin: u32, place: &Placed<'_>, tag: i32) -> Applied {
        let found = self.memory.area.find(place);
        let refused = found.is_none();
        let into = found.unwrap_or(Buf::EMPTY);
        self.note(origin, AccessKind::Put, &into);
        let req = self.memory.channel.expect(self.messages, origin, tag, into);
        self.memory.going.push(Going {
            req,
            origin,
            refused,
        });
        Applied::GoesOn
    }

    fn get(&mut self, origin: u32, place: &Placed<'_>, tag: i32) -> Applied {
        let Some(from) = self.memory.area.find(place) else {
            self.refuse(origin, tag);
            return Applied::Refused;
        };
        self.note(origin, AccessKind::Get, &from);
        match self.memory.channel.send(self.messages, origin, tag, &from) {
            Started::Done => Applied::Done,
            Started::Request(req) => {
                self.memory.going.push(Going {
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
        let all = self.memory.area.find(place)?;
        if from == 0 && len == all.len() {
            return Some(all);
        }
        let inside = from.checked_add(len).is_some_and(|end| end <= all.len());
        inside.then(|| all.slice(from, len))
    }

    /// Combines; the old data is sent back if it is requested.
    fn accumulate(&mut self, origin: u32, how: &Accumulate<'_, Placed<'_>>) -> Applied {
        let target = self.part(&how.place, how.from, how.len);
        let combine = Op::by_handle(how.op as usize).and_then(|op| Combine::find(op, how.basic));
        let (Some(target), Some(combine)) = (target, combine) else {
            if let Some(tag) = how.reply {
                self.refuse(origin, tag);
            }
            return Applied::Refused;
        };
        let kind = combines(combine.op, how.basic);
        self.note(origin, kind, &target);
        if let Some(tag) = how.reply
            && how.len <= SHORT as u64
        {
            let mut before = [0; SHORT];
            let before = &mut before[..how.len as usize];
            self.memory.area.combining(|| {
                target.read(0, before);
                combine.run(how.data, &target);
            });
            self.reply_bytes(origin, tag, before);
            return Applied::Done;
        }
        let before = match how.reply {
            None => Buf::EMPTY,
            Some(tag) => match Buf::try_alloc(target.len() as usize) {
                Some(room) => room,
                None => {
                    self.refuse(origin, tag);
                    return Applied::Refused;
                }
            },
        };
        self.memory.area.combining(|| {
            target.copy_to(0, &before, 0, before.len());
            combine.run(how.data, &target);
        });
        if let Some(tag) = how.reply {
            self.reply(origin, tag, &before);
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
        let Some(target) = self.memory.area.find(&place) else {
            self.refuse(origin, tag);
            return Applied::Refused;
        };
        self.note(origin, AccessKind::Swap, &target);
        let area = &self.memory.area;
        let before = area.combining(|| compare_and_swap(&target, (compare, swap)));
        self.reply_bytes(origin, tag, &before[..compare.len()]);
        Applied::Done
    }
}

impl Exposed for Serving<'_> {
    fn apply(&mut self, origin: u32, op: Operation<'_, Placed<'_>>) -> Applied {
        self.memory.tally.served += 1;
        match op {
            Operation::Put { place, data } => match self.memory.area.find(&place) {
                Some(target) => {
                    if self.memory.checks.is_some() {
                        let touched = target.slice(0, data.len() as u64);
                        self.note(origin, AccessKind::Put, &touched);
                    }
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
        match &mut self.memory.checks {
            None => self.reply_bytes(origin, tag, &[refused as u8]),
            Some(checks) => {
                let mut bytes = vec![refused as u8];
                bytes.extend(checks.answer(origin));
                self.reply_bytes(origin, tag, &bytes);
            }
        }
    }

    fn lock(&mut self, origin: u32, mode: LockMode) -> bool {
        let ExposedMemory { locks, granted, .. } = &mut *self.memory;
        let has_it = locks.request(origin, mode, granted);
        self.memory.tally.lock_waits += !has_it as u64;
        has_it
    }

    fn unlock(&mut self, origin: u32) -> Vec<u32> {
        self.memory.locks.release(origin)
    }

    fn called_at(&mut self, origin: u32, during: During, lasts: bool, site: &[u8]) {
        if let Some(checks) = &mut self.memory.checks {
            checks.called_at(origin, during, lasts, site);
        }
    }

    fn over(&mut self, during: During, origin: Option<u32>) {
        if let Some(checks) = &mut self.memory.checks {
            checks.end(during, origin);
        }
    }
}
