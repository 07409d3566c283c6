//! The symbolic checker: runs the schedules of all ranks together, without communication, on
//! symbols instead of data.
//!
//! A [`Symbol`] says which contributions have gone into one unit of memory. Sends are synchronous
//! (they end only when the receive is posted), the strictest reading. The checker faults on
//! deadlock, on lengths that differ between the two ends, on touching memory in flight, on
//! overlapping copies, on writing to a constant buffer, on combining out of order or twice, and on
//! messages left over.
//!
//! It runs the library's own executor ([`crate::executor`]): ops, progress and flow control are
//! those of the engine, on memory and flags that are made up here (`context.rs`). Every raise
//! publishes what its rank knows, every look at a flag takes in what it has seen, and messages
//! carry it; two accesses of a shm buffer that this does not order are a fault (`shm_buffers.rs`).
//! Stages must go up, slices stay within the shm buffer, and the ranks of a node agree on its kind.
//! Several collectives in a row run on one shm region with as many lines and slots as [`Reuse`]
//! says.
//!
//! Schedules know no data, so whether they end does not depend on the interleaving: one run is
//! enough.

mod clock;
mod context;
mod rank;
mod shm_buffers;
mod symbol;

use super::executor::{Capacity, FlowControl, Next, Progress, Reservation, bind};
use super::{
    FLAG_LINE_BYTES, Nodes, SHM_BUFFERS, Schedule, ShmBuffer, ShmSizes, Slice, Step, front,
    is_shm_buffer,
};
use clock::Clock;
use context::{CheckedContext, Rows};
use rank::{Flight, Rank};
use shm_buffers::{Area, BufferId, ShmBuffers};
use std::collections::{HashMap, VecDeque};
pub use symbol::Symbol;

/// One rank's part of one collective: its schedule and the caller's buffers.
pub type Call = (Schedule, Vec<Memory>);

/// One of a caller's buffers: its memory, and how many symbols make a unit.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Symbols.
    pub cells: Vec<Symbol>,
    /// Symbols in a unit.
    pub unit: usize,
}

/// A range of symbols in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    buf: u32,
    from: usize,
    to: usize,
}

impl Region {
    fn meets(&self, other: &Region) -> bool {
        self.buf == other.buf && self.from < other.to && other.from < self.to
    }

    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The rank on whose shm buffer it lies.
    fn owner(&self) -> Option<usize> {
        is_shm_buffer(self.buf).then(|| (self.buf - SHM_BUFFERS) as usize)
    }
}

/// The shared memory's limits, and how the flow control rule is violated.
#[derive(Clone, Copy, Debug)]
pub struct Reuse {
    /// Slots for short data of a rank.
    pub slots: usize,
    /// Lines of a rank.
    pub lines: usize,
    /// Number of collectives by which memory is touched too early, to see that the rule is needed.
    pub early: usize,
    /// A rank that polls a flag sees the newest word; otherwise the oldest that it may see, which
    /// reveals the least.
    pub newest: bool,
}

#[derive(Debug)]
struct Post {
    slot: u32,
    region: Region,
    data: Vec<Symbol>,
    news: Clock,
}

/// Sends or receives that wait for their other end, by collective, sender and receiver.
type Queues = HashMap<(usize, usize, usize), VecDeque<Post>>;

/// All ranks, and one collective or several in a row.
#[derive(Debug)]
pub struct World {
    ranks: Vec<Rank>,
    sends: Queues,
    recvs: Queues,
    shm_region: Option<ShmSizes>,
    node: Vec<u32>,
    shm_buffers: ShmBuffers,
    reuse: Reuse,
    commutative: bool,
}

impl World {
    /// One collective: the ranks' schedules and buffers.
    pub fn new(calls: Vec<Call>, commutative: bool) -> World {
        World::row(calls.into_iter().map(|c| vec![c]).collect(), commutative)
    }

    /// Several collectives in a row at every rank.
    pub fn row(calls: Vec<Vec<Call>>, commutative: bool) -> World {
        let ranks = calls.into_iter().enumerate();
        let ranks: Vec<Rank> = ranks.map(|(r, calls)| Rank::new(r, calls)).collect();
        World {
            node: vec![0; ranks.len()],
            ranks,
            sends: Queues::new(),
            recvs: Queues::new(),
            shm_region: None,
            shm_buffers: ShmBuffers::default(),
            reuse: Reuse {
                slots: 2,
                lines: 3,
                early: 0,
                newest: false,
            },
            commutative,
        }
    }

