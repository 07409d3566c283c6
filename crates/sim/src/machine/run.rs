//! Runs the schedules of all ranks of a call on a machine, in virtual time.
//!
//! Every rank executes its steps in sequence, as `crates/coll/src/lib.rs` says, and waits for
//! shared resources: its core (run until it waits, then the next rank in the queue), the memory of
//! its socket, the line that another core signals, the shm buffer that others read too, the link of
//! its host. Each resource serves requests in order of arrival, whole messages at a time.
//!
//! Left out: what runs beside the job, caches below those of the socket, messages that come before
//! their receive (no copy is counted for them), loss and congestion inside the network, the limits
//! of [`kw_coll::executor::FlowControl`] (calls in a row may run ahead of each other as far as
//! their own steps let them), and yielding before a wait is known to be long.

mod acts;
mod layout;

use super::Machine;
use kw_coll::cost::Prices;
use kw_coll::{Schedule, Step};
use layout::Layout;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// A call that all ranks make.
#[derive(Debug)]
pub struct Call {
    /// Schedules by rank.
    pub schedules: Vec<Schedule>,
    /// Bytes of a unit of buffers and shm buffers.
    pub unit: u64,
    /// Bytes of the caller's buffers of one rank.
    pub footprint: u64,
    /// Ranks of each host; rank 0 and those after it are on the first one.
    pub per_host: u32,
}

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Nanoseconds until the last rank has ended, for one call.
    pub time: f64,
    /// Nanoseconds of CPU time that the ranks of the busiest host took for one call.
    pub work: f64,
}

/// A schedule that comes to no end.
#[derive(Debug, thiserror::Error)]
#[error("rank {rank} never leaves step {step}")]
pub struct Stuck {
    rank: usize,
    step: usize,
}

/// `times` consecutive calls, begun by all ranks at once.
pub fn run(machine: &Machine, call: &Call, times: u32) -> Result<Outcome, Stuck> {
    let mut run = Run::new(machine, call, times);
    run.go();
    run.outcome()
}

/// Condition for which a rank waits.
#[derive(Clone, Copy)]
enum Wait {
    Slot(u32),
    All,
    Stage(u32, u32),
}

/// Work that a message brings to a rank, which does it while it waits.
#[derive(Clone, Copy)]
struct Work {
    ready: f64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Receives a message: nanoseconds and bytes; the sender's slot is occupied this much longer.
    Take {
        slot: u32,
        ns: f64,
        bytes: f64,
        sender: Option<(u32, u32, f64)>,
    },
    /// Sends the data of a long message.
    Stream {
        slot: u32,
        to: u32,
        to_slot: u32,
        bytes: f64,
    },
}

/// A send or a receive whose other end has not come.
#[derive(Clone, Copy)]
struct Posted {
    slot: u32,
    bytes: f64,
    at: f64,
    long: bool,
}

#[derive(Default)]
struct Channel {
    sends: VecDeque<Posted>,
    recvs: VecDeque<Posted>,
}

/// Times of a rank's raises, by call and stage.
type Raises = Vec<((u32, u32), f64)>;

struct Rank {
    pc: usize,
    round: u32,
    /// The next step is the first one of a call.
    calls: bool,
    /// When each slot of this call has ended.
    slots: Vec<f64>,
    open: usize,
    last_end: f64,
    works: Vec<Work>,
    asleep: bool,
    come: u32,
    raises: Raises,
    watchers: Vec<u32>,
    ended: Option<f64>,
}

#[derive(Default)]
struct Core {
    busy: bool,
    queue: VecDeque<u32>,
    last: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Go(u32),
    Wake(u32),
}

struct Run<'a> {
    p: Prices,
    call: &'a Call,
    layout: Layout<'a>,
    times: u32,
    ranks: Vec<Rank>,
    cores: Vec<Core>,
    /// End of the current use of each socket's memory.
    memory: Vec<f64>,
    spills: bool,
    /// Time until another rank gets the core: its waiting ranks poll unsuccessfully first.
    switch: f64,
    /// End of the current use of each rank's line and shm buffer.
    lines: Vec<f64>,
    ports: Vec<f64>,
    /// End of the current use of each host's link, outwards and inwards.
    links: Vec<[f64; 2]>,
    work: Vec<f64>,
    channels: HashMap<(u32, u32), Channel>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
}

