//! Frames, data and answers of this rank's operations on their way to other ranks, and back.

use super::channel::Channel;
use super::check::MOST_ANSWER;
use super::flights::{Flights, What};
use crate::messages::Messages;
use kw_proto::rma::{Frame, MOST_TYPES, Origin, Tags};
use kw_sys::buf::Buf;
use kw_types::layout::Layout;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Longest put that travels in its frame, in bytes: copying costs less than another message.
pub(super) const INLINE: u64 = 4 << 10;
/// Data that a target sends back up to this length needs no receive, if it comes while the origin
/// waits for it: longer messages do not come past the queues. Built-in.
const EARLY: u64 = 2 << 10;
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
        // They must not lie in the queue of unexpected messages until the program asks for them.
        self.expect_answers(messages);
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

    /// An operation has been issued that its target does not answer; `flushes`: a flush is to
    /// follow. Sends frames if there are many.
    pub fn issued(&mut self, messages: &mut Messages, rank: u32, flushes: bool) {
        if flushes && self.flights.may_be_early(rank) && self.leaves_at_once(messages, rank) {
            self.flush_at_once(messages, rank);
        } else if self.origin.waiting(rank) >= FULL {
            self.push_out(messages, rank);
        }
    }

    /// An operation that its target answers has been issued, with this flight.
    pub fn issued_answered(&mut self, messages: &mut Messages, rank: u32, flight: u64) {
        let early = self.flights.early(Some(rank));
        let is_early = early.is_some_and(|e| e.number == flight);
        if is_early && self.leaves_at_once(messages, rank) {
            self.send_frames(messages, rank);
        } else {
            self.issued(messages, rank, false);
        }
    }

    /// Whether the frames of a target leave at once when nothing is under way there: they reach it
    /// while the program goes on to the call that waits for the answer. Later ones leave together.
    fn leaves_at_once(&self, messages: &mut Messages, rank: u32) -> bool {
        let to = self.channel.peer(rank);
        !self.is_checked && !self.origin.should_ask(rank) && messages.paths.memory_to(to).is_some()
    }

    /// Asks for the answer that a flush will wait for.
    fn flush_at_once(&mut self, messages: &mut Messages, rank: u32) {
        let tag = self.tags.reply();
        self.origin.take_unanswered(rank);
        self.origin.push_control(rank, Frame::Flush { tag });
        self.flights.push_early(rank, tag, Buf::EMPTY);
        self.send_frames(messages, rank);
    }

    /// Sends the frames of a target, and what belongs to them, as far as they may be sent now;
    /// returns whether any were.
    fn send_frames(&mut self, messages: &mut Messages, rank: u32) -> bool {
        if self.origin.should_ask(rank) && !self.flights.will_answer(rank) {
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

    /// Whether all frames that were to leave have left.
    pub fn holds_nothing_back(&self) -> bool {
        self.kept_back.is_empty()
    }

    /// Sends all frames of a target: now, or as soon as that is allowed.
    pub fn push_out(&mut self, messages: &mut Messages, rank: u32) {
        if self.origin.waiting(rank) == 0 || self.send_frames(messages, rank) {
            return;
        }
        if !self.kept_back.contains(&rank) {
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
        self.push(messages, rank, What::Answer { req, word });
        self.origin.push_control(rank, frame(tag));
    }

    /// Asks for the answer that a flush will wait for, in the frames that leave now: the flush needs no
    /// message of its own.
    pub fn ask_early(&mut self, messages: &mut Messages, rank: u32) {
        self.origin.take_unanswered(rank);
        self.ask(messages, rank, |tag| Frame::Flush { tag });
    }

    /// Like [`Outgoing::ask`], but if nothing is under way to a target: sends its frames, and polls
    /// for the answer for as long as a polling target takes to answer.
    pub fn ask_at_once(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        frame: impl Fn(i32) -> Frame<'static>,
    ) {
        // What was asked before is most often here by now.
        self.poll_for_flight(messages, rank, Duration::ZERO);
        if !self.flights.is_idle(rank) || self.is_checked {
            return self.ask(messages, rank, frame);
        }
        let tag = self.tags.reply();
        self.origin.push_control(rank, frame(tag));
        let sent = !self.origin.should_ask(rank) && self.send_frames(messages, rank);
        let (what, most) = ((tag, &Buf::EMPTY), messages.at_once);
        if sent && let Some(well) = self.poll_for(messages, rank, what, most) {
            // It came at once: nothing has to remember that it was to come.
            return self.flights.on_early_answer(rank, well);
        }
        // Another target may be awaited early.
        self.expect_answers(messages);
        self.flights.push_early(rank, tag, Buf::EMPTY);
        if !sent {
            self.push_out_and_poll(messages, rank);
        }
    }

    /// Sends the frames of a target, and polls for the only thing that is under way there, for as
    /// long as a polling target takes to answer.
    pub fn push_out_and_poll(&mut self, messages: &mut Messages, rank: u32) {
        self.push_out(messages, rank);
        if self.origin.waiting(rank) != 0 {
            return;
        }
        let most = messages.at_once;
        self.poll_for_flight(messages, rank, most);
    }

    /// Polls for the only thing that is under way to a target, if it may come without a request;
    /// returns whether it still may.
    pub fn poll_for_flight(&mut self, messages: &mut Messages, rank: u32, most: Duration) -> bool {
        let Some(early) = self.flights.early(Some(rank)) else {
            return false;
        };
        let (tag, into) = (early.tag, early.into.clone());
        let Some(well) = self.poll_for(messages, rank, (tag, &into), most) else {
            return true;
        };
        self.flights.early_came(rank, well);
        false
    }

    /// Polls for an answer, or for the data for a buffer; returns whether the target has done what
    /// it was asked for.
    fn poll_for(
        &mut self,
        messages: &mut Messages,
        rank: u32,
        (tag, into): (i32, &Buf),
        most: Duration,
    ) -> Option<bool> {
        let want = self.channel.want(rank, tag);
        let (mut word, room) = ([0], into.len().max(1));
        let found = messages.recv_within(most, want, room, |bytes| match into.is_empty() {
            true => bytes.iter().take(1).for_each(|byte| word[0] = *byte),
            false => {
                into.write(0, bytes);
            }
        })?;
        self.origin.on_answer(rank);
        Some(match into.is_empty() {
            true => found.len == 1 && word == [0],
            false => found.len == into.len(),
        })
    }

    /// From now on data that targets send back is received as it comes.
    pub fn expect_answers(&mut self, messages: &mut Messages) {
        let Some(early) = self.flights.early(None) else {
            return;
        };
        let (rank, tag, into) = (early.rank, early.tag, early.into.clone());
        let len = into.len();
        let word = match into.is_empty() {
            true => Buf::alloc(1),
            false => into,
        };
        let req = self.channel.expect(messages, rank, tag, word.clone());
        self.flights.expected(match len {
            0 => What::Answer { req, word },
            _ => What::Data { req, len },
        });
    }

    /// Notes a flight.
    pub fn push(&mut self, messages: &mut Messages, rank: u32, what: What) -> u64 {
        if self.flights.early(Some(rank)).is_some() {
            self.expect_answers(messages);
        }
        self.flights.push(rank, what)
    }

    /// Makes room for data that a target sends back: returns its tag, and the number of its flight.
    pub fn room(&mut self, messages: &mut Messages, rank: u32, into: Buf) -> (i32, u64) {
        let (tag, len) = (self.tags.reply(), into.len());
        if len > 0 && len <= EARLY && self.flights.may_be_early(rank) {
            return (tag, self.flights.push_early(rank, tag, into));
        }
        self.expect_answers(messages);
        let req = self.channel.expect(messages, rank, tag, into);
        (tag, self.flights.push(rank, What::Data { req, len }))
    }
}
