//! Flights: the transfers that a rank has under way to the targets of its operations, and waits
//! for.
//!
//! Flights to one target are checked in the order in which they left: a wait for one is also a wait
//! for those before it.

use crate::messages::{Messages, ReqId, Started};
use kw_proto::endpoint::{Failure, Outcome};
use kw_sys::buf::Buf;
use std::collections::{BTreeMap, VecDeque};

/// A message that belongs to an operation.
#[derive(Debug)]
pub(super) enum What {
    /// Data of a long put, whose frame has not been sent.
    Unsent { tag: i32, data: Buf },
    /// Data of a long put on its way.
    Sending(ReqId),
    /// Data of this many bytes that a target sends back.
    Data { req: ReqId, len: u64 },
    /// The answer to a flush or an unlock.
    Answer { req: ReqId, word: Buf },
    /// It has ended.
    Ended,
}

impl What {
    /// Whether its end shows that the target makes progress.
    fn answers(&self) -> bool {
        matches!(self, What::Data { .. } | What::Answer { .. })
    }
}

#[derive(Debug)]
struct Flight {
    number: u64,
    what: What,
}

/// What a target sends back, and no receive is posted for: it is likely to be here when the program
/// asks for it. All that is under way to its target.
#[derive(Debug)]
pub(super) struct Early {
    pub rank: u32,
    pub number: u64,
    pub tag: i32,
    /// Room for the data; none for an answer.
    pub into: Buf,
}

impl Early {
    fn is_to(&self, rank: Option<u32>) -> bool {
        rank.is_none_or(|rank| rank == self.rank)
    }
}

/// Flights to one target.
#[derive(Default, Debug)]
struct TargetFlights {
    flights: VecDeque<Flight>,
    unsent: usize,
    /// Flights whose end shows that the target makes progress.
    answers: usize,
    failure: Option<Failure>,
}

impl TargetFlights {
    /// Whether flights up to a number are active.
    fn has_active(&self, number: u64) -> bool {
        self.flights.front().is_some_and(|f| f.number <= number)
    }
}

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Flights {
    lines: BTreeMap<u32, TargetFlights>,
    /// Number of the last flight.
    last: u64,
    /// Conflicts that answers have reported (KW_CHECK).
    pub notices: Vec<Vec<u8>>,
    early: Option<Early>,
}

/// Error of an operation, from its outcome.
fn failure_of(what: &What, outcome: Outcome) -> Option<Failure> {
    if let Some(failure) = outcome.failure {
        return Some(*failure);
    }
    let refused = match what {
        What::Data { len, .. } => outcome.len != *len,
        What::Answer { word, .. } => {
            let mut refused = [0];
            word.read(0, &mut refused);
            outcome.len == 0 || refused != [0]
        }
        _ => false,
    };
    refused.then(refusal)
}

fn refusal() -> Failure {
    Failure::Other("the target refused an operation: it names memory that is not exposed".into())
}

impl Flights {
    /// The number of the last flight so far.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The number of the last flight to a rank, or to any, that uses memory of this rank.
    pub fn last_local(&self, rank: Option<u32>) -> u64 {
        let of = |line: &TargetFlights| {
            let mut flights = line.flights.iter().rev();
            let last = flights.find(|f| !matches!(f.what, What::Answer { .. }));
            last.map_or(0, |f| f.number)
        };
        let in_lines = match rank {
            Some(rank) => self.lines.get(&rank).map_or(0, of),
            None => self.lines.values().map(of).max().unwrap_or_default(),
        };
        let early = self.early.as_ref();
        let early = early.filter(|e| e.is_to(rank) && !e.into.is_empty());
        early.map_or(in_lines, |e| e.number.max(in_lines))
    }

    /// The number of the new flight. Nothing early is on its way from this target.
    pub fn push(&mut self, rank: u32, what: What) -> u64 {
        self.last += 1;
        self.add(rank, self.last, what);
        self.last
    }

