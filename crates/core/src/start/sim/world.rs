//! The queue of events: ranks that talk to servers until they are ready.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::servers::{HEAD, Servers};
use super::{Barrier, Figures, Setting, Talked};
use crate::start::{
    Agree, Agreed, Ask, Heard, Hosts, Joins, Publish, Publishing, Talk, Turn, Word,
};

/// A listening address, as paths write it.
const ADDRESS: &str = "10.11.12.13:45678";
/// The name of a host's shared memory.
const MEMORY: &str = "kittiwake-0123456789abcdef0123456789abcdef";

/// Which conversation a rank is in.
enum Rank {
    Agrees(Agree),
    Publishes(Publishing),
    Ready,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A rank's question is at its server.
    Asked(u32),
    /// The answer is at the rank.
    Answered(u32),
    /// A fence's values came from below.
    Up(u32, u64),
    /// A fence's values came from above.
    Down(u32, u64),
    /// A frame of the first barrier came: to, from.
    Frame(u32, u32),
}

pub(super) struct World {
    pub setting: Setting,
    pub servers: Servers,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events: u64,
    ranks: Vec<Rank>,
    /// What a rank has asked, and then heard.
    asked: Vec<Option<Ask>>,
    heard: Vec<Heard>,
    talked: Vec<Talked>,
    store: HashMap<String, String>,
    fresh: Vec<(String, String)>,
    /// By rank, the host of each, where hosts are told apart by name.
    maps: Vec<Vec<u32>>,
    pub ready_ns: u64,
}

impl World {
    pub(super) fn new(setting: &Setting) -> World {
        let n = setting.ranks;
        let rank = |r| {
            let name = format!("node{}-boot", r / setting.per_host);
            let word = (r == 0).then_some(Word {
                key: [7; 32],
                named: false,
                here: setting.hosts() == 1,
            });
            let memory = (setting.maps && setting.leads(r)).then(|| MEMORY.to_string());
            Rank::Agrees(Agree::new((r, n), setting.maps, &name, word, memory))
        };
        World {
            setting: *setting,
            servers: Servers::new(setting),
            queue: BinaryHeap::new(),
            events: 0,
            ranks: (0..n).map(rank).collect(),
            asked: vec![None; n as usize],
            heard: vec![Heard::Done; n as usize],
            talked: vec![Talked::default(); n as usize],
            store: HashMap::new(),
            fresh: Vec::new(),
            maps: Vec::new(),
            ready_ns: 0,
        }
    }

    pub(super) fn at(&mut self, when: u64, event: Event) {
        self.events += 1;
        self.queue.push(Reverse((when, self.events, event)));
    }

    pub(super) fn next(&mut self) -> Option<(u64, Event)> {
        self.queue
            .pop()
            .map(|Reverse((now, _, event))| (now, event))
    }

    /// All ranks, from nothing to ready.
    pub(super) fn start(&mut self) -> Result<(), String> {
        for r in 0..self.setting.ranks {
            self.at(0, Event::Answered(r));
        }
        while let Some((now, event)) = self.next() {
            self.ready_ns = now;
            match event {
                Event::Answered(rank) => self.go_on(rank, now)?,
                other => self.serve(other, now)?,
            }
        }
        match self.ranks.iter().position(|r| !matches!(r, Rank::Ready)) {
            Some(rank) => Err(format!("rank {rank} waits for ever")),
            None => Ok(()),
        }
    }

    /// A server has something to do.
    pub(super) fn serve(&mut self, event: Event, now: u64) -> Result<(), String> {
        match event {
            Event::Asked(rank) => self.answer(rank, now),
            Event::Up(server, bytes) => {
                self.servers.list[server as usize].fresh += bytes;
                let now = self.servers.handle(server, now);
                self.come(server, now);
                Ok(())
            }
            Event::Down(server, bytes) => {
                let now = self.servers.handle(server, now);
                self.release(server, now, bytes);
                Ok(())
            }
            Event::Answered(_) | Event::Frame(..) => Ok(()),
        }
    }

    /// A rank takes its answer, and asks the next question.
    fn go_on(&mut self, rank: u32, now: u64) -> Result<(), String> {
        let r = rank as usize;
        loop {
            let heard = std::mem::replace(&mut self.heard[r], Heard::Done);
            let ask = match &mut self.ranks[r] {
                Rank::Agrees(talk) => match talk.next(heard)? {
                    Turn::Ask(ask) => Some(ask),
                    Turn::Over(agreed) => {
                        self.agreed(rank, agreed);
                        continue;
                    }
                },
                Rank::Publishes(talk) => match talk.next(heard)? {
                    Turn::Ask(ask) => Some(ask),
                    Turn::Over(_) => None,
                },
                Rank::Ready => None,
            };
            match ask {
                Some(ask) => self.ask(rank, ask, now),
                None => self.ranks[r] = Rank::Ready,
            }
            return Ok(());
        }
    }

