//! A host in virtual time: CPUs, threads, and a scheduler that divides the CPUs as Linux does.
//!
//! A thread that runs gives its CPU away when it sleeps, yields, or has had a slice and another one
//! is ready. A thread that yields goes behind all others of its CPU, which then have a full slice
//! each. A thread that wakes takes an idle CPU, or else its last one, from the thread that runs there
//! if that has used more time lately. A CPU with nothing to do takes a thread that is ready from the
//! longest queue; queues of busy CPUs are left as they are.

use kw_base::Tick;
use std::collections::VecDeque;
use std::time::Duration;

/// Number of a thread.
pub type Id = usize;

/// Slice of a thread that computes, while another one is ready.
pub const SLICE: Duration = Duration::from_millis(3);
/// Time of a thread switch.
const SWITCH: Duration = Duration::from_micros(2);
/// Time from the event to the first instruction of the thread that it wakes, on an idle CPU.
pub const WAKE: Duration = Duration::from_micros(15);

/// Next action of a thread.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Run(Duration),
    Yield,
    /// Sleeps until it is woken, or until this time.
    Sleep(Tick),
    End,
}

/// Behaviour of a thread. `S`: state that all threads of the host share.
pub trait Program<S> {
    fn step(&mut self, now: Tick, shared: &mut S, wake: &mut Vec<(Id, Tick)>) -> Act;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Ready,
    Running,
    Asleep(Tick),
    Ended,
}

struct Thread<S> {
    program: Box<dyn Program<S>>,
    state: State,
    cpu: usize,
    /// CPU time used, moved forward after a sleep: what the scheduler compares.
    virtual_time: Duration,
    used: Duration,
    /// The rest of the action that it runs.
    left: Duration,
    /// It was woken before it was asleep.
    woken: bool,
}

struct Cpu {
    runs: Option<Id>,
    /// When the thread that runs got the CPU, and how far its time is accounted.
    since: Tick,
    accounted: Tick,
    ready: VecDeque<Id>,
}

/// The host.
pub struct Machine<S> {
    pub now: Tick,
    pub shared: S,
    threads: Vec<Thread<S>>,
    cpus: Vec<Cpu>,
}

/// Receives how much CPU time each thread has used.
pub trait Accounts {
    fn used(&mut self, thread: Id, time: Duration);
}

impl<S: Accounts> Machine<S> {
    pub fn new(cpus: usize, shared: S) -> Machine<S> {
        let cpu = |_| Cpu {
            runs: None,
            since: Tick(0),
            accounted: Tick(0),
            ready: VecDeque::new(),
        };
        Machine {
            now: Tick(1_000_000_000),
            shared,
            threads: Vec::new(),
            cpus: (0..cpus).map(cpu).collect(),
        }
    }

    /// A thread that is ready on this CPU.
    pub fn start(&mut self, cpu: usize, program: impl Program<S> + 'static) -> Id {
        let id = self.threads.len();
        self.threads.push(Thread {
            program: Box::new(program),
            state: State::Ready,
            cpu,
            virtual_time: Duration::ZERO,
            used: Duration::ZERO,
            left: Duration::ZERO,
            woken: false,
        });
        self.cpus[cpu].ready.push_back(id);
        id
    }

    pub fn used(&self, id: Id) -> Duration {
        self.threads[id].used
    }

    /// Runs until these threads have ended; `None` if they have not within `most`.
    pub fn run(&mut self, until: &[Id], most: Duration) -> Option<Duration> {
        let begin = self.now;
        while !until
            .iter()
            .all(|&id| self.threads[id].state == State::Ended)
        {
            if self.now.since(begin) > most {
                return None;
            }
            self.fill();
            self.now = self.next_moment();
            self.wake_sleepers();
            for cpu in 0..self.cpus.len() {
                self.advance(cpu);
            }
        }
        Some(self.now.since(begin))
    }

