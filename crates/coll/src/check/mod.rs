//! The symbolic checker: runs the schedules of all ranks together, without communication, on symbols instead of data.
//!
//! A [`Symbol`] says which contributions have gone into one unit of memory. Sends are synchronous (they end only when the
//! receive is posted), the strictest reading. The checker faults on deadlock, on lengths that differ between the two
//! ends, on touching memory in flight, on overlapping copies, on writing to a constant buffer, on combining out of order
//! or twice, and on messages left over.
//!
//! Boards: every raise publishes what its rank knows, every watch takes that in, and messages carry it; two accesses of a
//! shelf that this does not order are a fault (`shelves.rs`). Stages must go up, slices stay within the shelf, and the
//! ranks of a node agree on its kind. Several collectives in a row run on one board by the rule of [`Reuse`].
//!
//! Schedules know no data, so whether they end does not depend on the interleaving: one run is enough.

mod clock;
mod rank;
mod shelves;
mod symbol;

use super::{Board, Nodes, SHELF_LINE, SHELVES, Schedule, Shelf, Slice, Step, TEMPS};
use clock::{Clock, Moment};
use rank::{Flight, Mark, Rank};
use shelves::{Area, Place, Shelves};
use std::collections::{HashMap, VecDeque};
pub use symbol::Symbol;

/// One rank's part of one collective: its schedule and the caller's buffers.
pub type Call = (Schedule, Vec<Memory>);

/// Stages share a word with the number of the collective.
const HIGHEST_STAGE: u32 = 0xffff;

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

    /// The rank on whose shelf it lies.
    fn owner(&self) -> Option<usize> {
        ((SHELVES..TEMPS).contains(&self.buf)).then(|| (self.buf - SHELVES) as usize)
    }
}

