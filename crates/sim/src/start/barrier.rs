//! The first barrier between the leaders of hosts: the schedule that the built-in table chooses.
//! Each address is asked for, and each connection made, when the first frame goes there.

use std::collections::HashMap;

use super::StartError;
use super::world::{Event, World};
use super::{Barrier, Scenario};
use kw_coll::table::Site;
use kw_coll::{Coll, Schedule, Step, Table};
use kw_proto::handshake::{CHALLENGE_LEN, HELLO_LEN, PROOF_LEN};
use kw_proto::wire::HEADER_LEN;
use kw_start::{KvsRequest, address_key};

/// Bytes of the proofs of one connection.
const PROOFS: u64 = (HELLO_LEN + CHALLENGE_LEN + 2 * PROOF_LEN) as u64;
/// Trips between the hosts before the first frame may go: TCP's own three, then hello to verdict,
/// of which the first overlaps.
const WAYS: u64 = 6;

#[derive(Default)]
struct Leader {
    steps: Vec<Step>,
    at: usize,
    /// For each slot, the frame and sender that end it; none for a send.
    slots: Vec<Option<(u32, u32)>>,
    posted: HashMap<u32, u32>,
    arrived: HashMap<u32, u32>,
    /// When the connection to a leader is there.
    links: HashMap<u32, u64>,
    lookups: u64,
    ended: Option<u64>,
}

struct Leaders<'a> {
    world: &'a mut World,
    list: Vec<Leader>,
    scenario: Scenario,
    counts: Barrier,
}

/// Runs it from the time when all are ready.
pub(super) fn run(world: &mut World) -> Result<Barrier, StartError> {
    let (scenario, began) = (world.scenario, world.ready_ns);
    let hosts = scenario.hosts();
    let table = Table::with("")?;
    let list = (0..hosts).map(|h| Leader {
        steps: steps(&table, h, hosts),
        ..Leader::default()
    });
    let mut leaders = Leaders {
        list: list.collect(),
        scenario,
        counts: Barrier::default(),
        world,
    };
    for host in 0..hosts {
        leaders.go_on(host, began);
    }
    while let Some((now, event)) = leaders.world.next() {
        match event {
            Event::Answered(rank) => leaders.dial(rank / scenario.per_host, now),
            Event::Frame(to, from) => {
                *leaders.list[to as usize].arrived.entry(from).or_default() += 1;
                leaders.go_on(to, now);
            }
            other => leaders.world.serve(other, now)?,
        }
    }
    leaders.counted(began)
}

fn steps(table: &Table, rank: u32, size: u32) -> Vec<Step> {
    let site = Site {
        shared: false,
        network: true,
    };
    let call = kw_coll::CallView::new(rank, size);
    let (algorithm, param) = table.choose(Coll::Barrier, 0, site, &call);
    let mut schedule = Schedule::default();
    (algorithm.emit)(&kw_coll::CallView { param, ..call }, &mut schedule);
    schedule.steps
}

impl Leaders<'_> {
    /// A leader does its steps as far as it can.
    fn go_on(&mut self, host: u32, now: u64) {
        while let Some(step) = self.list[host as usize].next() {
            match step {
                Step::Send { to, .. } => {
                    let Some(up) = self.list[host as usize].links.get(&to).copied() else {
                        return self.look_up(host, to, now);
                    };
                    self.list[host as usize].slots.push(None);
                    let bytes = HEADER_LEN as u64;
                    self.counts.bytes += bytes;
                    let there = now.max(up) + self.world.servers.far(bytes);
                    self.world.at(there, Event::Frame(to, host));
                }
                Step::Recv { from, .. } => self.list[host as usize].post(from),
                Step::Await(slot) if !self.list[host as usize].has(slot) => return,
                Step::Fence if !self.list[host as usize].has_all() => return,
                _ => {}
            }
            self.list[host as usize].at += 1;
        }
        self.list[host as usize].ended.get_or_insert(now);
    }

    /// The program waits until the launcher has said where that leader listens.
    fn look_up(&mut self, host: u32, to: u32, now: u64) {
        let each = self.scenario.per_host;
        self.list[host as usize].lookups += 1;
        let from = to * each;
        let key = address_key("tcp", from);
        self.world
            .ask(host * each, KvsRequest::Get { from, key }, now);
    }

    /// The address that the current step wants is known.
    fn dial(&mut self, host: u32, now: u64) {
        if let Some(Step::Send { to, .. }) = self.list[host as usize].next() {
            let up = now + WAYS * self.scenario.far_ns;
            self.counts.made += 1;
            self.counts.bytes += PROOFS;
            self.list[host as usize].links.insert(to, up);
            self.list[to as usize].links.entry(host).or_insert(up);
        }
        self.go_on(host, now);
    }

    fn counted(self, began: u64) -> Result<Barrier, StartError> {
        let mut counts = self.counts;
        for (leader, host) in self.list.iter().zip(0..) {
            let ended = leader.ended.ok_or(StartError::Leader(host))?;
            counts.took_ns = counts.took_ns.max(ended - began);
            counts.lookups = counts.lookups.max(leader.lookups);
            counts.connections = counts.connections.max(leader.links.len() as u64);
        }
        Ok(counts)
    }
}

impl Leader {
    fn next(&self) -> Option<Step> {
        self.steps.get(self.at).copied()
    }

    fn post(&mut self, from: u32) {
        let nth = self.posted.entry(from).or_default();
        *nth += 1;
        self.slots.push(Some((from, *nth)));
    }

    fn has(&self, slot: u32) -> bool {
        match self.slots.get(slot as usize) {
            Some(Some((from, nth))) => self.arrived.get(from).unwrap_or(&0) >= nth,
            _ => true,
        }
    }

    fn has_all(&self) -> bool {
        (0..self.slots.len() as u32).all(|s| self.has(s))
    }
}
