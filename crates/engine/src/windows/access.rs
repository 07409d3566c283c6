//! Operations of this rank on the memory of others.
//!
//! Short data travels inside its frame, and is copied when the operation is issued. Data of more
//! than [`INLINE`] bytes travels in a message of its own, from and to the memory of the program.
//! An accumulate's operands are cut into pieces, each in a frame.

use super::flights::What;
use super::memory::combines;
use super::{MOST_ANSWER, SentTypes, WinId, Window, WindowError, Windows};
use crate::messages::{Messages, Started, Want};
use kw_proto::rma::{AHEAD, AccessKind, Accumulate, Frame, MOST_TYPES, Operation, Place};
use kw_sys::buf::Buf;
use kw_sys::reduce::Op;
use kw_types::layout::{Basic, Layout};
use std::sync::Arc;

/// Longest put that travels in its frame, in bytes: copying costs less than another message.
const INLINE: u64 = 4 << 10;
/// Operands in one frame, in bytes.
const PIECE: u64 = 16 << 10;
/// Frames are sent when there are this many bytes of them: others come later with what they wait
/// for.
const FULL: usize = 8 << 10;

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
    There(Place, u64),
}

/// An operand of an accumulate: the operation, and its elements.
type Combining = (Op, Basic);

impl Window {
    /// The first byte of a displacement.
    fn byte(&self, rank: u32, disp: i64) -> Result<i64, WindowError> {
        let unit = self.targets[rank as usize].unit;
        let at = disp as i128 * unit as i128;
        i64::try_from(at).map_err(|_| {
            WindowError::Range(format!(
                "displacement {disp} in units of {unit} B is far outside the window of rank {rank}"
            ))
        })
    }

    fn check_range(&self, at: i64, to: &At<'_>) -> Result<(), WindowError> {
        let size = self.targets[to.rank as usize].size;
        let outside = to
            .layout
            .reach(at, to.count)
            .filter(|&(first, end)| !self.area.is_dynamic() && (first < 0 || end > size as i128));
        match outside {
            None => Ok(()),
            Some((first, end)) => Err(WindowError::Range(format!(
                "bytes {first} to {end} are outside the window of rank {}, which has {size} B",
                to.rank
            ))),
        }
    }

