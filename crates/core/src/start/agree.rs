//! How ranks under a launcher that knows nothing of Kittiwake agree on the job's key, and on who is on which host.
//!
//! Rank 0 makes the key and stores it in one word, with how hosts are told apart: `map` (as the launcher says) or `name`.

use std::collections::VecDeque;

use super::gather::Gather;
use super::{Ask, Heard, Talk, Turn};
use crate::pmi::text;

/// Key of rank 0's word.
const ROOT: &str = "kw_root_key";

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
    gather: Gather,
}

impl Agree {
    /// `told`: the launcher says who is where, to all ranks alike. `fresh`: at rank 0, a new key and whether hosts have to be told apart
    /// by name all the same. `name`: what tells this rank's host from others.
    pub fn new(
        rank: u32,
        size: u32,
        told: bool,
        name: &str,
        fresh: Option<([u8; 32], bool)>,
    ) -> Agree {
        let gather = Gather::new(rank, size, name);
        let word = fresh.map(|(key, named)| {
            let by = if named || !told { "name" } else { "map" };
            format!("{by} {}", text::hex(&key))
        });
        let word = word.map(|value| Ask::Put {
            key: ROOT.into(),
            value,
        });
        let name = (!told).then(|| gather.own());
        let plan = word.into_iter().chain(name).chain([Ask::Fence]).collect();
        Agree {
            told,
            phase: Phase::Opening,
            plan,
            key: [0; 32],
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
        }
    }

    /// Takes rank 0's word.
    fn word(&mut self, word: &str) -> Result<Turn<Agreed>, String> {
        let parsed = word.split_once(' ');
        let parsed = parsed.and_then(|(by, digits)| Some((by, text::unhex(digits)?)));
        let (by, key) = parsed.ok_or_else(|| format!("'{ROOT}' is not what rank 0 stored"))?;
        self.key = key;
        match (by, self.told) {
            ("map", true) => return Ok(Turn::Over(self.agreed(Hosts::Told))),
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