    /// With a shm region on every node.
    pub fn on(mut self, shm_region: Option<ShmSizes>, nodes: Option<&Nodes>) -> World {
        self.shm_region = shm_region;
        if let Some(nodes) = nodes {
            self.node = (0..self.ranks.len() as u32).map(|r| nodes.of(r)).collect();
        }
        self
    }

    /// With this many shm buffers.
    pub fn reusing(mut self, reuse: Reuse) -> World {
        self.reuse = reuse;
        self
    }

    /// Runs one collective to its end; returns the callers' buffers.
    pub fn run(self) -> Vec<Vec<Memory>> {
        let all = self.run_all().into_iter();
        all.map(|mut calls| calls.pop().expect("one collective"))
            .collect()
    }

    /// Runs everything to its end; returns the callers' buffers by rank and collective.
    pub fn run_all(mut self) -> Vec<Vec<Vec<Memory>>> {
        self.nodes_agree();
        self.open_flow_control();
        loop {
            let mut moved = false;
            for me in 0..self.ranks.len() {
                while self.step(me) {
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for (me, rank) in self.ranks.iter().enumerate() {
            if let Some(s) = rank.schedule() {
                let (op, pc, steps) = (rank.op, rank.pc(), &s.steps);
                let at = match s.shm_buffer {
                    ShmBuffer::None => format!("step {pc}: {steps:?}"),
                    _ => format!("op {pc}: {:?}, made of {steps:?}", rank.ops),
                };
                panic!("rank {me} stands in collective {op} at {at}");
            }
        }
        let mut left = self.sends.values().chain(self.recvs.values());
        assert!(left.all(|q| q.is_empty()), "messages are left over");
        self.ranks.into_iter().map(Rank::into_user).collect()
    }

    fn nodes_agree(&self) {
        let kinds = |r: usize| {
            self.ranks[r]
                .schedules()
                .map(|s| (s.shm_buffer, s.short, s.long))
        };
        for r in 0..self.ranks.len() {
            let first = self.on_node_of(r).next().unwrap_or(r);
            assert!(
                kinds(r).eq(kinds(first)),
                "ranks {first} and {r} use shm buffers of different kinds or lengths"
            );
            assert!(
                self.shm_region.is_some() || kinds(r).all(|k| k.0 == ShmBuffer::None),
                "there is no shm region"
            );
        }
    }

    fn on_node_of(&self, me: usize) -> impl Iterator<Item = usize> {
        (0..self.ranks.len()).filter(move |&r| self.node[r] == self.node[me])
    }

    /// Every rank has its side of its node's shm region.
    fn open_flow_control(&mut self) {
        let Some(shm_region) = self.shm_region else {
            return;
        };
        let long = (shm_region.long - FLAG_LINE_BYTES.min(shm_region.long)).next_multiple_of(64);
        let capacity = Capacity {
            lines: self.reuse.lines as u64,
            slots: self.reuse.slots as u64,
            ring: 3 * long.max(64),
            working_set: 2 * long.max(64),
        };
        for me in 0..self.ranks.len() {
            let members: Vec<usize> = self.on_node_of(me).collect();
            let own = members.iter().take_while(|&&r| r != me).count();
            let flow = FlowControl::new(own as u32, members.len() as u32, capacity);
            self.ranks[me].flow = Some(flow);
            self.ranks[me].members = members;
        }
    }

    /// Advances one rank; returns whether anything has changed.
    fn step(&mut self, me: usize) -> bool {
        if self.ranks[me].schedule().is_none() {
            return false;
        }
        if self.ranks[me].progress.is_none() {
            self.begin(me);
        }
        let (next, moved) = self.go_on(me);
        match next {
            Next::Wait(_) => moved,
            Next::End => self.end(me) || moved,
            Next::Step(i) => {
                let step = self.ranks[me].schedule().map(|s| s.steps[i as usize]);
                let done = step.is_some_and(|s| self.own_step(me, s));
                if let (true, Some(progress)) = (done, &mut self.ranks[me].progress) {
                    progress.pass();
                }
                done || moved
            }
        }
    }

    /// Gives the current collective its place, and its ops if it uses the shm region.
    fn begin(&mut self, me: usize) {
        let unit = self.shm_region.map_or(1, |b| b.unit);
        let rank = &mut self.ranks[me];
        let need = rank.schedule().and_then(|s| s.need(unit));
        let mut place = Reservation::NONE;
        if let (Some(need), Some(flow)) = (need, &mut rank.flow) {
            place = flow.reserve(need);
            place.hurry(self.reuse.early as u64);
        }
        rank.at_work = (place.number, place.at);
        rank.progress = Some(Progress::new(place, 0));
        let rank = &self.ranks[me];
        let mut ops = Vec::new();
        if let Some(schedule) = rank.schedule() {
            let stages = |s: &Step| !matches!(s, Step::Raise(0));
            assert!(schedule.steps.iter().all(stages), "rank {me} raises 0");
            if schedule.shm_buffer != ShmBuffer::None {
                bind(schedule, &Rows(rank), &mut ops);
            }
        }
        self.ranks[me].ops = ops;
    }

    /// Runs what the executor can do by itself.
    fn go_on(&mut self, me: usize) -> (Next, bool) {
        let rank = &mut self.ranks[me];
        let Some(mut progress) = rank.progress.take() else {
            return (Next::End, false);
        };
        let (ops, flow) = (std::mem::take(&mut rank.ops), rank.flow.take());
        let schedule = rank.schedule();
        let shares = schedule.is_some_and(|s| s.shm_buffer != ShmBuffer::None);
        let steps = schedule.map_or(0, |s| s.steps.len());
        let before = progress.at();
        let mut moved = false;
        let (next, flow) = match (flow, shares) {
            (Some(mut flow), true) => {
                let mut context = CheckedContext::new(self, me);
                let next = progress.go_on(&ops, false, &mut flow, &mut context);
                moved = context.moved;
                (next, Some(flow))
            }
            (flow, _) => (progress.next_step(steps as u32), flow),
        };
        let rank = &mut self.ranks[me];
        moved |= before != progress.at();
        (rank.ops, rank.flow, rank.progress) = (ops, flow, Some(progress));
        (next, moved)
    }

    /// A step that the executor leaves to its owner.
    fn own_step(&mut self, me: usize, step: Step) -> bool {
        match step {
            Step::Await(slot) => self.land(me, slot..=slot),
            Step::Fence => self.land(me, 0..=u32::MAX),
            Step::Copy { from, to } => self.copy(me, from, to),
            Step::Reduce { left, right } => self.reduce(me, left, right),
            Step::Send { to, what } => self.post(me, to as usize, what, false),
            Step::Recv { from, into } => self.post(me, from as usize, into, true),
            Step::Raise(_) | Step::WatchAll(_) => {
                panic!("uses the shm region without a shm buffer")
            }
            Step::Watch { rank, .. } => {
                panic!("rank {me} watches {rank}, and shares no shm buffer with it")
            }
        }
    }

    /// Begins the next collective, if all transfers have ended.
    fn end(&mut self, me: usize) -> bool {
        if !self.land(me, 0..=u32::MAX) {
            return false;
        }
        let rank = &mut self.ranks[me];
        let schedule = rank.schedule();
        let (slots, shm_buffer) =
            schedule.map_or((0, ShmBuffer::None), |s| (s.slots, s.shm_buffer));
        assert_eq!(rank.posted, slots, "slots are counted wrongly");
        let (flow, progress) = (rank.flow.take(), rank.progress.take());
        if let (Some(mut flow), Some(mut progress)) = (flow, progress) {
            if shm_buffer != ShmBuffer::None {
                progress.end(&mut flow, &mut CheckedContext::new(self, me));
            }
            self.ranks[me].flow = Some(flow);
        }
        let rank = &mut self.ranks[me];
        (rank.op, rank.posted) = (rank.op + 1, 0);
        true
    }

    fn needs_shm_buffer(&self, me: usize) {
        let kind = self.ranks[me].schedule().map(|s| s.shm_buffer);
        assert_ne!(
            kind,
            Some(ShmBuffer::None),
            "uses the shm region without a shm buffer"
        );
    }

    fn copy(&mut self, me: usize, from: Slice, to: Slice) -> bool {
        let (a, b) = (self.region(me, from), self.region(me, to));
        self.copy_region(me, a, b);
        true
    }

    fn copy_region(&mut self, me: usize, a: Region, b: Region) {
        assert!(!a.meets(&b), "rank {me}: copy overlaps itself: {a:?}");
        assert_eq!(a.to - a.from, b.to - b.from, "lengths differ: {a:?}, {b:?}");
        let data = self.read(me, a);
        self.write(me, b, &data);
    }

    fn reduce(&mut self, me: usize, left: Slice, right: Slice) -> bool {
        let (a, b) = (self.region(me, left), self.region(me, right));
        self.reduce_region(me, a, b);
        true
    }

    fn reduce_region(&mut self, me: usize, a: Region, b: Region) {
        assert!(!a.meets(&b), "reduces memory with itself");
        let (left, right) = (self.read(me, a), self.read(me, b));
        assert_eq!(left.len(), right.len(), "operands differ in length");
        let pairs = left.iter().zip(&right);
        let both: Vec<Symbol> = pairs
            .map(|(l, r)| l.combine(*r, self.commutative))
            .collect();
        self.write(me, b, &both);
    }

    fn region(&mut self, me: usize, slice: Slice) -> Region {
        let nothing = Region {
            buf: slice.buf,
            from: 0,
            to: 0,
        };
        if slice.is_empty() {
            return nothing;
        }
        let Some(owner) = nothing.owner() else {
            return self.ranks[me].region(slice);
        };
        self.needs_shm_buffer(me);
        assert_eq!(
            self.node[owner], self.node[me],
            "a shm buffer of another node"
        );
        let from = usize::try_from(slice.at).expect("slice begins inside its shm buffer");
        let to = from + slice.len as usize;
        let room = self.shm_buffer(me);
        assert!(
            to <= room,
            "{slice:?} ends at {to} of a shm buffer of {room}"
        );
        Region {
            from,
            to,
            ..nothing
        }
    }

    /// Units of a shm buffer in the current collective.
    fn shm_buffer(&self, me: usize) -> usize {
        let schedule = self.ranks[me].schedule();
        let shm_region = self.shm_region.map(|b| (b.short / b.unit, b.long / b.unit));
        let (short, long) = shm_region.unwrap_or_default();
        match schedule.filter(|s| s.shm_buffer == ShmBuffer::Long) {
            Some(s) => long.min(FLAG_LINE_BYTES + s.long) as usize,
            None => short as usize,
        }
    }

    /// The area of its owner in which a part of a shm buffer is in the current collective, and its
    /// offset there.
    fn place(&self, me: usize, owner: usize, region: Region) -> (BufferId, Region) {
        let front = front(self.shm_region.map_or(1, |b| b.unit)) as usize;
        let rank = &self.ranks[me];
        let number = rank.number();
        if region.to <= front {
            let line = number % self.reuse.lines as u64;
            return ((owner, Area::Line, line as usize), region);
        }
        assert!(
            region.from >= front,
            "{region:?} begins in a line and ends outside"
        );
        let is_long = rank
            .schedule()
            .is_some_and(|s| s.shm_buffer == ShmBuffer::Long);
        let (area, turn, at) = match is_long {
            true => (Area::Ring, 0, rank.ring_at()),
            false => (Area::Slot, number % self.reuse.slots as u64, 0),
        };
        let by = |unit: usize| unit - front + at as usize;
        let (from, to) = (by(region.from), by(region.to));
        ((owner, area, turn as usize), Region { from, to, ..region })
    }

    fn read(&mut self, me: usize, region: Region) -> Vec<Symbol> {
        self.ranks[me].may(&region, false);
        self.touch(me, region, false);
        self.load(me, region)
    }

    fn write(&mut self, me: usize, region: Region, data: &[Symbol]) {
        self.ranks[me].may(&region, true);
        self.touch(me, region, true);
        self.store(me, region, data);
    }

    fn load(&mut self, me: usize, region: Region) -> Vec<Symbol> {
        match region.owner() {
            _ if region.is_empty() => Vec::new(),
            None => self.ranks[me].load(region),
            Some(owner) => {
                let ((place, region), op) = (self.place(me, owner, region), self.ranks[me].op);
                self.shm_buffers.read(place, region, op)
            }
        }
    }

    /// Notes that a rank touches that memory, if it is a shm buffer.
    fn touch(&mut self, me: usize, region: Region, write: bool) {
        if let Some(owner) = region.owner().filter(|_| !region.is_empty()) {
            let ((place, region), clock) = (self.place(me, owner, region), &self.ranks[me].clock);
            let now = clock.now(me);
            self.shm_buffers.touch(place, region, write, now, clock);
        }
    }

    fn store(&mut self, me: usize, region: Region, data: &[Symbol]) {
        match region.owner() {
            _ if region.is_empty() => {}
            None => self.ranks[me].store(region, data),
            Some(owner) => {
                let ((place, region), op) = (self.place(me, owner, region), self.ranks[me].op);
                self.shm_buffers.write(place, region, op, data);
            }
        }
    }

    fn post(&mut self, me: usize, other: usize, slice: Slice, is_recv: bool) -> bool {
        assert_ne!(me, other, "talks to itself");
        assert!(other < self.ranks.len(), "talks to rank {other}");
        let in_shm_buffer = is_shm_buffer(slice.buf) && !slice.is_empty();
        assert!(!in_shm_buffer, "rank {me} has a message in a shm buffer");
        let region = self.region(me, slice);
        self.ranks[me].may(&region, is_recv);
        let data = if is_recv {
            Vec::new()
        } else {
            self.load(me, region)
        };
        let rank = &mut self.ranks[me];
        let (slot, op) = (rank.posted, rank.op);
        rank.posted += 1;
        rank.flights.push(Flight {
            slot,
            region,
            is_recv,
            ended: false,
            news: None,
        });
        let news = if is_recv || self.shm_region.is_none() {
            rank.clock
        } else {
            rank.clock.announce(me)
        };
        let post = Post {
            slot,
            region,
            data,
            news,
        };
        let (pair, queues) = if is_recv {
            ((op, other, me), &mut self.recvs)
        } else {
            ((op, me, other), &mut self.sends)
        };
        queues.entry(pair).or_default().push_back(post);
        self.deliver(pair);
        true
    }

    fn deliver(&mut self, pair: (usize, usize, usize)) {
        let (_, from, to) = pair;
        let (Some(sends), Some(recvs)) = (self.sends.get_mut(&pair), self.recvs.get_mut(&pair))
        else {
            return;
        };
        if sends.is_empty() || recvs.is_empty() {
            return;
        }
        let (Some(send), Some(recv)) = (sends.pop_front(), recvs.pop_front()) else {
            return;
        };
        let room = recv.region.to - recv.region.from;
        assert_eq!(
            send.data.len(),
            room,
            "{pair:?}: sent and expected lengths differ"
        );
        let written = send.data.iter().all(|s| s.is_data());
        assert!(written, "{pair:?}: sends memory never written");
        self.store(to, recv.region, &send.data);
        for (me, slot, news) in [(from, send.slot, None), (to, recv.slot, Some(send.news))] {
            let mut flights = self.ranks[me].flights.iter_mut();
            if let Some(flight) = flights.find(|f| f.slot == slot) {
                (flight.ended, flight.news) = (true, news);
            }
        }
    }

    /// Waits for transfers; until a rank has done so, their memory is in flight.
    fn land(&mut self, me: usize, slots: std::ops::RangeInclusive<u32>) -> bool {
        let rank = &mut self.ranks[me];
        let mine = |f: &Flight| slots.contains(&f.slot);
        if rank.flights.iter().any(|f| mine(f) && !f.ended) {
            return false;
        }
        let (complete, left) = rank.flights.iter().partition(|f| mine(f));
        rank.flights = left;
        let complete: Vec<Flight> = complete;
        for flight in complete {
            if let Some(news) = flight.news {
                self.ranks[me].clock.join(&news);
            }
        }
        true
    }
}
