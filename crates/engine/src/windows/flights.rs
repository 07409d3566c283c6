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
    /// Data that a target sends back, which is received later: data, or without room an answer. The
    /// only flight to its target.
    Later { tag: i32, into: Buf },
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
        matches!(
            self,
            What::Later { .. } | What::Data { .. } | What::Answer { .. }
        )
    }
}

#[derive(Debug)]
struct Flight {
    number: u64,
    what: What,
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

/// See the module.
#[derive(Default, Debug)]
pub(super) struct Flights {
    lines: BTreeMap<u32, TargetFlights>,
    /// Number of the last flight.
    last: u64,
    /// Conflicts that answers have reported (KW_CHECK).
    pub notices: Vec<Vec<u8>>,
    /// How many are [`What::Later`].
    later: usize,
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

    /// The number of the new flight.
    pub fn push(&mut self, rank: u32, what: What) -> u64 {
        self.last += 1;
        let number = self.last;
        let line = self.lines.entry(rank).or_default();
        line.unsent += matches!(what, What::Unsent { .. }) as usize;
        line.answers += what.answers() as usize;
        self.later += matches!(what, What::Later { .. }) as usize;
        line.flights.push_back(Flight { number, what });
        number
    }

    /// Whether nothing is under way to a target.
    pub fn is_idle(&self, rank: u32) -> bool {
        self.lines.get(&rank).is_none_or(|l| l.flights.is_empty())
    }

    fn later_of(&self, rank: u32) -> Option<(i32, &Buf)> {
        match &self.lines.get(&rank)?.flights.front()?.what {
            What::Later { tag, into } => Some((*tag, into)),
            _ => None,
        }
    }

    /// Tag and room of the data that a target sends back, if that is received later and is all that
    /// is under way there.
    pub fn later(&self, rank: u32) -> Option<(i32, Buf)> {
        let alone = self.later != 0 && self.lines.get(&rank)?.flights.len() == 1;
        let (tag, into) = self.later_of(rank).filter(|_| alone)?;
        Some((tag, into.clone()))
    }

    /// A flight whose receive has to be posted now.
    pub fn next_later(&self) -> Option<(u32, i32, Buf)> {
        if self.later == 0 {
            return None;
        }
        self.lines.keys().find_map(|&rank| {
            let (tag, into) = self.later_of(rank)?;
            Some((rank, tag, into.clone()))
        })
    }

    /// Its receive is posted.
    pub fn expected(&mut self, rank: u32, what: What) {
        self.later -= 1;
        let line = self.lines.get_mut(&rank);
        if let Some(first) = line.and_then(|l| l.flights.front_mut()) {
            first.what = what;
        }
    }

    /// It has come without a receive.
    pub fn answered(&mut self, rank: u32, well: bool) {
        self.later -= 1;
        if let Some(line) = self.lines.get_mut(&rank) {
            line.flights.pop_front();
            line.answers -= 1;
            line.failure = line.failure.take().or_else(|| (!well).then(refusal));
        }
    }

    /// Whether the end of anything on its way to a target shows that the target makes progress.
    pub fn will_answer(&self, rank: u32) -> bool {
        self.lines.get(&rank).is_some_and(|l| l.answers != 0)
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
                    What::Unsent { .. } | What::Later { .. } => None,
                    What::Ended => Some(Outcome::CLEAN),
                    What::Sending(req) | What::Data { req, .. } | What::Answer { req, .. } => {
                        messages.take(*req)
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
        let before =
            |line: &TargetFlights| line.flights.front().is_some_and(|f| f.number <= number);
        match rank {
            Some(rank) => !self.lines.get(&rank).is_some_and(before),
            None => !self.lines.values().any(before),
        }
    }

    /// Targets to which flights up to a number are active.
    pub fn targets(&self, number: u64) -> impl Iterator<Item = u32> {
        let before = move |l: &TargetFlights| l.flights.front().is_some_and(|f| f.number <= number);
        let lines = self.lines.iter();
        lines.filter(move |(_, l)| before(l)).map(|(rank, _)| *rank)
    }

    /// Takes the error of flights to a rank, or to any.
    pub fn take_failure(&mut self, rank: Option<u32>) -> Option<Failure> {
        match rank {
            Some(rank) => self.lines.get_mut(&rank)?.failure.take(),
            None => self.lines.values_mut().find_map(|l| l.failure.take()),
        }
    }
}
