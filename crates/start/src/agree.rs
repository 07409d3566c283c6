//! How ranks under a launcher that knows nothing of Kittiwake agree on the job's key, and on who is on which host.
//!
//! Rank 0 makes the key and stores it in one word, with how hosts are told apart: `map` (as the launcher says), `name`, or `here`: as the
//! launcher says, and what everybody has stored already is all that there is to know, so that nobody has to fence again.

use std::collections::VecDeque;

use super::gather::Gather;
use super::{Ask, Heard, Talk, Turn, memory_key};
use crate::pmi::text;

/// Key of rank 0's word.
const ROOT: &str = "kw_root_key";

/// What rank 0 decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// A new key.
    pub key: [u8; 32],
    /// Hosts have to be told apart by name, whatever the launcher says.
    pub named: bool,
    /// All ranks share the memory of one host, if the launcher is right: nobody listens for other hosts.
    pub here: bool,
}

/// Who is where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// As the launcher has said.
    Told,
    /// Host number of each rank.
    Named(Vec<u32>),
}

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The job's key.
    pub key: [u8; 32],
    /// Who is where.
    pub hosts: Hosts,
    /// Nothing is left to be stored: the first rank has said where its memory is.
    pub here: bool,
}

#[derive(Debug)]
enum Phase {
    /// The word, and our name where the launcher maps nothing.
    Opening,
    /// The word was asked for.
    Word,
    /// Our name, because rank 0 wants names.
    Naming,
    /// Names travel.
    Gathering,
}

/// The machine.
pub struct Agree {
    told: bool,
    phase: Phase,
    /// What is asked before the phase is over.
    plan: VecDeque<Ask>,
    key: [u8; 32],
    here: bool,
    gather: Gather,
}

impl Word {
    fn write(&self, told: bool) -> String {
        let by = match (self.named || !told, self.here) {
            (true, _) => "name",
            (false, true) => "here",
            (false, false) => "map",
        };
        format!("{by} {}", text::hex(&self.key))
    }
}

impl Agree {
    /// `told`: the launcher says who is where, to all ranks alike. `name`: what tells this rank's host from others. `word`: at rank 0.
    /// `memory`: where the memory of this rank's host is, if it is the first there by what the launcher says.
    pub fn new(
        (rank, size): (u32, u32),
        told: bool,
        name: &str,
        word: Option<Word>,
        memory: Option<String>,
    ) -> Agree {
        let gather = Gather::new(rank, size, name);
        let word = word.map(|w| Ask::Put {
            key: ROOT.into(),
            value: w.write(told),
        });
        let memory = memory.map(|value| Ask::Put {
            key: memory_key(rank, true),
            value,
        });
        let name = (!told).then(|| gather.own());
        let puts = word.into_iter().chain(memory).chain(name);
        let plan = puts.chain([Ask::Fence]).collect();
        Agree {
            told,
            phase: Phase::Opening,
            plan,
            key: [0; 32],
            here: false,
            gather,
        }
    }

    fn gathered(&mut self, heard: Heard) -> Result<Turn<Agreed>, String> {
        Ok(match self.gather.next(heard)? {
            Turn::Ask(ask) => Turn::Ask(ask),
            Turn::Over(hosts) => Turn::Over(self.agreed(Hosts::Named(hosts))),
        })
    }

    fn agreed(&self, hosts: Hosts) -> Agreed {
        Agreed {
            key: self.key,
            hosts,
            here: self.here,
        }
    }

    /// Takes rank 0's word.
    fn word(&mut self, word: &str) -> Result<Turn<Agreed>, String> {
        let parsed = word.split_once(' ');
        let parsed = parsed.and_then(|(by, digits)| Some((by, text::unhex(digits)?)));
        let (by, key) = parsed.ok_or_else(|| format!("'{ROOT}' is not what rank 0 stored"))?;
        self.key = key;
        match (by, self.told) {
            ("map" | "here", true) => {
                self.here = by == "here";
                return Ok(Turn::Over(self.agreed(Hosts::Told)));
            }
            (_, true) => self.plan = [self.gather.own(), Ask::Fence].into(),
            (_, false) => {}
        }
        self.phase = Phase::Naming;
        self.next(Heard::Done)
    }
}

impl Talk for Agree {
    type Out = Agreed;

    fn next(&mut self, heard: Heard) -> Result<Turn<Agreed>, String> {
        if let Some(ask) = self.plan.pop_front() {
            return Ok(Turn::Ask(ask));
        }
        match (&self.phase, heard) {
            (Phase::Opening, _) => {
                self.phase = Phase::Word;
                Ok(Turn::Ask(Ask::Get {
                    from: 0,
                    key: ROOT.into(),
                }))
            }
            (Phase::Word, Heard::Value(word)) => self.word(&word),
            (Phase::Word, Heard::Done) => Err(format!("'{ROOT}' has no value")),
            (Phase::Naming, _) => {
                self.phase = Phase::Gathering;
                self.gathered(Heard::Done)
            }
            (Phase::Gathering, heard) => self.gathered(heard),
        }
    }
}
