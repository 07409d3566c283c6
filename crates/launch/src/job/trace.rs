//! `--trace`: takes the ranks' records over time, and has them written to the file.
//!
//! Records from another host wait until that host's clock was queried once more, so that their
//! times lie between two known ones.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use super::hosts::Hosts;
use super::{Common, Job};
use crate::plan::Plan;
use crate::trace::clock::Remote;
use crate::trace::file::{TraceFile, Who};
use crate::verdict::Verdict;
use kw_base::Tick;
use kw_start::helper::Order;
use kw_start::trace::Batch;
use kw_sys::clock;

/// Number of questions to a clock in a row; the best of the answers counts.
const QUESTIONS: u32 = 8;
/// Time until the next row of questions.
const EVERY: Duration = Duration::from_secs(1);
/// Most records that wait to be written; further ones stay in the rings.
const MOST: usize = 1 << 20;
/// Number of records that are turned into packets at a time.
const PIECE: usize = 1024;
/// Time spent on packets before other events are handled.
const SLICE: Duration = Duration::from_millis(5);
/// Time limit for the last answers.
const PATIENCE: Duration = Duration::from_secs(1);

/// Another host.
#[derive(Debug, Default)]
struct Away {
    clock: Remote,
    /// Records that wait for the clock.
    held: Vec<(u32, Batch)>,
    /// Remaining questions of this row.
    left: u32,
    /// When the next row begins; unused while one is in progress.
    ask_at: Option<Tick>,
}

/// State of the trace of a job.
#[derive(Debug, Default)]
pub(super) struct Trace {
    file: Option<TraceFile>,
    next: Option<Tick>,
    /// Records taken from ranks of this machine and not yet written, and their number.
    queue: VecDeque<(u32, Batch)>,
    /// Number of records of the first of these that are already written.
    written: usize,
    queued: usize,
    /// Other hosts, by machine.
    away: HashMap<u32, Away>,
}

impl Trace {
    pub(super) fn new(plan: &Plan) -> Result<Trace, Verdict> {
        let Some(path) = &plan.trace else {
            return Ok(Trace::default());
        };
        let file = TraceFile::open(path, &plan.sharing, plan.ranks.len() as u32);
        let file = file.map_err(|e| {
            let path = path.display();
            Verdict::new(1, format!("the trace cannot be written to '{path}': {e}"))
        })?;
        Ok(Trace {
            file: Some(file),
            next: Some(Tick(0)),
            ..Trace::default()
        })
    }

    /// When the next action is due without an event.
    pub(super) fn next(&self) -> Tick {
        self.next.unwrap_or(Tick::NEVER)
    }

    /// Takes the records of living ranks, asks clocks, and writes.
    pub(super) fn take(&mut self, common: &mut Common, now: Tick) {
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        if self.queued < MOST {
            let living = common.hosts.here.living();
            self.add_records(&mut common.hosts, &living, false);
        }
        self.ask_clocks(&mut common.hosts, now);
        self.write_queued(common, now + SLICE);
        let every = common.hosts.here.trace_every().unwrap_or(EVERY);
        self.next = Some(match self.queue.is_empty() {
            true => now + every.min(EVERY / 4),
            false => clock::now(),
        });
    }

    /// Makes packets of the waiting records until this time, and writes them.
    fn write_queued(&mut self, common: &mut Common, until: Tick) {
        while let Some((rank, batch)) = self.queue.pop_front() {
            let from = std::mem::take(&mut self.written);
            let to = batch.piece(from, PIECE);
            self.queued -= to - from;
            self.add_part(common, rank, &batch, from..to, None);
            if to < batch.records.len() {
                self.written = to;
                self.queue.push_front((rank, batch));
            }
            self.write(common);
            if clock::now() >= until {
                return;
            }
        }
        self.write(common);
    }

    /// Handles the end of a rank of this machine.
    pub(super) fn keep(&mut self, hosts: &mut Hosts, rank: u32) {
        if self.file.is_some() {
            self.add_records(hosts, &[rank], true);
        }
    }

    fn add_records(&mut self, hosts: &mut Hosts, ranks: &[u32], over: bool) {
        for (rank, batch) in hosts.here.trace(ranks, over) {
            self.queued += batch.records.len();
            self.queue.push_back((rank, batch));
        }
    }

