//! Numbers that ranks share: one of them keeps the number, and answers the others whether or not
//! its program is in MPI. A lock belongs to each number; requests for it are granted when it is
//! free, in the order of asking.
//!
//! Questions and answers are messages in a context of the number's own, so that none is lost or
//! answered twice.
//!
//! If all ranks are on one host, a number may be in shared memory instead ([`HostCounter`]): then
//! no rank is asked.

use crate::messages::{Messages, ReqId, SendMode, Started, Want};
use crate::part::Part;
use kw_base::sync::atomic::Ordering;
use kw_base::{ContextId, Key, Slab};
use kw_boot::Job;
use kw_path::shm::region::ShmRegion;
use kw_sys::buf::Buf;
use kw_types::comm::Group;
use std::collections::VecDeque;
use std::sync::Arc;

/// Tags of questions, of answers, and of the answer that a rank has the lock, which comes late: a
/// rank may ask for the number meanwhile.
const QUESTION: i32 = 0;
const ANSWER: i32 = 1;
const LOCKED: i32 = 2;
/// Bytes of a question: its kind, and two numbers.
const QUESTION_LEN: usize = 24;
/// Bytes of an answer.
const ANSWER_LEN: usize = 8;

/// Request of a rank to the one that keeps a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// Adds to the number if it is at most `highest`; the answer is its old value.
    Add {
        /// The addend.
        more: u64,
        /// The highest number to which it is added.
        highest: u64,
    },
    /// Sets the number; the answer is its old value.
    Set(u64),
    /// Requests the lock; the answer comes when this rank has it.
    Lock,
    /// Gives the lock back.
    Unlock,
}

impl Question {
    fn encode(self) -> [u8; QUESTION_LEN] {
        let words = match self {
            Question::Add { more, highest } => [0u64, more, highest],
            Question::Set(n) => [1, n, 0],
            Question::Lock => [2, 0, 0],
            Question::Unlock => [3, 0, 0],
        };
        let mut out = [0; QUESTION_LEN];
        for (place, word) in out.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The tag of the answer that it leads to.
    fn answer_tag(self) -> i32 {
        match self {
            Question::Add { .. } | Question::Set(_) => ANSWER,
            Question::Lock | Question::Unlock => LOCKED,
        }
    }

    fn decode(bytes: &[u8; QUESTION_LEN]) -> Option<Question> {
        let word = |at: usize| {
            let word: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(word)
        };
        match word(0) {
            0 => Some(Question::Add {
                more: word(8),
                highest: word(16),
            }),
            1 => Some(Question::Set(word(8))),
            2 => Some(Question::Lock),
            3 => Some(Question::Unlock),
            _ => None,
        }
    }
}

/// The number after an addition; `None` if it is above `highest`.
fn sum(old: u64, more: u64, highest: u64) -> Option<u64> {
    (old <= highest).then(|| old.wrapping_add(more))
}

/// A number that this rank keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedCounterId(Key);

/// The number and its lock, without messages.
#[derive(Debug, Default)]
struct Number {
    value: u64,
    holder: Option<u32>,
    waiting: VecDeque<u32>,
}

impl Number {
    /// Result of a rank's request: the answers to send.
    fn ask(&mut self, rank: u32, question: Question) -> Option<(u32, u64)> {
        let old = self.value;
        match question {
            Question::Add { more, highest } => {
                self.value = sum(old, more, highest).unwrap_or(old);
                Some((rank, old))
            }
            Question::Set(n) => {
                self.value = n;
                Some((rank, old))
            }
            Question::Lock if self.holder.is_none() => {
                self.holder = Some(rank);
                Some((rank, 0))
            }
            Question::Lock => {
                self.waiting.push_back(rank);
                None
            }
            Question::Unlock if self.holder == Some(rank) => {
                self.holder = self.waiting.pop_front();
                self.holder.map(|next| (next, 0))
            }
            // A rank never releases a number that it does not have.
            Question::Unlock => None,
        }
    }