    fn add(&mut self, rank: u32, number: u64, what: What) {
        let line = self.lines.entry(rank).or_default();
        line.unsent += matches!(what, What::Unsent { .. }) as usize;
        line.answers += what.answers() as usize;
        line.flights.push_back(Flight { number, what });
    }

    /// Whether something from a target may be the early answer: nothing else is under way there,
    /// and no other is awaited.
    #[inline]
    pub fn may_be_early(&self, rank: u32) -> bool {
        self.early.is_none() && self.is_idle(rank)
    }

    /// A target will send this, which is received when it is asked for; returns its number.
    #[inline]
    pub fn push_early(&mut self, rank: u32, tag: i32, into: Buf) -> u64 {
        self.last += 1;
        let number = self.last;
        self.early = Some(Early {
            rank,
            number,
            tag,
            into,
        });
        number
    }

    /// What is awaited early from this target, or from any.
    #[inline]
    pub fn early(&self, rank: Option<u32>) -> Option<&Early> {
        self.early.as_ref().filter(|e| e.is_to(rank))
    }

    /// A receive is posted for it.
    pub fn expected(&mut self, what: What) {
        if let Some(Early { rank, number, .. }) = self.early.take() {
            self.add(rank, number, what);
        }
    }

    /// It has come without a receive; `well`: nothing was refused.
    pub fn early_came(&mut self, rank: u32, well: bool) {
        self.early = None;
        self.on_early_answer(rank, well);
    }

    /// Whether nothing is under way to a target.
    #[inline]
    pub fn is_idle(&self, rank: u32) -> bool {
        self.is_idle_and(rank, |_| true)
    }

    /// Whether nothing is under way to a target, and nothing has failed.
    #[inline]
    pub fn is_clean(&self, rank: u32) -> bool {
        self.is_idle_and(rank, |line| line.failure.is_none())
    }

    #[inline]
    fn is_idle_and(&self, rank: u32, also: impl Fn(&TargetFlights) -> bool) -> bool {
        let line = self.lines.get(&rank);
        self.early(Some(rank)).is_none()
            && line.is_none_or(|line| line.flights.is_empty() && also(line))
    }

    /// The answer to a question that has no flight has come; `well`: nothing was refused.
    pub fn on_early_answer(&mut self, rank: u32, well: bool) {
        if !well {
            let failure = &mut self.lines.entry(rank).or_default().failure;
            failure.get_or_insert_with(refusal);
        }
    }

    /// Whether the end of anything on its way to a target shows that the target makes progress.
    pub fn will_answer(&self, rank: u32) -> bool {
        let line = self.lines.get(&rank);
        self.early(Some(rank)).is_some() || line.is_some_and(|l| l.answers != 0)
    }

    /// The frames of a target have been sent: its long data follows, by `send`.
    pub fn send_data(&mut self, rank: u32, mut send: impl FnMut(i32, &Buf) -> Started) {
        let Some(line) = self.lines.get_mut(&rank).filter(|l| l.unsent != 0) else {
            return;
        };
        line.unsent = 0;
        for flight in &mut line.flights {
            if let What::Unsent { tag, data } = &flight.what {
                flight.what = match send(*tag, data) {
                    Started::Done => What::Ended,
                    Started::Request(req) => What::Sending(req),
                };
            }
        }
    }