    /// Adds some of the records taken from a rank; those of a rank on another machine by its clock.
    fn add_part(
        &mut self,
        common: &mut Common,
        rank: u32,
        batch: &Batch,
        part: Range<usize>,
        machine: Option<u32>,
    ) {
        if self.file.is_none() {
            return;
        }
        let (identity, plan) = (&common.identity, &common.plan);
        let place = &plan.ranks[rank as usize];
        let words = &plan.apps[place.app].words;
        let program = identity.program_title(&words[0].to_string_lossy());
        let who = Who {
            rank,
            host: &plan.machines[place.machine].name,
            program: &program,
            job: identity.has_parent().then_some(&*identity.name),
        };
        let clock = machine.and_then(|m| self.away.get(&m)).map(|a| &a.clock);
        let ours = |time| clock.map_or(time, |c| c.ours(time));
        let error = clock.map_or(0, Remote::error);
        if let Some(file) = &mut self.file {
            file.add(who, batch, part, ours, error, &mut common.sites);
        }
    }

    fn write(&mut self, common: &Common) {
        let sentence = self.file.as_mut().and_then(TraceFile::write);
        if let Some(sentence) = sentence {
            common.say(sentence);
        }
    }

    /// Handles records of a rank that a helper sends.
    pub(super) fn on_batch(&mut self, machine: u32, rank: u32, batch: &[u8]) {
        if let (Some(batch), Some(_)) = (Batch::decode(batch), &self.file) {
            let away = self.away.entry(machine).or_default();
            away.held.push((rank, batch));
        }
    }

    fn ask_clocks(&mut self, hosts: &mut Hosts, now: Tick) {
        let ready = hosts.away.iter().filter(|r| r.is_ready());
        let machines: Vec<u32> = ready.map(|r| r.machine).collect();
        for machine in machines {
            let away = self.away.entry(machine).or_insert_with(|| Away {
                ask_at: Some(now),
                ..Away::default()
            });
            if away.ask_at.take_if(|at| now >= *at).is_some() {
                away.left = QUESTIONS;
                ask_clock(hosts, machine);
            }
        }
    }

    /// Handles a helper's reading of its clock.
    pub(super) fn on_clock(
        &mut self,
        common: &mut Common,
        machine: u32,
        asked: u64,
        theirs: u64,
        now: Tick,
    ) {
        let Some(away) = self.away.get_mut(&machine) else {
            return;
        };
        away.clock.answer(asked, theirs, now.0);
        away.left = away.left.saturating_sub(1);
        if away.left > 0 {
            return ask_clock(&mut common.hosts, machine);
        }
        away.ask_at = Some(now + EVERY);
        self.release(common, machine);
    }

    /// Adds records that wait for a clock, with the best known offset.
    fn release(&mut self, common: &mut Common, machine: u32) {
        let Some(away) = self.away.get_mut(&machine) else {
            return;
        };
        away.clock.settle();
        if away.clock.is_known() {
            for (rank, batch) in std::mem::take(&mut away.held) {
                self.add_part(common, rank, &batch, 0..batch.records.len(), Some(machine));
            }
        }
    }

    fn ask_for_the_last_time(&mut self, hosts: &mut Hosts, now: Tick) {
        for away in self.away.values_mut() {
            away.ask_at = Some(now);
        }
        self.ask_clocks(hosts, now);
    }

    /// Whether a host has not answered yet that can.
    fn awaits_clocks(&self, hosts: &Hosts) -> bool {
        let is_there = |m: &u32| {
            let at = hosts.helper(*m);
            at.is_some_and(|at| hosts.away[at].is_ready())
        };
        let mut away = self.away.iter();
        away.any(|(m, a)| a.ask_at.is_none() && is_there(m))
    }

    /// Writes what is left.
    fn finish(&mut self, common: &mut Common) {
        let machines: Vec<u32> = self.away.keys().copied().collect();
        machines.into_iter().for_each(|m| self.release(common, m));
        self.next = None;
        self.write(common);
    }
}

fn ask_clock(hosts: &mut Hosts, machine: u32) {
    if let Some(at) = hosts.helper(machine) {
        let question = Order::Clock(clock::now().0);
        hosts.away[at].say(&hosts.epoll, &question);
    }
}

impl Job {
    /// Handles the end of all ranks: clocks are asked for the last time, and the waiting records
    /// are written.
    pub(super) fn end_traces(&mut self) -> Result<(), Verdict> {
        if self.trace.file.is_none() {
            return Ok(());
        }
        self.trace.write_queued(&mut self.common, Tick::NEVER);
        let now = clock::now();
        self.trace
            .ask_for_the_last_time(&mut self.common.hosts, now);
        while self.trace.awaits_clocks(&self.common.hosts) && clock::now() < now + PATIENCE {
            self.trace.next = Some(now + PATIENCE);
            self.turn()?;
        }
        self.trace.finish(&mut self.common);
        Ok(())
    }
}
