//! The queue of events: ranks that talk to servers until they are ready.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::StartError;
use super::servers::{HEAD, Servers};
use super::{Barrier, Figures, Knows, Scenario, Talked};
use kw_start::{
    Agree, Cpus, Heard, Hosts, Joins, KvsRequest, Publish, Publishing, Record, Talk, Turn, Word,
};

/// A listening address, as paths write it.
const ADDRESS: &str = "10.11.12.13:45678";
/// Stands for the questions before the start proper.
const GREETING: &str = "greeting";
/// The name of a host's shared memory.
const MEMORY: &str = "0123456789abcdef0123456789abcdef";

/// A rank's current conversation.
enum Rank {
    /// This many requests of the greeting are left.
    Greets(u32),
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
    pub scenario: Scenario,
    pub servers: Servers,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    events: u64,
    ranks: Vec<Rank>,
    /// Requests and answers of a rank.
    asked: Vec<Option<KvsRequest>>,
    heard: Vec<Heard>,
    talked: Vec<Talked>,
    store: HashMap<String, String>,
    fresh: Vec<(String, String)>,
    /// The host of each rank, as each rank knows it, if hosts are told apart by name.
    maps: Vec<Vec<u32>>,
    pub ready_ns: u64,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> World {
        let n = scenario.ranks;
        World {
            scenario: *scenario,
            servers: Servers::new(scenario),
            queue: BinaryHeap::new(),
            events: 0,
            ranks: (0..n).map(|_| Rank::Greets(scenario.greeting)).collect(),
            asked: vec![None; n as usize],
            heard: vec![Heard::Done; n as usize],
            talked: vec![Talked::default(); n as usize],
            store: HashMap::from([(GREETING.to_string(), String::new())]),
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
    pub(super) fn start(&mut self) -> Result<(), StartError> {
        for r in 0..self.scenario.ranks {
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
            Some(rank) => Err(StartError::Rank(rank as u32)),
            None => Ok(()),
        }
    }

    /// A server has something to do.
    pub(super) fn serve(&mut self, event: Event, now: u64) -> Result<(), StartError> {
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
    fn go_on(&mut self, rank: u32, now: u64) -> Result<(), StartError> {
        let r = rank as usize;
        loop {
            let heard = std::mem::replace(&mut self.heard[r], Heard::Done);
            let request = match &mut self.ranks[r] {
                Rank::Greets(left) if *left > 0 => {
                    *left -= 1;
                    Some(KvsRequest::Get {
                        from: rank,
                        key: GREETING.into(),
                    })
                }
                Rank::Greets(_) => {
                    self.greeted(rank);
                    continue;
                }
                Rank::Agrees(talk) => match talk.next(heard)? {
                    Turn::Request(request) => Some(request),
                    Turn::Over(agreed) => {
                        if let Hosts::Named(hosts) = &agreed.hosts {
                            self.learned(hosts);
                        }
                        self.publishes(rank, agreed.here);
                        continue;
                    }
                },
                Rank::Publishes(talk) => match talk.next(heard)? {
                    Turn::Request(request) => Some(request),
                    Turn::Over(_) => None,
                },
                Rank::Ready => None,
            };
            match request {
                Some(request) => self.ask(rank, request, now),
                None => self.ranks[r] = Rank::Ready,
            }
            return Ok(());
        }
    }

    /// The conversation is open: the ranks agree on the job.
    fn greeted(&mut self, rank: u32) {
        let s = &self.scenario;
        if s.ranks == 1 {
            return self.publishes(rank, false);
        }
        let from_launcher = s.knows != Knows::Ranks;
        let record = Record {
            host: (!from_launcher).then(|| format!("node{}-boot", rank / s.per_host)),
            cpus: Cpus {
                set: (0..s.per_host).collect(),
                ..Cpus::default()
            },
            settings: Vec::new(),
            bound: None,
        };
        let word = (rank == 0).then(|| Word {
            key: (s.knows != Knows::Key).then_some([7; 32]),
            from_launcher: from_launcher.then(|| (0..s.ranks).map(|r| r / s.per_host).collect()),
            named: false,
            here: s.hosts() == 1,
            calibration: Default::default(),
        });
        let memory = (from_launcher && s.leads(rank)).then(|| MEMORY.to_string());
        let agree = Agree::new((rank, s.ranks), &record, word, memory);
        self.ranks[rank as usize] = Rank::Agrees(agree);
    }

    /// A rank that knows the job publishes its address.
    fn publishes(&mut self, rank: u32, here: bool) {
        let s = &self.scenario;
        let published = s.knows != Knows::Ranks;
        let lead = rank / s.per_host * s.per_host;
        let publish = Publish {
            rank,
            fence: s.ranks > 1 && !here,
            listens: (s.hosts() > 1).then(|| ("tcp", ADDRESS.to_string())),
            leads: (s.leads(rank) && !published).then(|| MEMORY.to_string()),
            joins: (rank != lead).then_some(Joins { lead, published }),
        };
        self.ranks[rank as usize] = Rank::Publishes(publish.plan());
    }

    fn learned(&mut self, hosts: &[u32]) {
        if cfg!(test) {
            self.maps.push(hosts.to_vec());
        }
    }

    /// A question leaves.
    pub(super) fn ask(&mut self, rank: u32, request: KvsRequest, now: u64) {
        let t = &mut self.talked[rank as usize];
        let bytes = HEAD
            + match &request {
                KvsRequest::Put { key, value } => (key.len() + value.len()) as u64,
                KvsRequest::Get { key, .. } => key.len() as u64,
                KvsRequest::Fence => 0,
            };
        t.asks += 1;
        t.bytes += bytes;
        t.gets += u64::from(matches!(request, KvsRequest::Get { .. }));
        t.fences += u64::from(request == KvsRequest::Fence);
        self.asked[rank as usize] = Some(request);
        let there = now + self.servers.way(rank, bytes);
        self.at(there, Event::Asked(rank));
    }

    fn answer(&mut self, rank: u32, now: u64) -> Result<(), StartError> {
        let server = self.servers.of(rank);
        let now = self.servers.handle(server, now);
        let heard = match self.asked[rank as usize].take() {
            Some(KvsRequest::Put { key, value }) => {
                self.servers.list[server as usize].fresh += (key.len() + value.len()) as u64;
                self.fresh.push((key, value));
                Heard::Done
            }
            Some(KvsRequest::Get { key, .. }) => {
                let value = self.store.get(&key);
                Heard::Value(value.ok_or(StartError::Value(key))?.clone())
            }
            Some(KvsRequest::Fence) | None => {
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

    /// Cost so far.
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