    fn agreed(&mut self, rank: u32, agreed: Agreed) {
        let s = &self.setting;
        let lead = rank / s.per_host * s.per_host;
        let leads = (s.leads(rank) && !s.maps).then(|| MEMORY.to_string());
        let joins = (rank != lead).then_some(Joins { lead, said: s.maps });
        let wire = (s.hosts() > 1).then(|| ("tcp", ADDRESS.to_string()));
        let publish = Publish {
            rank,
            fence: s.ranks > 1 && !agreed.here,
            listens: wire,
            leads,
            joins,
        };
        self.ranks[rank as usize] = Rank::Publishes(publish.plan());
        if cfg!(test)
            && let Hosts::Named(hosts) = agreed.hosts
        {
            self.maps.push(hosts);
        }
    }

    /// A question leaves.
    pub(super) fn ask(&mut self, rank: u32, ask: Ask, now: u64) {
        let t = &mut self.talked[rank as usize];
        let bytes = HEAD
            + match &ask {
                Ask::Put { key, value } => (key.len() + value.len()) as u64,
                Ask::Get { key, .. } => key.len() as u64,
                Ask::Fence => 0,
            };
        t.asks += 1;
        t.bytes += bytes;
        t.gets += u64::from(matches!(ask, Ask::Get { .. }));
        t.fences += u64::from(ask == Ask::Fence);
        self.asked[rank as usize] = Some(ask);
        let there = now + self.servers.way(rank, bytes);
        self.at(there, Event::Asked(rank));
    }

    fn answer(&mut self, rank: u32, now: u64) -> Result<(), String> {
        let server = self.servers.of(rank);
        let now = self.servers.handle(server, now);
        let heard = match self.asked[rank as usize].take() {
            Some(Ask::Put { key, value }) => {
                self.servers.list[server as usize].fresh += (key.len() + value.len()) as u64;
                self.fresh.push((key, value));
                Heard::Done
            }
            Some(Ask::Get { key, .. }) => {
                let value = self.store.get(&key);
                Heard::Value(value.ok_or_else(|| format!("'{key}' is lost"))?.clone())
            }
            Some(Ask::Fence) | None => {
                self.come(server, now);
                return Ok(());
            }
        };
        self.reply(server, rank, heard, now);
        Ok(())
    }

    fn reply(&mut self, server: u32, rank: u32, heard: Heard, now: u64) {
        let bytes = HEAD
            + match &heard {
                Heard::Value(v) => v.len() as u64,
                Heard::Done => 0,
            };
        self.talked[rank as usize].bytes += bytes;
        self.heard[rank as usize] = heard;
        let left = self.servers.handle(server, now);
        let there = left + self.servers.way(rank, bytes);
        self.at(there, Event::Answered(rank));
    }

    /// A rank or a child came to the fence.
    fn come(&mut self, server: u32, now: u64) {
        let s = &mut self.servers.list[server as usize];
        s.came += 1;
        if s.came < s.due {
            return;
        }
        s.came = 0;
        let bytes = std::mem::take(&mut s.fresh);
        match self.servers.parent(server) {
            Some(parent) => {
                let there = self.servers.pass_on(server, now, HEAD + bytes);
                self.at(there, Event::Up(parent, bytes));
            }
            None => {
                self.store.extend(std::mem::take(&mut self.fresh));
                self.release(server, now, bytes);
            }
        }
    }

    fn release(&mut self, server: u32, now: u64, bytes: u64) {
        for child in self.servers.children(server) {
            let there = self.servers.pass_on(server, now, HEAD + bytes);
            self.at(there, Event::Down(child, bytes));
        }
        for rank in self.servers.ranks_of(server) {
            self.reply(server, rank, Heard::Done, now);
        }
    }

    #[cfg(test)]
    pub(super) fn maps(self) -> Vec<Vec<u32>> {
        self.maps
    }

    /// What it took so far.
    pub(super) fn figures(&self) -> Figures {
        let (mut all, mut most) = (Talked::default(), Talked::default());
        for t in &self.talked {
            all.asks += t.asks;
            all.gets += t.gets;
            all.fences += t.fences;
            all.bytes += t.bytes;
            most.asks = most.asks.max(t.asks);
            most.gets = most.gets.max(t.gets);
            most.fences = most.fences.max(t.fences);
            most.bytes = most.bytes.max(t.bytes);
        }
        let busiest = self.servers.list.iter().map(|s| s.handled).max();
        Figures {
            all,
            most,
            between: self.servers.between,
            between_bytes: self.servers.between_bytes,
            busiest: busiest.unwrap_or(0),
            ready_ns: self.ready_ns,
            barrier: Barrier::default(),
        }
    }
}