impl<'a> Run<'a> {
    fn new(m: &'a Machine, call: &'a Call, times: u32) -> Run<'a> {
        let n = call.schedules.len();
        let rank = |s: &Schedule| Rank {
            pc: 0,
            round: 0,
            calls: true,
            slots: Vec::with_capacity(s.slots as usize),
            open: 0,
            last_end: 0.0,
            works: Vec::new(),
            asleep: false,
            come: 0,
            raises: Vec::new(),
            watchers: Vec::new(),
            ended: None,
        };
        let hosts = n.div_ceil(call.per_host as usize);
        let per_socket = call.per_host.min(m.host_cores()).div_ceil(m.sockets.max(1));
        let per_socket = per_socket.max(call.per_host.min(m.cores)) as f64;
        let mut run = Run {
            p: m.prices,
            call,
            layout: Layout::new(m, call),
            times,
            ranks: call.schedules.iter().map(rank).collect(),
            cores: Vec::new(),
            memory: vec![0.0; hosts * m.sockets as usize],
            spills: call.footprint as f64 * per_socket > m.prices.cache,
            switch: m.prices.switch * call.per_host.div_ceil(m.host_cores()) as f64,
            lines: vec![0.0; n],
            ports: vec![0.0; n],
            links: vec![[0.0; 2]; hosts],
            work: vec![0.0; hosts],
            channels: HashMap::new(),
            events: BinaryHeap::new(),
            count: 0,
        };
        run.cores
            .resize_with(hosts * m.host_cores() as usize, Core::default);
        for r in 0..n as u32 {
            run.ranks[r as usize].asleep = true;
            run.start(r, 0.0);
        }
        run
    }

    fn at(&mut self, time: f64, event: Event) {
        self.count += 1;
        self.events
            .push(Reverse((time.to_bits(), self.count, event)));
    }

    fn go(&mut self) {
        while let Some(Reverse((bits, _, event))) = self.events.pop() {
            let now = f64::from_bits(bits);
            match event {
                Event::Go(r) => self.steps(r, now),
                Event::Wake(r) if self.ranks[r as usize].asleep => self.wake(r, now),
                Event::Wake(_) => {}
            }
        }
    }

    /// Something may have come for which a rank waits.
    fn wake(&mut self, r: u32, now: f64) {
        let wait = self.wait(r);
        let works = &self.ranks[r as usize].works;
        let can = works.iter().any(|w| w.ready <= now);
        if can || wait.is_none_or(|w| self.met(r, w) <= now) {
            self.start(r, now);
        } else if let Some(Wait::Stage(of, _)) = wait {
            self.ranks[of as usize].watchers.push(r);
        }
    }

    /// A rank that slept wants its core.
    fn start(&mut self, r: u32, now: f64) {
        self.ranks[r as usize].asleep = false;
        let (core, switch) = (self.layout.core(r), self.switch);
        let core = &mut self.cores[core];
        if core.busy {
            core.queue.push_back(r);
            return;
        }
        let other = core.last.is_some_and(|l| l != r);
        (core.busy, core.last) = (true, Some(r));
        let begin = if other { now + switch } else { now };
        self.at(begin, Event::Go(r));
    }

    /// A rank waits: the next one gets its core.
    fn sleep(&mut self, r: u32, now: f64) {
        self.ranks[r as usize].asleep = true;
        self.leave(r, now);
    }

    fn leave(&mut self, r: u32, now: f64) {
        let (core, switch) = (self.layout.core(r), self.switch);
        let core = &mut self.cores[core];
        core.busy = false;
        if let Some(next) = core.queue.pop_front() {
            (core.busy, core.last) = (true, Some(next));
            self.at(now + switch, Event::Go(next));
        }
    }

    /// Condition for which the current step of a rank waits.
    fn wait(&self, r: u32) -> Option<Wait> {
        let rank = &self.ranks[r as usize];
        match self.call.schedules[r as usize].steps.get(rank.pc) {
            None | Some(Step::Fence) => Some(Wait::All),
            Some(&Step::Await(slot)) => Some(Wait::Slot(slot)),
            Some(&Step::Watch { rank, stage }) => Some(Wait::Stage(rank, stage)),
            Some(&Step::WatchAll(stage)) => {
                Some(Wait::Stage(self.layout.member(r, rank.come), stage))
            }
            Some(_) => None,
        }
    }

    /// When that has come; never, as far as is known.
    fn met(&self, r: u32, wait: Wait) -> f64 {
        let rank = &self.ranks[r as usize];
        match wait {
            Wait::All if rank.open > 0 => f64::INFINITY,
            Wait::All => rank.last_end,
            Wait::Slot(slot) => rank.slots[slot as usize],
            Wait::Stage(of, _) if of == r => 0.0,
            Wait::Stage(of, stage) => {
                let raises = &self.ranks[of as usize].raises;
                let at = raises.partition_point(|(s, _)| *s < (rank.round, stage));
                raises.get(at).map_or(f64::INFINITY, |(_, time)| *time)
            }
        }
    }

    /// Work of a rank's core.
    fn spend(&mut self, r: u32, now: f64, ns: f64) -> f64 {
        let host = self.layout.host(r);
        self.work[host] += ns;
        now + ns
    }

    /// The same step with bytes of memory that the caches may not hold.
    fn moves(&mut self, r: u32, now: f64, ns: f64, bytes: f64) -> f64 {
        let end = self.spend(r, now, ns);
        if !self.spills {
            return end;
        }
        let (socket, busy) = (self.layout.socket(r), bytes * self.p.memory);
        let free = &mut self.memory[socket];
        *free = free.max(now) + busy;
        end.max(*free)
    }

    /// Does steps until the rank waits, or another one is behind it in time.
    fn steps(&mut self, r: u32, mut now: f64) {
        loop {
            if let Some(Reverse((next, _, _))) = self.events.peek()
                && f64::from_bits(*next) < now
            {
                return self.at(now, Event::Go(r));
            }
            let me = r as usize;
            if std::mem::take(&mut self.ranks[me].calls) {
                now = self.spend(r, now, self.p.call);
            }
            match self.wait(r) {
                None => now = self.act(r, now),
                Some(wait) => match self.waited(r, wait, now) {
                    Some(then) => now = then,
                    None => return self.rest(r, wait, now),
                },
            }
            if self.ranks[me].ended.is_some() {
                return self.leave(r, now);
            }
        }
    }

    /// Action of a rank at a step that waits: continues, or does some work; `None`: nothing now.
    fn waited(&mut self, r: u32, wait: Wait, now: f64) -> Option<f64> {
        let come = self.met(r, wait);
        if come <= now {
            return Some(self.pass(r, wait, come, now));
        }
        let works = &self.ranks[r as usize].works;
        let first = (0..works.len()).min_by(|&a, &b| works[a].ready.total_cmp(&works[b].ready))?;
        if works[first].ready > now {
            return None;
        }
        let work = self.ranks[r as usize].works.swap_remove(first);
        Some(self.do_work(r, work, now))
    }

    /// Nothing can be done now: sleeps until something may have come.
    fn rest(&mut self, r: u32, wait: Wait, now: f64) {
        let come = self.met(r, wait);
        let works = self.ranks[r as usize].works.iter();
        let wake = works.map(|w| w.ready).fold(come, f64::min);
        if let Wait::Stage(of, _) = wait {
            self.ranks[of as usize].watchers.push(r);
        }
        self.sleep(r, now);
        if wake.is_finite() {
            self.at(wake, Event::Wake(r));
        }
    }

    /// Goes past a step that has waited.
    fn pass(&mut self, r: u32, wait: Wait, come: f64, now: f64) -> f64 {
        let me = r as usize;
        let mut then = now;
        if let Wait::Stage(of, _) = wait {
            then = self.look(r, of, come, now);
        }
        let all = matches!(
            self.call.schedules[me].steps.get(self.ranks[me].pc),
            Some(Step::WatchAll(_))
        );
        let members = self.layout.members(r);
        let rank = &mut self.ranks[me];
        rank.come = if all { rank.come + 1 } else { 0 };
        if all && rank.come < members {
            return then;
        }
        rank.come = 0;
        if rank.pc < self.call.schedules[me].steps.len() {
            rank.pc += 1;
            return self.spend(r, then, self.p.step);
        }
        (rank.pc, rank.round, rank.calls) = (0, rank.round + 1, true);
        rank.slots.clear();
        if rank.round == self.times {
            rank.ended = Some(then);
        }
        then
    }

    /// Reads the line of a rank that has raised.
    fn look(&mut self, r: u32, of: u32, come: f64, now: f64) -> f64 {
        if of == r {
            return now;
        }
        let first = self.layout.line(r, of);
        // Lines that have come long ago are read in parallel.
        let own = match self.ranks[r as usize].come > 0 && come + first < now {
            true => self.p.more,
            false => first,
        };
        let line = &mut self.lines[of as usize];
        *line = (now + own).max(*line + self.p.reader);
        let then = *line;
        let host = self.layout.host(r);
        self.work[host] += then - now;
        then
    }

    fn outcome(self) -> Result<Outcome, Stuck> {
        let mut last: f64 = 0.0;
        for (rank, r) in self.ranks.iter().enumerate() {
            last = last.max(r.ended.ok_or(Stuck { rank, step: r.pc })?);
        }
        let times = self.times as f64;
        Ok(Outcome {
            time: last / times,
            work: self.work.iter().fold(0.0, |a: f64, b| a.max(*b)) / times,
        })
    }
}