/// When a rank may use a shelf again, as whoever runs schedules does it: every rank has `slots` short shelves, used in
/// turns, and long ones, of which two are enough here. Before collective `k` touches short shelves, everybody must have announced
/// something in collective `k - slots + 1`, or ended it; for a long one, in the collective after that which used it last. What
/// lies in the lines of stages is not part of those shelves: there are `lines` of them, used in turns, and a collective that
/// touches nothing else waits for `k - lines + 1`.
#[derive(Clone, Copy, Debug)]
pub struct Reuse {
    /// Short shelves of a rank.
    pub slots: usize,
    /// Lines of a rank.
    pub lines: usize,
    /// By how many collectives the rule is broken, to see that it is needed.
    pub early: usize,
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
    board: Option<Board>,
    node: Vec<u32>,
    shelves: Shelves,
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
            board: None,
            shelves: Shelves::default(),
            reuse: Reuse {
                slots: 2,
                lines: 3,
                early: 0,
            },
            commutative,
        }
    }

    /// With a board on every node.
    pub fn on(mut self, board: Option<Board>, nodes: Option<&Nodes>) -> World {
        self.board = board;
        if let Some(nodes) = nodes {
            self.node = (0..self.ranks.len() as u32).map(|r| nodes.of(r)).collect();
        }
        self
    }

    /// With so many shelves.
    pub fn reusing(mut self, reuse: Reuse) -> World {
        self.reuse = reuse;
        self
    }

    /// Runs one collective to the end; returns the callers' buffers.
    pub fn run(self) -> Vec<Vec<Memory>> {
        let all = self.run_all().into_iter();
        all.map(|mut calls| calls.pop().expect("one collective"))
            .collect()
    }

    /// Runs to the end; returns the callers' buffers by rank and collective.
    pub fn run_all(mut self) -> Vec<Vec<Vec<Memory>>> {
        self.nodes_agree();
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
                let (op, pc, steps) = (rank.op, rank.pc, &s.steps);
                panic!("rank {me} stands in collective {op} at step {pc}: {steps:?}");
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
                .map(|s| (s.shelf, s.short, s.long))
        };
        for r in 0..self.ranks.len() {
            let first = self.on_node_of(r).next().unwrap_or(r);
            assert!(
                kinds(r).eq(kinds(first)),
                "ranks {first} and {r} use shelves of different kinds or lengths"
            );
            assert!(
                self.board.is_some() || kinds(r).all(|k| k.0 == Shelf::None),
                "there is no board"
            );
        }
    }

    fn on_node_of(&self, me: usize) -> impl Iterator<Item = usize> {
        (0..self.ranks.len()).filter(move |&r| self.node[r] == self.node[me])
    }

    /// Runs one step of one rank; says whether it could.
    fn step(&mut self, me: usize) -> bool {
        let rank = &self.ranks[me];
        let Some(schedule) = rank.schedule() else {
            return false;
        };
        let next = schedule.steps.get(rank.pc).copied();
        if !self.begin(me) {
            return false;
        }
        let Some(step) = next else {
            return self.end(me);
        };
        let moved = match step {
            Step::Await(slot) => self.land(me, slot..=slot),
            Step::Fence => self.land(me, 0..=u32::MAX),
            Step::Raise(stage) => self.raise(me, stage),
            Step::Watch { rank, stage } => self.watch(me, rank as usize..rank as usize + 1, stage),
            Step::WatchAll(stage) => self.watch(me, 0..self.ranks.len(), stage),
            Step::Copy { from, to } => self.copy(me, from, to),
            Step::Reduce { left, right } => self.reduce(me, left, right),
            Step::Send { to, what } => self.post(me, to as usize, what, false),
            Step::Recv { from, into } => self.post(me, from as usize, into, true),
        };
        self.ranks[me].pc += moved as usize;
        moved
    }

    /// Whether the present collective may use its shelves: the rule of reuse.
    fn begin(&mut self, me: usize) -> bool {
        let rank = &self.ranks[me];
        let (op, early) = (rank.op, self.reuse.early);
        if rank.begun {
            return true;
        }
        let kind = |k: usize| rank.schedules().nth(k).map_or(Shelf::None, |s| s.shelf);
        let since = match kind(op) {
            Shelf::None => None,
            Shelf::Short => (op + 1).checked_sub(self.ahead(rank) + early),
            Shelf::Long => {
                let before = (0..op).rev().filter(|&k| kind(k) == Shelf::Long);
                before.skip(1).map(|u| u + 1 - early).next()
            }
        };
        if let Some(since) = since {
            let others: Vec<usize> = self.on_node_of(me).collect();
            let marks = others.iter().map(|&r| self.ranks[r].mark(since, 0));
            let Some(marks) = marks
                .map(|m| m.map(|m| m.clock))
                .collect::<Option<Vec<_>>>()
            else {
                return false;
            };
            marks.iter().for_each(|m| self.ranks[me].clock.join(m));
        }
        self.ranks[me].begun = true;
        true
    }

    /// By how many collectives, less one, a rank may be ahead of others in its present one.
    fn ahead(&self, rank: &Rank) -> usize {
        let unit = self.board.map_or(1, |b| b.unit);
        let schedule = rank.schedule();
        match schedule.is_some_and(|s| s.touches_lines_only(unit)) {
            true => self.reuse.lines,
            false => self.reuse.slots,
        }
    }

    /// Goes over to the next collective, if all transfers have ended.
    fn end(&mut self, me: usize) -> bool {
        if !self.land(me, 0..=u32::MAX) {
            return false;
        }
        let rank = &mut self.ranks[me];
        let schedule = rank.schedule();
        let (slots, shelf) = schedule.map_or((0, Shelf::None), |s| (s.slots, s.shelf));
        assert_eq!(rank.posted, slots, "slots are counted wrongly");
        if shelf != Shelf::None && rank.stage().is_none() {
            self.announce(me, 0);
        }
        let rank = &mut self.ranks[me];
        (rank.op, rank.pc, rank.posted, rank.begun) = (rank.op + 1, 0, 0, false);
        true
    }

    fn raise(&mut self, me: usize, stage: u32) -> bool {
        self.needs_shelf(me);
        let before = self.ranks[me].stage().unwrap_or(0);
        assert!(
            before < stage && stage <= HIGHEST_STAGE,
            "rank {me} raises {stage} after {before}"
        );
        self.announce(me, stage);
        true
    }

    fn announce(&mut self, me: usize, stage: u32) {
        let rank = &mut self.ranks[me];
        let (op, clock) = (rank.op, rank.clock.announce(me));
        rank.marks.push(Mark { op, stage, clock });
    }

    fn watch(&mut self, me: usize, whom: std::ops::Range<usize>, stage: u32) -> bool {
        self.needs_shelf(me);
        let (op, one) = (self.ranks[me].op, whom.len() == 1);
        let mut clock = self.ranks[me].clock;
        for r in whom {
            if self.node[r] != self.node[me] {
                assert!(!one, "rank {me} watches {r} of another node");
                continue;
            }
            let Some(mark) = self.ranks[r].mark(op, stage) else {
                return false;
            };
            clock.join(&mark.clock);
        }
        self.ranks[me].clock = clock;
        true
    }

    fn needs_shelf(&self, me: usize) {
        let kind = self.ranks[me].schedule().map(|s| s.shelf);
        assert_ne!(kind, Some(Shelf::None), "uses the board without a shelf");
    }

    fn copy(&mut self, me: usize, from: Slice, to: Slice) -> bool {
        let (a, b) = (self.region(me, from), self.region(me, to));
        let pc = self.ranks[me].pc;
        assert!(!a.meets(&b), "copy overlaps itself at step {pc}");
        assert_eq!(a.to - a.from, b.to - b.from, "lengths differ at step {pc}");
        let data = self.read(me, a);
        self.write(me, b, &data);
        true
    }

    fn reduce(&mut self, me: usize, left: Slice, right: Slice) -> bool {
        let (a, b) = (self.region(me, left), self.region(me, right));
        assert!(!a.meets(&b), "reduces memory with itself");
        let (left, right) = (self.read(me, a), self.read(me, b));
        assert_eq!(left.len(), right.len(), "operands differ in length");
        let pairs = left.iter().zip(&right);
        let both: Vec<Symbol> = pairs
            .map(|(l, r)| l.combine(*r, self.commutative))
            .collect();
        self.write(me, b, &both);
        true
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
        self.needs_shelf(me);
        assert_eq!(self.node[owner], self.node[me], "a shelf of another node");
        let from = usize::try_from(slice.at).expect("slice begins inside its shelf");
        let to = from + slice.len as usize;
        let (room, _) = self.shelf(me);
        assert!(to <= room, "{slice:?} ends at {to} of a shelf of {room}");
        Region {
            from,
            to,
            ..nothing
        }
    }

    /// Units of a shelf in the present collective, and which area it has beyond its line.
    fn shelf(&self, me: usize) -> (usize, (Area, usize)) {
        let rank = &self.ranks[me];
        let kind = |s: &&Schedule| s.shelf == Shelf::Long;
        let is_long = rank.schedule().is_some_and(|s| kind(&s));
        let (short, long) = self
            .board
            .map_or((0, 0), |b| (b.short / b.unit, b.long / b.unit));
        if is_long {
            let used = rank.schedule().map_or(0, |s| s.long as usize);
            let long = (long as usize).min(SHELF_LINE as usize + used);
            let turn = rank.schedules().take(rank.op).filter(kind).count();
            (long, (Area::Long, turn % 2))
        } else {
            (short as usize, (Area::Short, rank.op % self.reuse.slots))
        }
    }

    fn place(&self, me: usize, owner: usize, region: &Region) -> Place {
        let front = SHELF_LINE.div_ceil(self.board.map_or(1, |b| b.unit));
        if region.to as u64 <= front {
            return (owner, Area::Line, self.ranks[me].op % self.reuse.lines);
        }
        assert!(
            region.from as u64 >= front,
            "{region:?} begins in a line and ends outside"
        );
        let (_, (area, turn)) = self.shelf(me);
        (owner, area, turn)
    }

    fn read(&mut self, me: usize, region: Region) -> Vec<Symbol> {
        self.ranks[me].may(&region, false);
        self.touch(me, region, false, false);
        self.load(me, region)
    }

    fn write(&mut self, me: usize, region: Region, data: &[Symbol]) {
        self.ranks[me].may(&region, true);
        self.touch(me, region, true, false);
        self.store(me, region, data);
    }

    fn load(&mut self, me: usize, region: Region) -> Vec<Symbol> {
        match region.owner() {
            _ if region.is_empty() => Vec::new(),
            None => self.ranks[me].load(region),
            Some(owner) => {
                let (place, op) = (self.place(me, owner, &region), self.ranks[me].op);
                self.shelves.read(place, region, op)
            }
        }
    }

    /// Notes that a rank touches that memory, if it is a shelf; `open`: until it has waited for a transfer.
    fn touch(&mut self, me: usize, region: Region, write: bool, open: bool) {
        if let Some(owner) = region.owner().filter(|_| !region.is_empty()) {
            let (place, clock) = (self.place(me, owner, &region), &self.ranks[me].clock);
            let now = if open {
                Moment::open(me)
            } else {
                clock.now(me)
            };
            self.shelves.touch(place, region, write, now, clock);
        }
    }

    fn store(&mut self, me: usize, region: Region, data: &[Symbol]) {
        match region.owner() {
            _ if region.is_empty() => {}
            None => self.ranks[me].store(region, data),
            Some(owner) => {
                let (place, op) = (self.place(me, owner, &region), self.ranks[me].op);
                self.shelves.write(place, region, op, data);
            }
        }
    }

    fn post(&mut self, me: usize, other: usize, slice: Slice, is_recv: bool) -> bool {
        assert_ne!(me, other, "talks to itself");
        assert!(other < self.ranks.len(), "talks to rank {other}");
        let region = self.region(me, slice);
        self.ranks[me].may(&region, is_recv);
        self.touch(me, region, is_recv, true);
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
        let news = if is_recv || self.board.is_none() {
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
        let (landed, left) = rank.flights.iter().partition(|f| mine(f));
        rank.flights = left;
        let landed: Vec<Flight> = landed;
        for flight in landed {
            if let Some(news) = flight.news {
                self.ranks[me].clock.join(&news);
            }
            if let Some(owner) = flight.region.owner() {
                let place = self.place(me, owner, &flight.region);
                let now = self.ranks[me].clock.now(me);
                let open = Moment::open(me);
                self.shelves.close(place, flight.region, open, now);
            }
        }
        true
    }
}