    /// Removes the flights that have ended, and names the targets that have answered; returns
    /// whether there was any.
    pub fn look(&mut self, messages: &mut Messages, mut answered: impl FnMut(u32)) -> bool {
        let mut moved = false;
        let notices = &mut self.notices;
        self.lines.retain(|&rank, line| {
            while let Some(flight) = line.flights.front() {
                let outcome = match &flight.what {
                    What::Unsent { .. } => None,
                    What::Ended => Some(Outcome::CLEAN),
                    What::Sending(req) | What::Data { req, .. } | What::Answer { req, .. } => {
                        messages.requests_mut().take(*req)
                    }
                };
                let Some(outcome) = outcome else { break };
                if flight.what.answers() {
                    line.answers -= 1;
                    answered(rank);
                }
                if let What::Answer { word, .. } = &flight.what
                    && outcome.len > 1
                {
                    let mut bytes = vec![0; outcome.len as usize - 1];
                    word.read(1, &mut bytes);
                    notices.push(bytes);
                }
                let failure = failure_of(&flight.what, outcome);
                line.failure = line.failure.take().or(failure);
                line.flights.pop_front();
                moved = true;
            }
            !line.flights.is_empty() || line.failure.is_some()
        });
        moved
    }

    /// Whether all flights to a rank, or to all, up to a number have ended.
    pub fn have_ended(&self, rank: Option<u32>, number: u64) -> bool {
        let active = |line: &TargetFlights| line.has_active(number);
        let early = self.early(rank);
        early.is_none_or(|e| e.number > number)
            && match rank {
                Some(rank) => !self.lines.get(&rank).is_some_and(active),
                None => !self.lines.values().any(active),
            }
    }

    /// Targets to which flights up to a number are active.
    pub fn targets(&self, number: u64) -> impl Iterator<Item = u32> {
        let early = self.early(None).filter(|e| e.number <= number);
        let lines = self
            .lines
            .iter()
            .filter(move |(_, line)| line.has_active(number));
        let lines = lines.map(|(rank, _)| *rank);
        early.map(|e| e.rank).into_iter().chain(lines)
    }

    /// Takes the error of flights to a rank, or to any.
    pub fn take_failure(&mut self, rank: Option<u32>) -> Option<Failure> {
        match rank {
            Some(rank) => self.lines.get_mut(&rank)?.failure.take(),
            None => self.lines.values_mut().find_map(|l| l.failure.take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_base::Slab;

    fn req() -> ReqId {
        ReqId(Slab::default().insert(()))
    }

    #[test]
    fn a_local_flush_does_not_wait_for_answers_without_data() {
        let mut flights = Flights::default();
        let answer = flights.push_early(1, 3, Buf::EMPTY);
        assert_eq!((flights.last_local(Some(1)), flights.last()), (0, answer));
        assert!(flights.have_ended(Some(1), flights.last_local(Some(1))));
        assert!(!flights.have_ended(None, answer) && !flights.is_idle(1));
        let (req, len) = (req(), 8);
        let fetch = flights.push(2, What::Data { req, len });
        let (of_two, of_all) = (flights.last_local(Some(2)), flights.last_local(None));
        assert_eq!((of_two, of_all), (fetch, fetch));
        assert!(!flights.have_ended(Some(2), of_two));
        flights.early_came(1, true);
        let fetch = flights.push_early(1, 5, Buf::alloc(8));
        assert_eq!(flights.last_local(Some(1)), fetch);
    }

    #[test]
    fn an_early_answer_for_which_a_receive_is_posted_keeps_its_place() {
        let mut flights = Flights::default();
        let first = flights.push_early(1, 3, Buf::EMPTY);
        assert!(flights.will_answer(1) && !flights.may_be_early(2));
        assert_eq!(flights.targets(first).collect::<Vec<_>>(), [1]);
        let (req, word) = (req(), Buf::alloc(1));
        flights.expected(What::Answer { req, word });
        assert!(flights.early(None).is_none() && flights.may_be_early(2));
        assert!(!flights.have_ended(Some(1), first) && flights.will_answer(1));
    }

    #[test]
    fn a_refusal_without_a_flight_is_an_error_of_its_target() {
        let mut flights = Flights::default();
        flights.on_early_answer(1, true);
        assert!(flights.is_clean(1));
        flights.on_early_answer(1, false);
        assert!(!flights.is_clean(1) && flights.is_clean(2));
        assert_eq!(flights.take_failure(Some(1)), Some(refusal()));
        assert!(flights.is_clean(1));
    }
}
