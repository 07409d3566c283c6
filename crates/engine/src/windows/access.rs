//! Operations of this rank on the memory of others.
//!
//! Short data travels inside its frame, and is copied when the operation is issued. Data of more
//! than [`INLINE`] bytes travels in a message of its own, from and to the memory of the program.
//! An accumulate's operands are cut into pieces, each in a frame.

use super::check::during;
use super::combine::combines;
use super::flights::What;
use super::outgoing::INLINE;
use super::{Extent, WinId, Window, WindowError, Windows};
use crate::messages::{Messages, Started};
use kw_proto::rma::{Access, AccessKind, Accumulate, Frame, Operation, Placed, TargetLocation};
use kw_sys::buf::Buf;
use kw_sys::reduce::Op;
use kw_types::layout::{Basic, Layout};
use std::sync::Arc;

/// Operands in one frame, in bytes.
const PIECE: u64 = 16 << 10;

/// Target of an operation: elements of a datatype in the window of a rank.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The target.
    pub rank: u32,
    /// Displacement in units of the target; in a dynamic window an address.
    pub disp: i64,
    /// Elements.
    pub count: u64,
    /// Datatype.
    pub layout: &'a Arc<Layout>,
}

/// The operation that was issued last: [`Windows::request`] waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    rank: u32,
    last: u64,
}

impl Span {
    /// An operation that has ended.
    fn ended(rank: u32) -> Span {
        Span { rank, last: 0 }
    }
}

/// Place of the data of an operation.
enum Site {
    /// There is no data.
    Nowhere,
    /// In memory in reach.
    Here(Buf),
    /// This many bytes of a target that gets messages.
    There(TargetLocation, u64),
}

/// An operand of an accumulate: the operation, and its elements.
type Combining = (Op, Basic);

/// The first byte of a displacement in the memory of a rank.
fn first_byte(target: &Extent, to: &At<'_>) -> Result<i64, WindowError> {
    let (unit, At { rank, disp, .. }) = (target.unit, to);
    let at = *disp as i128 * unit as i128;
    i64::try_from(at).map_err(|_| {
        WindowError::Range(format!(
            "displacement {disp} in units of {unit} B is far outside the window of rank {rank}"
        ))
    })
}

/// Whether an operation stays inside the memory of its target.
fn check_range(target: &Extent, at: i64, to: &At<'_>) -> Result<(), WindowError> {
    let size = target.size;
    let reach = to.layout.reach(at, to.count);
    match reach.filter(|&(first, end)| first < 0 || end > size as i128) {
        None => Ok(()),
        Some((first, end)) => Err(WindowError::Range(format!(
            "bytes {first} to {end} are outside the window of rank {}, which has {size} B",
            to.rank
        ))),
    }
}

/// Cuts `len` bytes of operands into pieces of whole elements, each with the data of its own:
/// `piece` gets its first byte, its length and its data.
pub(super) fn in_pieces(
    scratch: &mut Vec<u8>,
    operand: &Buf,
    (len, basic): (u64, Basic),
    mut piece: impl FnMut(u64, u64, &[u8]),
) {
    let most = PIECE - PIECE % basic.size();
    let mut from = 0;
    while from < len {
        let some = most.min(len - from);
        scratch.resize(some.min(operand.len()) as usize, 0);
        operand.read(from, scratch);
        piece(from, some, scratch);
        from += some;
    }
}

impl Window {
    /// Checks an operation; returns where it works.
    fn place(&mut self, to: &At<'_>) -> Result<Site, WindowError> {
        self.epochs.check_access(to.rank)?;
        let target = &self.targets[to.rank as usize];
        let at = first_byte(target, to)?;
        if !self.exposure.memory.area.is_dynamic() {
            check_range(target, at, to)?;
        }
        let len = to.layout.size() * to.count;
        if len == 0 {
            return Ok(Site::Nowhere);
        }
        let is_direct = self.near.is_direct(to.rank);
        self.tally.operation(is_direct, len);
        if is_direct {
            return match self.reach(at, to) {
                Some(target) => Ok(Site::Here(target)),
                None => Err(WindowError::Range(
                    "it names memory that this rank has not attached to its window".into(),
                )),
            };
        }
        let place = match to.layout.contiguous(to.count) {
            Some(offset) => TargetLocation::Row {
                at: at.wrapping_add(offset),
                len,
            },
            None => TargetLocation::Typed {
                at,
                count: to.count,
                id: self.out.type_of(to.rank, to.layout),
            },
        };
        Ok(Site::There(place, len))
    }

    /// The memory of an operation whose target is in reach; its bounds have been checked. For a
    /// dynamic window: `None` if it is not attached.
    fn reach(&self, at: i64, to: &At<'_>) -> Option<Buf> {
        match to.rank == self.channel.me {
            true => self.exposure.memory.area.find(&Placed {
                at,
                count: to.count,
                layout: Some(to.layout),
            }),
            false => self.near.memory_of(at, to),
        }
    }

