//! How the ranks agree on what they must know alike: the key, the host of each rank, which hosts
//! are oversubscribed, and that the settings which must be the same are. It takes `O(log n)`
//! questions per rank: records go up a tree of ranks through the launcher, and one verdict comes
//! down.
//!
//! The lists of level 0 are the ranks' own records. At level `l` a rank that is a multiple of
//! `RADIX^l` reads the lists of up to `RADIX - 1` others of the level before, joins them, and
//! stores the longer list; then all fence. In the end rank 0 has the records of all, makes the
//! decision (`verdict`), and stores it for all to read. So all know the same, and all fail alike.

use std::collections::VecDeque;

use super::record::{List, Record};
use super::verdict::{Agreed, Word, read, write};
use super::{Heard, KvsRequest, Mismatch, Talk, Turn, memory_key};
use crate::pmi::Server;

/// Lists that one rank joins at a level. One level is enough for 64 ranks, two for 4096, three for
/// 262,144.
pub const RADIX: u32 = 64;
/// Key of the verdict.
const VERDICT: &str = "kw_agreed";

#[derive(Debug)]
enum State {
    /// Its own record is stored and all have fenced.
    Opening,
    /// Reads the lists of a level; the next one is that of this rank.
    Reading(u32),
    /// Has stored a list, or the verdict.
    Stored,
    /// Waits for all.
    Fencing,
    /// Waits for the verdict.
    Asked,
}

/// The state machine.
#[derive(Debug)]
pub struct Agree {
    rank: u32,
    size: u32,
    /// The first question.
    plan: VecDeque<KvsRequest>,
    /// Number of ranks in a list of the level before.
    span: u64,
    list: List,
    state: State,
    /// At rank 0.
    word: Option<Box<Word>>,
    /// Rank 0's own copy.
    verdict: Option<String>,
}

fn list_key(span: u64, rank: u32) -> String {
    format!("kw_{span}_{rank}")
}

/// The agreement of a single rank.
pub fn alone(record: &Record, word: &Word) -> Result<Agreed, Mismatch> {
    read(&write(word, &List::of(record))?, 1)
}

/// The agreement of the ranks of a launcher; `None` before they have agreed, or for a single rank.
pub fn agreed(server: &Server, size: u32) -> Option<Agreed> {
    read(&server.value(VERDICT)?, size).ok()
}

impl Agree {
    /// `word`: at rank 0. `memory`: where the memory of this rank's host is, if the rank is the
    /// first there according to the launcher.
    pub fn new(
        (rank, size): (u32, u32),
        record: &Record,
        word: Option<Word>,
        memory: Option<String>,
    ) -> Agree {
        let memory = memory.map(|value| KvsRequest::Put {
            key: memory_key(rank, true),
            value,
        });
        let mut agree = Agree {
            rank,
            size,
            plan: VecDeque::new(),
            span: 1,
            list: List::of(record),
            state: State::Opening,
            word: word.map(Box::new),
            verdict: None,
        };
        let puts = memory.into_iter().chain([agree.put_list()]);
        agree.plan = puts.chain([KvsRequest::Fence]).collect();
        agree
    }

    fn put_list(&self) -> KvsRequest {
        KvsRequest::Put {
            key: list_key(self.span, self.rank),
            value: self.list.write(),
        }
    }

    fn wide(&self) -> u64 {
        self.span * u64::from(RADIX)
    }

    /// The next list of this level that this rank must read.
    fn child(&self, next: u32) -> Option<u32> {
        let (rank, next) = (u64::from(self.rank), u64::from(next));
        let mine =
            rank % self.wide() == 0 && next < rank + self.wide() && next < u64::from(self.size);
        mine.then_some(next as u32)
    }

    /// Continues when all lists of this level are read.
    fn joined(&mut self) -> Result<KvsRequest, Mismatch> {
        let ranks = self.list.ranks();
        let due = self.wide().min(u64::from(self.size - self.rank));
        if ranks != due {
            return Err(Mismatch::Ranks { have: ranks, due });
        }
        self.span = self.wide();
        self.state = State::Stored;
        let Some(word) = self.word.take_if(|_| self.span >= u64::from(self.size)) else {
            return Ok(self.put_list());
        };
        let verdict = write(&word, &self.list)?;
        self.verdict = Some(verdict.clone());
        Ok(KvsRequest::Put {
            key: VERDICT.into(),
            value: verdict,
        })
    }

    fn read(&mut self, at: u32) -> Result<Turn<Agreed>, Mismatch> {
        if let Some(from) = self.child(at) {
            self.state = State::Reading(at.saturating_add(self.span as u32));
            let key = list_key(self.span, from);
            return Ok(Turn::Request(KvsRequest::Get { from, key }));
        }
        if u64::from(self.rank).is_multiple_of(self.wide()) {
            return Ok(Turn::Request(self.joined()?));
        }
        self.span = self.wide();
        self.state = State::Fencing;
        Ok(Turn::Request(KvsRequest::Fence))
    }

    fn fenced(&mut self) -> Result<Turn<Agreed>, Mismatch> {
        if self.span < u64::from(self.size) {
            return self.read(self.rank.saturating_add(self.span as u32));
        }
        self.state = State::Asked;
        match self.verdict.take() {
            Some(verdict) => self.next(Heard::Value(verdict)),
            None => Ok(Turn::Request(KvsRequest::Get {
                from: 0,
                key: VERDICT.into(),
            })),
        }
    }
}

impl Talk for Agree {
    type Out = Agreed;

    fn next(&mut self, heard: Heard) -> Result<Turn<Agreed>, Mismatch> {
        if let Some(request) = self.plan.pop_front() {
            return Ok(Turn::Request(request));
        }
        match (&self.state, heard) {
            (State::Opening, _) => self.read(self.rank.saturating_add(1)),
            (State::Reading(at), heard) => {
                let at = *at;
                if let Heard::Value(list) = heard {
                    self.list.join(&List::parse(&list, self.size)?);
                }
                self.read(at)
            }
            (State::Stored, _) => {
                self.state = State::Fencing;
                Ok(Turn::Request(KvsRequest::Fence))
            }
            (State::Fencing, _) => self.fenced(),
            (State::Asked, Heard::Value(verdict)) => Ok(Turn::Over(read(&verdict, self.size)?)),
            (State::Asked, Heard::Done) => Err(Mismatch::NoVerdict(VERDICT)),
        }
    }
}
