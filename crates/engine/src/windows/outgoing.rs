//! Frames, data and answers of this rank's operations on their way to other ranks, and back.

use super::channel::Channel;
use super::check::MOST_ANSWER;
use super::flights::{Flights, What};
use crate::messages::Messages;
use kw_proto::rma::{AHEAD, Frame, MOST_TYPES, Origin, Tags};
use kw_sys::buf::Buf;
use kw_types::layout::Layout;
use std::collections::HashMap;
use std::sync::Arc;

/// Longest put that travels in its frame, in bytes: copying costs less than another message.
pub(super) const INLINE: u64 = 4 << 10;
/// Frames are sent when there are this many bytes of them: others come later with what they wait
/// for.
const FULL: usize = 8 << 10;

/// Target datatypes that have been sent to a target.
#[derive(Default, Debug)]
struct SentTypes {
    known: Vec<(Arc<Layout>, u32)>,
    next: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Outgoing {
    channel: Channel,
    pub origin: Origin,
    pub flights: Flights,
    tags: Tags,
    types: HashMap<u32, SentTypes>,
    /// Targets whose frames wait until they may be sent.
    kept_back: Vec<u32>,
    /// Answers may describe conflicts (KW_CHECK).
    pub is_checked: bool,
}

impl Outgoing {
    pub fn new(channel: Channel, is_checked: bool) -> Outgoing {
        Outgoing {
            channel,
            origin: Origin::default(),
            flights: Flights::default(),
            tags: Tags::default(),
            types: HashMap::new(),
            kept_back: Vec::new(),
            is_checked,
        }
    }

    /// Continues with the answers that have come; returns whether there were any.
    pub fn advance(&mut self, messages: &mut Messages) -> bool {
        let origin = &mut self.origin;
        self.flights.look(messages, |rank| origin.on_answer(rank))
    }

    /// A tag for data that goes to a target.
    pub fn data_tag(&mut self) -> i32 {
        self.tags.data()
    }

    /// The number under which a target knows a datatype, which it is sent once.
    pub fn type_of(&mut self, rank: u32, layout: &Arc<Layout>) -> u32 {
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

    /// Sends frames if there are many.
    pub fn issued(&mut self, messages: &mut Messages, rank: u32) {
        if self.origin.waiting(rank) >= FULL {
            self.push_out(messages, rank);
        }
    }

    /// Sends the frames of a target, and what belongs to them, as far as they may be sent now;
    /// returns whether any were.
    fn send_frames(&mut self, messages: &mut Messages, rank: u32) -> bool {
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
        let channel = &self.channel;
        channel.send_frames(messages, rank, &frames);
        self.origin.reuse(rank, frames);
        self.flights
            .send_data(rank, |tag, data| channel.send(messages, rank, tag, data));
        true
    }

    /// Frames that were held back, and may be sent now.
    pub fn send_held(&mut self, messages: &mut Messages) -> bool {
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
    pub fn push_out(&mut self, messages: &mut Messages, rank: u32) {
        self.send_frames(messages, rank);
        if self.origin.waiting(rank) != 0 && !self.kept_back.contains(&rank) {
            self.expect_answers(messages);
            self.kept_back.push(rank);
        }
    }

    /// Sends frames that wait, for all targets.
    pub fn push_all_out(&mut self, messages: &mut Messages) {
        for rank in self.origin.targets_waiting() {
            self.push_out(messages, rank);
        }
    }

    /// A frame that is answered when everything before it has ended.
    pub fn ask(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        frame: impl FnOnce(i32) -> Frame<'static>,
    ) {
        let tag = self.tags.reply();
        let room = if self.is_checked { MOST_ANSWER } else { 0 };
        let word = Buf::alloc(1 + room);
        let req = self.channel.expect(messages, rank, tag, word.clone());
        self.flights.push(rank, What::Answer { req, word });
        self.origin.push_control(rank, frame(tag));
    }

    /// Like [`Outgoing::ask`], but if nothing is under way to a target: sends its frames, and polls
    /// for the answer for as long as a polling target takes to answer.
    pub fn ask_at_once(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        frame: impl Fn(i32) -> Frame<'static>,
    ) {
        if !self.flights.is_idle(rank) || self.is_checked {
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
    pub fn look_for_answer(&mut self, messages: &mut Messages, rank: u32) {
        self.push_out(messages, rank);
        let Some((tag, into)) = self
            .flights
            .later(rank)
            .filter(|_| self.origin.waiting(rank) == 0)
        else {
            return;
        };
        let want = self.channel.want(rank, tag);
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

    /// From now on data that targets send back is received as it comes.
    pub fn expect_answers(&mut self, messages: &mut Messages) {
        while let Some((rank, tag, into)) = self.flights.next_later() {
            match into.is_empty() {
                true => {
                    let word = Buf::alloc(1);
                    let req = self.channel.expect(messages, rank, tag, word.clone());
                    self.flights.expected(rank, What::Answer { req, word });
                }
                false => {
                    let len = into.len();
                    let req = self.channel.expect(messages, rank, tag, into);
                    self.flights.expected(rank, What::Data { req, len });
                }
            }
        }
    }

    /// Makes room for data that a target sends back: returns its tag, and the number of its flight.
    pub fn room(&mut self, messages: &mut Messages, rank: u32, into: Buf) -> (i32, u64) {
        let (tag, len) = (self.tags.reply(), into.len());
        if len > 0 && len <= INLINE && self.flights.is_idle(rank) {
            return (tag, self.flights.push(rank, What::Later { tag, into }));
        }
        self.expect_answers(messages);
        let req = self.channel.expect(messages, rank, tag, into);
        (tag, self.flights.push(rank, What::Data { req, len }))
    }
}