    /// The lock passes on if the rank that has it is gone, and others wait. Returns the answer to
    /// send.
    fn leave_gone(&mut self, is_gone: impl Fn(u32) -> bool) -> Option<(u32, u64)> {
        let mut next = None;
        while !self.waiting.is_empty()
            && let Some(gone) = self.holder.filter(|&rank| is_gone(rank))
        {
            next = self.ask(gone, Question::Unlock);
        }
        next
    }
}

#[derive(Debug)]
struct Kept {
    number: Number,
    context: ContextId,
    group: Arc<Group>,
    /// This process's rank.
    me: u32,
    /// Receives the next question.
    next: ReqId,
    buf: Buf,
}

/// The numbers that this rank keeps.
#[derive(Debug, Default)]
pub struct SharedCounters {
    kept: Slab<Kept>,
}

impl SharedCounters {
    /// This rank keeps a number for the ranks of a group, which ask in this context.
    pub fn keep(
        &mut self,
        messages: &mut Messages,
        context: ContextId,
        group: Arc<Group>,
        me: u32,
    ) -> SharedCounterId {
        let buf = Buf::alloc(QUESTION_LEN);
        let next = listen(messages, context, &buf);
        let number = Number::default();
        let kept = Kept {
            number,
            context,
            group,
            me,
            next,
            buf,
        };
        SharedCounterId(self.kept.insert(kept))
    }