    /// Gives every CPU with nothing to do a thread.
    fn fill(&mut self) {
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].runs.is_some() {
                continue;
            }
            if self.cpus[cpu].ready.is_empty() {
                let longest = (0..self.cpus.len()).max_by_key(|&c| self.cpus[c].ready.len());
                let pulled = longest.and_then(|c| self.cpus[c].ready.pop_front());
                self.cpus[cpu].ready.extend(pulled);
            }
            self.switch(cpu);
        }
    }

    /// The first of the queue runs.
    fn switch(&mut self, cpu: usize) {
        let Some(id) = self.cpus[cpu].ready.pop_front() else {
            return;
        };
        let thread = &mut self.threads[id];
        (thread.state, thread.cpu) = (State::Running, cpu);
        thread.left += SWITCH;
        let cpu = &mut self.cpus[cpu];
        (cpu.runs, cpu.since, cpu.accounted) = (Some(id), self.now, self.now);
    }

    /// The end of an action, of a slice, or of a sleep.
    fn next_moment(&self) -> Tick {
        let ends = self.cpus.iter().filter_map(|cpu| {
            let end = cpu.accounted + self.threads[cpu.runs?].left;
            let slice = cpu.since + SLICE;
            Some(match cpu.ready.is_empty() || slice <= self.now {
                true => end,
                false => end.min(slice),
            })
        });
        let wakes = self.threads.iter().filter_map(|t| match t.state {
            State::Asleep(until) => Some(until),
            _ => None,
        });
        ends.chain(wakes).min().unwrap_or(Tick::NEVER).max(self.now)
    }

    fn wake_sleepers(&mut self) {
        for id in 0..self.threads.len() {
            if matches!(self.threads[id].state, State::Asleep(until) if until <= self.now) {
                self.wake(id);
            }
        }
    }

    fn wake(&mut self, id: Id) {
        let last = self.threads[id].cpu;
        let idle = |c: &usize| self.cpus[*c].runs.is_none() && self.cpus[*c].ready.is_empty();
        let cpu = Some(last).filter(idle).or((0..self.cpus.len()).find(idle));
        let to = cpu.unwrap_or(last);
        self.account(to);
        let running = self.cpus[to].runs;
        let floor = running.map_or(Duration::ZERO, |r| self.threads[r].virtual_time);
        let thread = &mut self.threads[id];
        (thread.state, thread.cpu) = (State::Ready, to);
        thread.virtual_time = thread.virtual_time.max(floor.saturating_sub(SLICE));
        let preempts = running.is_some() && thread.virtual_time < floor;
        let cpu = &mut self.cpus[to];
        match preempts {
            true => cpu.ready.push_front(id),
            false => cpu.ready.push_back(id),
        }
        if preempts && let Some(loser) = cpu.runs.take() {
            self.threads[loser].state = State::Ready;
            // It continues its slice afterwards.
            cpu.ready.insert(1, loser);
            self.switch(to);
        }
    }

    /// Accounts the time of the thread that runs.
    fn account(&mut self, cpu: usize) {
        let cpu = &mut self.cpus[cpu];
        let Some(id) = cpu.runs else { return };
        let ran = self.now.since(cpu.accounted);
        cpu.accounted = self.now;
        let thread = &mut self.threads[id];
        thread.left = thread.left.saturating_sub(ran);
        thread.used += ran;
        thread.virtual_time += ran;
        self.shared.used(id, ran);
    }

    /// Goes on with the thread that runs on this CPU, if its action or its slice is over.
    fn advance(&mut self, cpu: usize) {
        self.account(cpu);
        let Some(id) = self.cpus[cpu].runs else {
            return;
        };
        if self.threads[id].left.is_zero() {
            self.act(cpu, id);
        }
        let over = self.now.since(self.cpus[cpu].since) >= SLICE;
        if self.cpus[cpu].runs == Some(id) && over && !self.cpus[cpu].ready.is_empty() {
            self.give_away(cpu, State::Ready);
        }
    }

    fn act(&mut self, cpu: usize, id: Id) {
        let mut wake = Vec::new();
        let thread = &mut self.threads[id];
        let act = thread.program.step(self.now, &mut self.shared, &mut wake);
        match act {
            Act::Run(time) => thread.left = time.max(Duration::from_nanos(1)),
            Act::Yield => {
                thread.left = Duration::from_nanos(500);
                if !self.cpus[cpu].ready.is_empty() {
                    self.give_away(cpu, State::Ready);
                }
            }
            Act::Sleep(_) if std::mem::take(&mut thread.woken) => thread.left = SWITCH,
            Act::Sleep(until) => self.give_away(cpu, State::Asleep(until)),
            Act::End => self.give_away(cpu, State::Ended),
        }
        for (id, at) in wake {
            let thread = &mut self.threads[id];
            match &mut thread.state {
                State::Asleep(until) => *until = at.min(*until),
                _ => thread.woken = true,
            }
        }
    }

    fn give_away(&mut self, cpu: usize, state: State) {
        if let Some(id) = self.cpus[cpu].runs.take() {
            self.threads[id].state = state;
            if state == State::Ready {
                self.cpus[cpu].ready.push_back(id);
            }
        }
        self.switch(cpu);
    }
}