    /// Whether operations of the current epoch end with a flush, most often.
    fn is_to_flush(&self) -> bool {
        matches!(self.epochs.access(), Access::LockedAll)
    }

    /// Notes the memory that an operation of this rank uses here.
    fn use_buffer(&mut self, target: u32, buf: &Buf, writes: bool) -> Result<(), WindowError> {
        let during = during(&self.epochs);
        let memory = &mut self.exposure.memory;
        memory.use_buffer(during, target, buf, writes)
    }

    /// Notes an operation of this rank on its own memory.
    fn note_own(&mut self, kind: AccessKind, fetches: bool, memory: &Buf) {
        let during = during(&self.epochs);
        let exposed = &mut self.exposure.memory;
        exposed.note_own(during, (kind, fetches), memory);
    }

    /// With KW_CHECK, tells the target where the next operation is called. `fetches`: its request
    /// ends when it has ended at the target, too; `known`: it touches all of its place.
    fn tell_call(&mut self, rank: u32, fetches: bool, known: bool) {
        let Some(checks) = &self.exposure.memory.checks else {
            return;
        };
        let (lasts, site) = checks.call(fetches);
        let site = if known { &site[..] } else { &[] };
        let frame = Frame::CalledAt { lasts, site };
        self.out.origin.push_control(rank, frame);
    }

    fn put(
        &mut self,
        messages: &mut Messages,
        data: &Buf,
        to: &At<'_>,
    ) -> Result<Span, WindowError> {
        let site = self.place(to)?;
        self.use_buffer(to.rank, data, false)?;
        let (place, len) = match site {
            // Perhaps the target has room for more.
            Site::There(TargetLocation::Row { at, len }, _) => {
                let len = len.min(data.len());
                (TargetLocation::Row { at, len }, len)
            }
            Site::There(place, len) => (place, len.min(data.len())),
            Site::Nowhere => return Ok(Span::ended(to.rank)),
            Site::Here(target) => {
                self.note_own(AccessKind::Put, false, &target.slice(0, data.len()));
                data.copy_to(0, &target, 0, target.len());
                return Ok(Span::ended(to.rank));
            }
        };
        let known =
            matches!(place, TargetLocation::Row { .. }) || len == to.layout.size() * to.count;
        self.tell_call(to.rank, false, known);
        if len <= INLINE {
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.resize(len as usize, 0);
            data.read(0, &mut scratch);
            let data = &scratch;
            self.out
                .origin
                .push(to.rank, Operation::Put { place, data });
            self.scratch = scratch;
            let flushes = self.is_to_flush();
            self.out.issued(messages, to.rank, flushes);
            return Ok(Span::ended(to.rank));
        }
        let tag = self.out.data_tag();
        let data = data.slice(0, len);
        let rank = to.rank;
        let flushes = self.is_to_flush() && self.out.flights.is_idle(rank);
        let what = What::Unsent { tag, data };
        let last = self.out.push(messages, rank, what);
        let put = Operation::PutLong { place, tag };
        self.out.origin.push(rank, put);
        if flushes {
            self.out.ask_early(messages, rank);
        }
        self.out.push_out(messages, rank);
        Ok(Span { rank, last })
    }

    fn get(
        &mut self,
        messages: &mut Messages,
        into: &Buf,
        from: &At<'_>,
    ) -> Result<Span, WindowError> {
        let site = self.place(from)?;
        self.use_buffer(from.rank, into, true)?;
        let (place, len) = match site {
            Site::There(place, len) => (place, len),
            Site::Nowhere => return Ok(Span::ended(from.rank)),
            Site::Here(source) => {
                self.note_own(AccessKind::Get, true, &source);
                source.copy_to(0, into, 0, source.len());
                return Ok(Span::ended(from.rank));
            }
        };
        self.tell_call(from.rank, true, true);
        let out = &mut self.out;
        let (tag, last) = out.room(messages, from.rank, into.slice(0, len));
        out.origin
            .push_answered(from.rank, Operation::Get { place, tag });
        match len > INLINE {
            true => out.push_out(messages, from.rank),
            false => out.issued_answered(messages, from.rank, last),
        }
        let rank = from.rank;
        Ok(Span { rank, last })
    }