    /// No requests are left.
    pub fn forget(&mut self, messages: &mut Messages, id: SharedCounterId) {
        if let Some(kept) = self.kept.remove(id.0) {
            messages.cancel(kept.next);
            messages.requests_mut().release(kept.next);
        }
    }
}

fn listen(messages: &mut Messages, context: ContextId, buf: &Buf) -> ReqId {
    let want = Want {
        context,
        source: None,
        tag: Some(QUESTION),
    };
    messages.recv(want, buf.clone())
}

/// Asks the rank that keeps a number, rank `keeper` of the group. Returns the send, and the receive
/// of the answer.
pub fn ask(
    messages: &mut Messages,
    context: ContextId,
    (group, me): (&Group, u32),
    keeper: u32,
    question: Question,
    answer: &Buf,
) -> (Started, Option<ReqId>) {
    let peer = group.peer(keeper);
    let want = Want {
        context,
        source: Some((keeper, peer)),
        tag: Some(question.answer_tag()),
    };
    let answered = (question != Question::Unlock).then(|| messages.recv(want, answer.clone()));
    (
        say(
            messages,
            context,
            (group, me),
            keeper,
            QUESTION,
            &question.encode(),
        ),
        answered,
    )
}

fn say(
    messages: &mut Messages,
    context: ContextId,
    (group, me): (&Group, u32),
    to: u32,
    tag: i32,
    bytes: &[u8],
) -> Started {
    let buf = Buf::alloc(bytes.len());
    buf.write(0, bytes);
    messages.send(group.peer(to), (context, me, tag), SendMode::Standard, &buf)
}

/// The number in an answer.
pub fn answer_of(buf: &Buf) -> u64 {
    let mut bytes = [0; ANSWER_LEN];
    buf.read(0, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// A buffer for an answer.
pub fn answer_buf() -> Buf {
    Buf::alloc(ANSWER_LEN)
}

/// A number in the memory of a host: all ranks that use it are there.
#[derive(Debug)]
pub struct HostCounter {
    shm_region: ShmRegion,
    places: Vec<u32>,
}

impl HostCounter {
    /// Takes memory for a number, for one of the ranks; `None` if there is none to spare.
    pub fn claim(messages: &mut Messages) -> Option<u32> {
        messages.shm_regions()?.claim_spare()
    }

    /// The number in memory that one of these ranks has claimed and told the others. It is 0 at
    /// first.
    pub fn open(messages: &mut Messages, claimed: u32, group: &Group) -> Option<HostCounter> {
        let shm_region = messages.shm_regions()?.open(claimed);
        let places = group.iter().map(|peer| messages.paths.place(peer));
        let places = places.collect::<Option<_>>()?;
        Some(HostCounter { shm_region, places })
    }

    /// Adds to the number if it is at most `highest`; returns its old value.
    pub fn add(&self, more: u64, highest: u64) -> u64 {
        let add = |old| sum(old, more, highest);
        let tally = self.shm_region.tally();
        match tally.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(old) | Err(old) => old,
        }
    }

    /// Sets the number; returns its old value.
    pub fn set(&self, value: u64) -> u64 {
        self.shm_region.tally().swap(value, Ordering::AcqRel)
    }

    /// This rank does not use it any more. The memory is free when all ranks have said so.
    pub fn leave(self) {
        self.shm_region.leave(&self.places, 0);
    }
}

impl Kept {
    fn go_on(&mut self, messages: &mut Messages) {
        while messages.requests().is_done(self.next) {
            let Some(outcome) = messages.requests_mut().take(self.next) else {
                return;
            };
            let mut bytes = [0; QUESTION_LEN];
            self.buf.read(0, &mut bytes);
            self.next = listen(messages, self.context, &self.buf);
            let question = match outcome.len == QUESTION_LEN as u64 && outcome.failure.is_none() {
                true => Question::decode(&bytes),
                false => None,
            };
            let from = outcome.source;
            let known = from < self.group.size();
            let Some(question) = question.filter(|_| known) else {
                continue;
            };
            if let Some(answer) = self.number.ask(from, question) {
                self.answer(messages, question.answer_tag(), answer);
            }
        }
        let peers = &messages.machine.endpoint.peers;
        let is_gone = |rank: u32| peers.why_gone(self.group.peer(rank)).is_some();
        if let Some(answer) = self.number.leave_gone(is_gone) {
            self.answer(messages, LOCKED, answer);
        }
    }

    fn answer(&self, messages: &mut Messages, tag: i32, (to, value): (u32, u64)) {
        let ends = (&*self.group, self.me);
        let sent = say(messages, self.context, ends, to, tag, &value.to_le_bytes());
        if let Started::Request(id) = sent {
            messages.requests_mut().release(id);
        }
    }
}

impl Part for SharedCounters {
    fn new(_: &Job) -> SharedCounters {
        SharedCounters::default()
    }

    #[inline(always)]
    fn is_busy(&self) -> bool {
        !self.kept.is_empty()
    }

    fn advance(&mut self, messages: &mut Messages) {
        for (_, kept) in self.kept.iter_mut() {
            kept.go_on(messages);
        }
    }

    #[inline(always)]
    fn may_hold_up_others(&self) -> bool {
        !self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_goes_round_in_the_order_of_asking() {
        let mut number = Number::default();
        assert_eq!(number.ask(2, Question::Lock), Some((2, 0)));
        assert_eq!(number.ask(0, Question::Lock), None);
        assert_eq!(number.ask(1, Question::Lock), None);
        assert_eq!(number.ask(1, Question::Unlock), None, "who has it not");
        assert_eq!(number.ask(2, Question::Unlock), Some((0, 0)));
        assert_eq!(number.ask(0, Question::Unlock), Some((1, 0)));
        assert_eq!(number.ask(1, Question::Unlock), None);
        let add = |more, highest| Question::Add { more, highest };
        assert_eq!(number.ask(1, add(5, 0)), Some((1, 0)));
        assert_eq!(number.ask(1, Question::Set(7)), Some((1, 5)));
        assert_eq!(number.ask(1, add(9, 6)), Some((1, 7)));
        assert_eq!(number.ask(0, add(0, 0)), Some((0, 7)), "it was above 6");
    }

    #[test]
    fn the_lock_of_a_rank_that_is_gone_passes_to_the_next_that_is_not() {
        let mut number = Number::default();
        for rank in [0, 1, 2] {
            number.ask(rank, Question::Lock);
        }
        assert_eq!(number.leave_gone(|rank| rank == 1), None, "rank 0 has it");
        assert_eq!(number.leave_gone(|rank| rank < 2), Some((2, 0)));
        assert_eq!(number.leave_gone(|_| true), None, "no rank waits");
        assert_eq!(number.ask(1, Question::Unlock), None);
        assert_eq!(number.holder, Some(2));
    }

    #[test]
    fn questions_survive_a_message() {
        let all = [
            Question::Add {
                more: 9,
                highest: 1 << 60,
            },
            Question::Set(u64::MAX),
            Question::Lock,
            Question::Unlock,
        ];
        for question in all {
            assert_eq!(Question::decode(&question.encode()), Some(question));
        }
        assert_eq!(Question::decode(&[9; QUESTION_LEN]), None);
    }
}