    /// Checks an operation; returns where it works.
    fn place(&mut self, to: &At<'_>) -> Result<Site, WindowError> {
        self.epochs.check_access(to.rank)?;
        let at = self.byte(to.rank, to.disp)?;
        self.check_range(at, to)?;
        let len = to.layout.size() * to.count;
        if len == 0 {
            return Ok(Site::Nowhere);
        }
        let is_direct = self.is_direct(to.rank);
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
            Some(offset) => Place::Row {
                at: at.wrapping_add(offset),
                len,
            },
            None => Place::Typed {
                at,
                count: to.count,
                id: self.type_of(to.rank, to.layout),
            },
        };
        Ok(Site::There(place, len))
    }

    /// The number under which a target knows a datatype, which it is sent once.
    fn type_of(&mut self, rank: u32, layout: &Arc<Layout>) -> u32 {
        let SentTypes { known, next } = self.types.entry(rank).or_default();
        if let Some((_, id)) = known.iter().find(|(l, _)| Arc::ptr_eq(l, layout)) {
            return *id;
        }
        if known.len() == MOST_TYPES {
            known.clear();
            self.origin.push_control(rank, Frame::ForgetTypes);
        }
        let id = *next;
        *next = next.wrapping_add(1) & i32::MAX as u32;
        known.push((layout.clone(), id));
        let mut bytes = Vec::new();
        layout.encode(&mut bytes);
        let frame = Frame::Type { id, layout: &bytes };
        self.origin.push_control(rank, frame);
        id
    }

    /// With KW_CHECK, tells the target where the next operation is called. `fetches`: its request
    /// ends when it has ended at the target, too; `known`: it touches all of its place.
    fn tell_call(&mut self, rank: u32, fetches: bool, known: bool) {
        let Some(checks) = &self.checks else { return };
        let (lasts, site) = checks.call(fetches);
        let site = if known { &site[..] } else { &[] };
        self.origin
            .push_control(rank, Frame::CalledAt { lasts, site });
    }

    /// Sends frames if there are many.
    fn issued(&mut self, messages: &mut Messages, rank: u32) {
        if self.origin.waiting(rank) >= FULL {
            self.push_out(messages, rank);
        }
    }

    /// Sends the frames of a target, and what belongs to them, as far as they may be sent now;
    /// returns whether any were.
    pub(super) fn send_frames(&mut self, messages: &mut Messages, rank: u32) -> bool {
        let waiting = self.origin.waiting(rank) as u64;
        if waiting != 0
            && self.origin.ahead(rank) + waiting >= AHEAD / 4
            && !self.flights.will_answer(rank)
        {
            self.ask(messages, rank, |tag| Frame::Flush { tag });
        }
        let Some(frames) = self.origin.take(rank) else {
            return false;
        };
        self.say(messages, rank, &frames);
        self.origin.reuse(rank, frames);
        let from = (self.context, self.me);
        let to = self.group.peer(rank);
        self.flights.send_data(rank, |tag, data| {
            let mode = crate::messages::SendMode::Standard;
            messages.send(to, (from.0, from.1, tag), mode, data)
        });
        true
    }

    /// Frames that were held back, and may be sent now.
    pub(super) fn send_held(&mut self, messages: &mut Messages) -> bool {
        let mut held = std::mem::take(&mut self.kept_back);
        let before = held.len();
        held.retain(|&rank| {
            self.send_frames(messages, rank);
            self.origin.waiting(rank) != 0
        });
        let moved = held.len() != before;
        held.append(&mut self.kept_back);
        self.kept_back = held;
        moved
    }

    /// Sends all frames of a target: now, or as soon as that is allowed.
    pub(super) fn push_out(&mut self, messages: &mut Messages, rank: u32) {
        self.send_frames(messages, rank);
        if self.origin.waiting(rank) != 0 && !self.kept_back.contains(&rank) {
            self.expect_answers(messages);
            self.kept_back.push(rank);
        }
    }

    /// A frame that is answered when everything before it has ended.
    pub(super) fn ask(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        frame: impl FnOnce(i32) -> Frame<'static>,
    ) {
        let tag = self.tags.reply();
        let room = if self.checks.is_some() {
            MOST_ANSWER
        } else {
            0
        };
        let word = Buf::alloc(1 + room);
        let req = self.expect(messages, rank, tag, word.clone());
        self.flights.push(rank, What::Answer { req, word });
        self.origin.push_control(rank, frame(tag));
    }

    /// Like [`Window::ask`], but if nothing is under way to a target: sends its frames, and polls
    /// for the answer for as long as a polling target takes to answer.
    pub(super) fn ask_at_once(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        frame: impl Fn(i32) -> Frame<'static>,
    ) {
        if !self.flights.is_idle(rank) || self.checks.is_some() {
            return self.ask(messages, rank, frame);
        }
        let tag = self.tags.reply();
        self.origin.push_control(rank, frame(tag));
        self.flights.push(
            rank,
            What::Later {
                tag,
                into: Buf::EMPTY,
            },
        );
        self.look_for_answer(messages, rank);
    }

    /// Sends the frames of a target, and polls for the only thing that is under way there, for as
    /// long as a polling target takes to answer.
    pub(super) fn look_for_answer(&mut self, messages: &mut Messages, rank: u32) {
        self.push_out(messages, rank);
        let Some((tag, into)) = self
            .flights
            .later(rank)
            .filter(|_| self.origin.waiting(rank) == 0)
        else {
            return;
        };
        let want = self.wanted(rank, tag);
        let (mut word, room) = ([0], into.len().max(1));
        let found = messages.recv_at_once(want, room, |bytes| match into.is_empty() {
            true => bytes.iter().take(1).for_each(|byte| word[0] = *byte),
            false => {
                into.write(0, bytes);
            }
        });
        let Some(found) = found else { return };
        let well = match into.is_empty() {
            true => found.len == 1 && word == [0],
            false => found.len == into.len(),
        };
        self.flights.answered(rank, well);
        self.origin.on_answer(rank);
    }

    fn wanted(&self, rank: u32, tag: i32) -> Want {
        Want {
            context: self.context,
            source: Some((rank, self.group.peer(rank))),
            tag: Some(tag),
        }
    }

    /// From now on data that targets send back is received as it comes.
    pub(super) fn expect_answers(&mut self, messages: &mut Messages) {
        while let Some((rank, tag, into)) = self.flights.next_later() {
            match into.is_empty() {
                true => {
                    let word = Buf::alloc(1);
                    let req = self.expect(messages, rank, tag, word.clone());
                    self.flights.expected(rank, What::Answer { req, word });
                }
                false => {
                    let len = into.len();
                    let req = self.expect(messages, rank, tag, into);
                    self.flights.expected(rank, What::Data { req, len });
                }
            }
        }
    }

    /// Makes room for data that a target sends back: returns its tag, and the number of its flight.
    fn room(&mut self, messages: &mut Messages, rank: u32, into: Buf) -> (i32, u64) {
        let (tag, len) = (self.tags.reply(), into.len());
        if len > 0 && len <= INLINE && self.flights.is_idle(rank) {
            return (tag, self.flights.push(rank, What::Later { tag, into }));
        }
        self.expect_answers(messages);
        let req = self.expect(messages, rank, tag, into);
        (tag, self.flights.push(rank, What::Data { req, len }))
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
            Site::There(Place::Row { at, len }, _) => {
                let len = len.min(data.len());
                (Place::Row { at, len }, len)
            }
            Site::There(place, len) => (place, len.min(data.len())),
            Site::Nowhere => return Ok(Span::ended(to.rank)),
            Site::Here(target) => {
                self.note_own(AccessKind::Put, false, &target.slice(0, data.len()));
                data.copy_to(0, &target, 0, target.len());
                return Ok(Span::ended(to.rank));
            }
        };
        let known = matches!(place, Place::Row { .. }) || len == to.layout.size() * to.count;
        self.tell_call(to.rank, false, known);
        if len <= INLINE {
            let mut scratch = std::mem::take(&mut self.scratch);
            scratch.resize(len as usize, 0);
            data.read(0, &mut scratch);
            let data = &scratch;
            self.origin.push(to.rank, Operation::Put { place, data });
            self.scratch = scratch;
            self.issued(messages, to.rank);
            return Ok(Span::ended(to.rank));
        }
        let tag = self.tags.data();
        let data = data.slice(0, len);
        let last = self.flights.push(to.rank, What::Unsent { tag, data });
        self.origin.push(to.rank, Operation::PutLong { place, tag });
        self.push_out(messages, to.rank);
        let rank = to.rank;
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
        let (tag, last) = self.room(messages, from.rank, into.slice(0, len));
        self.origin
            .push_answered(from.rank, Operation::Get { place, tag });
        match len > INLINE {
            true => self.push_out(messages, from.rank),
            false => self.issued(messages, from.rank),
        }
        let rank = from.rank;
        Ok(Span { rank, last })
    }

    /// Cuts operands into pieces of whole elements, each with the data of its own.
    pub(super) fn in_pieces(
        &mut self,
        operand: &Buf,
        len: u64,
        basic: Basic,
        mut piece: impl FnMut(&mut Window, u64, u64, &[u8]),
    ) {
        let most = PIECE - PIECE % basic.size();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut from = 0;
        while from < len {
            let some = most.min(len - from);
            scratch.resize(some.min(operand.len()) as usize, 0);
            operand.read(from, &mut scratch);
            piece(self, from, some, &scratch);
            from += some;
        }
        self.scratch = scratch;
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
                self.combine(to.rank, &target, (operand, result), (op, basic));
                return Ok(Span::ended(to.rank));
            }
        };
        self.tell_call(to.rank, fetches, true);
        let (rank, op) = (to.rank, op.handle());
        let mut last = 0;
        self.in_pieces(operand, len, basic, |window, from, len, data| {
            let room = result.map(|r| window.room(messages, rank, r.slice(from, len)));
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
                    window.origin.push_answered(rank, piece);
                }
                None => window.origin.push(rank, piece),
            }
            window.issued(messages, rank);
        });
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
        let window = self.get_mut(id)?;
        let site = window.place(&to)?;
        window.use_buffer(to.rank, &result.slice(0, basic.size()), true)?;
        let at = match site {
            Site::There(Place::Row { at, .. } | Place::Typed { at, .. }, _) => at,
            Site::Nowhere => return Ok(Span::ended(to.rank)),
            Site::Here(target) => {
                window.note_own(AccessKind::Swap, true, &target);
                window.swap(to.rank, &target, (compare, swap), result);
                return Ok(Span::ended(to.rank));
            }
        };
        window.tell_call(to.rank, true, true);
        let (tag, last) = window.room(messages, to.rank, result.slice(0, basic.size()));
        let op = Operation::CompareAndSwap {
            at,
            basic,
            tag,
            compare,
            swap,
        };
        window.origin.push_answered(to.rank, op);
        window.issued(messages, to.rank);
        let rank = to.rank;
        Ok(Span { rank, last })
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
