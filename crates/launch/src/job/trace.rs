//! `--trace`: takes the ranks' records over time, and has them written to the file.
//!
//! Records from another host wait until that host's clock was queried once more, so that their
//! times lie between two known ones.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use super::Job;
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
}

impl Job {
    /// Takes the records of living ranks, asks clocks, and writes.
    pub(super) fn take_traces(&mut self, now: Tick) {
        if self.trace.next.is_none_or(|next| now < next) {
            return;
        }
        if self.trace.queued < MOST {
            let living = self.hosts.here.living();
            self.add_traces(&living, false);
        }
        self.ask_clocks(now);
        self.write_queued(now + SLICE);
        let every = self.hosts.here.trace_every().unwrap_or(EVERY);
        self.trace.next = Some(match self.trace.queue.is_empty() {
            true => now + every.min(EVERY / 4),
            false => clock::now(),
        });
    }

    /// Makes packets of the waiting records until this time, and writes them.
    fn write_queued(&mut self, until: Tick) {
        while let Some((rank, batch)) = self.trace.queue.pop_front() {
            let from = std::mem::take(&mut self.trace.written);
            let to = batch.piece(from, PIECE);
            self.trace.queued -= to - from;
            self.add_part(rank, &batch, from..to, None);
            if to < batch.records.len() {
                self.trace.written = to;
                self.trace.queue.push_front((rank, batch));
            }
            self.write_trace();
            if clock::now() >= until {
                return;
            }
        }
        self.write_trace();
    }

    /// Handles the end of a rank of this machine.
    pub(super) fn keep_trace(&mut self, rank: u32) {
        if self.trace.file.is_some() {
            self.add_traces(&[rank], true);
        }
    }

    fn add_traces(&mut self, ranks: &[u32], over: bool) {
        for (rank, batch) in self.hosts.here.trace(ranks, over) {
            self.trace.queued += batch.records.len();
            self.trace.queue.push_back((rank, batch));
        }
    }

    /// Adds some of the records taken from a rank; those of a rank on another machine by its clock.
    fn add_part(&mut self, rank: u32, batch: &Batch, part: Range<usize>, machine: Option<u32>) {
        if self.trace.file.is_none() {
            return;
        }
        let plan = &self.plan.ranks[rank as usize];
        let words = &self.plan.apps[plan.app].words;
        let program = self.program_title(&words[0].to_string_lossy());
        let who = Who {
            rank,
            host: &self.plan.machines[plan.machine].name,
            program: &program,
            job: self.parent.is_there().then_some(&*self.name),
        };
        let clock = machine
            .and_then(|m| self.trace.away.get(&m))
            .map(|a| &a.clock);
        let ours = |time| clock.map_or(time, |c| c.ours(time));
        let error = clock.map_or(0, Remote::error);
        if let Some(file) = &mut self.trace.file {
            file.add(who, batch, part, ours, error, &mut self.sites);
        }
    }

    fn write_trace(&mut self) {
        let sentence = self.trace.file.as_mut().and_then(TraceFile::write);
        if let Some(sentence) = sentence {
            self.printing.say(sentence);
        }
    }

    /// Handles records of a rank that a helper sends.
    pub(super) fn on_batch(&mut self, at: usize, rank: u32, batch: &[u8]) {
        let machine = self.hosts.away[at].machine;
        if let (Some(batch), Some(_)) = (Batch::decode(batch), &self.trace.file) {
            let away = self.trace.away.entry(machine).or_default();
            away.held.push((rank, batch));
        }
    }

    fn ask_clocks(&mut self, now: Tick) {
        let ready = self.hosts.away.iter().filter(|r| r.is_ready());
        let machines: Vec<u32> = ready.map(|r| r.machine).collect();
        for machine in machines {
            let away = self.trace.away.entry(machine).or_insert_with(|| Away {
                ask_at: Some(now),
                ..Away::default()
            });
            if away.ask_at.take_if(|at| now >= *at).is_some() {
                away.left = QUESTIONS;
                self.ask_clock(machine);
            }
        }
    }

    fn ask_clock(&mut self, machine: u32) {
        if let Some(at) = self.hosts.helper(machine) {
            let question = Order::Clock(clock::now().0);
            self.hosts.away[at].say(&self.hosts.epoll, &question);
        }
    }

    /// Handles a helper's reading of its clock.
    pub(super) fn on_clock(&mut self, at: usize, asked: u64, theirs: u64, now: Tick) {
        let machine = self.hosts.away[at].machine;
        let Some(away) = self.trace.away.get_mut(&machine) else {
            return;
        };
        away.clock.answer(asked, theirs, now.0);
        away.left = away.left.saturating_sub(1);
        if away.left > 0 {
            return self.ask_clock(machine);
        }
        away.ask_at = Some(now + EVERY);
        self.let_go(machine);
    }

    /// Adds records that wait for a clock, with the best known offset.
    fn let_go(&mut self, machine: u32) {
        let Some(away) = self.trace.away.get_mut(&machine) else {
            return;
        };
        away.clock.settle();
        if away.clock.is_known() {
            for (rank, batch) in std::mem::take(&mut away.held) {
                self.add_part(rank, &batch, 0..batch.records.len(), Some(machine));
            }
        }
    }

    /// Handles the end of all ranks: clocks are asked for the last time, and the waiting records
    /// are written.
    pub(super) fn end_traces(&mut self) -> Result<(), Verdict> {
        if self.trace.file.is_none() {
            return Ok(());
        }
        self.write_queued(Tick::NEVER);
        let now = clock::now();
        let machines: Vec<u32> = self.trace.away.keys().copied().collect();
        for machine in &machines {
            if let Some(away) = self.trace.away.get_mut(machine) {
                away.ask_at = Some(now);
            }
        }
        self.ask_clocks(now);
        let asks = |job: &Job| {
            let is_there = |m: &u32| {
                let at = job.hosts.helper(*m);
                at.is_some_and(|at| job.hosts.away[at].is_ready())
            };
            let mut away = job.trace.away.iter();
            away.any(|(m, a)| a.ask_at.is_none() && is_there(m))
        };
        while asks(self) && clock::now() < now + PATIENCE {
            self.trace.next = Some(now + PATIENCE);
            self.turn()?;
        }
        machines.into_iter().for_each(|m| self.let_go(m));
        self.trace.next = None;
        self.write_trace();
        Ok(())
    }
}