    /// An accumulate; with a `result` also the data that was there before.
    fn accumulate(
        &mut self,
        messages: &mut Messages,
        (operand, result): (&Buf, Option<&Buf>),
        to: &At<'_>,
        (op, basic): Combining,
    ) -> Result<Span, WindowError> {
        let operand = match op {
            Op::NoOp => &Buf::EMPTY,
            _ => operand,
        };
        let site = self.place(to)?;
        self.use_buffer(to.rank, operand, false)?;
        if let Some(result) = result {
            self.use_buffer(to.rank, result, true)?;
        }
        let fetches = result.is_some();
        let (place, len) = match site {
            _ if op == Op::NoOp && result.is_none() => return Ok(Span::ended(to.rank)),
            Site::There(place, len) => (place, len),
            Site::Nowhere => return Ok(Span::ended(to.rank)),
            Site::Here(target) => {
                self.note_own(combines(op, basic), fetches, &target);
                let target = (to.rank, &target);
                let (data, scratch) = ((operand, result), &mut self.scratch);
                self.near.combine(target, data, (op, basic), scratch);
                return Ok(Span::ended(to.rank));
            }
        };
        self.tell_call(to.rank, fetches, true);
        let (rank, op) = (to.rank, op.handle());
        let mut last = 0;
        let flushes = self.is_to_flush();
        let (out, scratch) = (&mut self.out, &mut self.scratch);
        in_pieces(scratch, operand, (len, basic), |from, len, data| {
            let room = result.map(|r| out.room(messages, rank, r.slice(from, len)));
            let piece = Operation::Accumulate(Accumulate {
                place,
                op,
                basic,
                from,
                len,
                data,
                reply: room.map(|(tag, _)| tag),
            });
            match room {
                Some((_, flight)) => {
                    last = flight;
                    out.origin.push_answered(rank, piece);
                    out.issued_answered(messages, rank, flight);
                }
                None => {
                    out.origin.push(rank, piece);
                    out.issued(messages, rank, flushes);
                }
            }
        });
        Ok(Span { rank, last })
    }

    fn compare_and_swap(
        &mut self,
        messages: &mut Messages,
        (compare, swap): (&[u8], &[u8]),
        result: &Buf,
        to: &At<'_>,
        basic: Basic,
    ) -> Result<Span, WindowError> {
        let site = self.place(to)?;
        self.use_buffer(to.rank, &result.slice(0, basic.size()), true)?;
        let at = match site {
            Site::There(TargetLocation::Row { at, .. } | TargetLocation::Typed { at, .. }, _) => at,
            Site::Nowhere => return Ok(Span::ended(to.rank)),
            Site::Here(target) => {
                self.note_own(AccessKind::Swap, true, &target);
                self.near.swap(to.rank, &target, (compare, swap), result);
                return Ok(Span::ended(to.rank));
            }
        };
        self.tell_call(to.rank, true, true);
        let (tag, last) = self
            .out
            .room(messages, to.rank, result.slice(0, basic.size()));
        let op = Operation::CompareAndSwap {
            at,
            basic,
            tag,
            compare,
            swap,
        };
        self.out.origin.push_answered(to.rank, op);
        self.out.issued_answered(messages, to.rank, last);
        let rank = to.rank;
        Ok(Span { rank, last })
    }
}

/// Issue an operation each. A flush, the end of the epoch or [`Windows::request`] tells whether it
/// has ended.
impl Windows {
    /// MPI_Put.
    pub fn put(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        data: &Buf,
        to: At<'_>,
    ) -> Result<Span, WindowError> {
        self.get_mut(id)?.put(messages, data, &to)
    }

    /// MPI_Get.
    pub fn get(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        into: &Buf,
        from: At<'_>,
    ) -> Result<Span, WindowError> {
        self.get_mut(id)?.get(messages, into, &from)
    }

    /// MPI_Accumulate: of elements `basic`.
    pub fn accumulate(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        operand: &Buf,
        to: At<'_>,
        op: Op,
        basic: Basic,
    ) -> Result<Span, WindowError> {
        self.get_mut(id)?
            .accumulate(messages, (operand, None), &to, (op, basic))
    }

    /// MPI_Get_accumulate and MPI_Fetch_and_op; MPI_NO_OP has no operand.
    pub fn get_accumulate(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        (operand, result): (&Buf, &Buf),
        to: At<'_>,
        op: Op,
        basic: Basic,
    ) -> Result<Span, WindowError> {
        let data = (operand, Some(result));
        self.get_mut(id)?
            .accumulate(messages, data, &to, (op, basic))
    }

    /// MPI_Compare_and_swap of one element; `values`: the one to compare with, and its replacement.
    pub fn compare_and_swap(
        &mut self,
        messages: &mut Messages,
        id: WinId,
        (compare, swap): (&[u8], &[u8]),
        result: &Buf,
        to: At<'_>,
        basic: Basic,
    ) -> Result<Span, WindowError> {
        self.get_mut(id)?
            .compare_and_swap(messages, (compare, swap), result, &to, basic)
    }

    /// The request of an operation that has just been issued: it ends when its data may be changed
    /// again, and data that it fetches is here.
    pub fn request(&mut self, messages: &mut Messages, id: WinId, span: Span) -> Started {
        match self.get_mut(id) {
            Ok(window) => window.request(messages, span.rank, span.last),
            Err(_) => Started::Done,
        }
    }
}
