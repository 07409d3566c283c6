//! The symbolic checker: runs the schedules of all ranks together, without communication, on symbols instead of data.
//!
//! A symbol is the list of the contributions `(rank, place)` that have gone into one unit of memory, in the order in which
//! they were combined. Sends are synchronous (they end only when the receive is posted), the strictest reading. The
//! checker faults on deadlock, on lengths that differ between the two ends, on touching memory in flight, on overlapping
//! copies, on writing to a constant buffer and on messages left over.

use super::{SEND, Schedule, Slice, Step, TEMPS, Temp};
use std::collections::{HashMap, VecDeque};

/// Index of a symbol; 0 is memory never written.
pub type Symbol = u32;

/// Symbols are kept once each.
#[derive(Debug, Default)]
pub struct Symbols {
    lists: Vec<Vec<u32>>,
    index: HashMap<Vec<u32>, Symbol>,
}

impl Symbols {
    /// The symbol of one contribution.
    pub fn base(&mut self, rank: u32, place: usize) -> Symbol {
        self.of(vec![rank << 16 | place as u32])
    }

    /// The symbol of a list of contributions.
    pub fn of(&mut self, list: Vec<u32>) -> Symbol {
        if let Some(&s) = self.index.get(&list) {
            return s;
        }
        self.lists.push(list.clone());
        let s = self.lists.len() as u32;
        self.index.insert(list, s);
        s
    }

    fn combine(&mut self, a: Symbol, b: Symbol, commutative: bool) -> Symbol {
        assert!(a > 0 && b > 0, "reduces memory that was never written");
        let mut list = self.lists[a as usize - 1].clone();
        list.extend(&self.lists[b as usize - 1]);
        if commutative {
            list.sort_unstable();
        }
        self.of(list)
    }
}

/// One of a caller's buffers: its memory, and how many symbols make a unit.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Symbols.
    pub cells: Vec<Symbol>,
    /// Symbols in a unit.
    pub unit: usize,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    buf: u32,
    from: usize,
    to: usize,
}

impl Region {
    fn meets(&self, other: &Region) -> bool {
        self.buf == other.buf && self.from < other.to && other.from < self.to
    }
}

#[derive(Clone, Debug)]
struct Post {
    slot: u32,
    region: Region,
    data: Vec<Symbol>,
}

struct Rank {
    schedule: Schedule,
    user: Vec<Memory>,
    temps: Vec<Memory>,
    pc: usize,
    ended: Vec<bool>,
    flying: Vec<(u32, Region, bool)>,
}

impl Rank {
    fn new(schedule: Schedule, user: Vec<Memory>) -> Rank {
        let temps = schedule.temps.iter().map(|t| temp(t, &user)).collect();
        Rank {
            ended: Vec::new(),
            schedule,
            user,
            temps,
            pc: 0,
            flying: Vec::new(),
        }
    }

    fn memory(&mut self, buf: u32) -> &mut Memory {
        if buf >= TEMPS {
            &mut self.temps[(buf - TEMPS) as usize]
        } else {
            &mut self.user[buf as usize]
        }
    }

    fn region(&mut self, slice: Slice) -> Region {
        if slice.is_empty() {
            return Region {
                buf: slice.buf,
                from: 0,
                to: 0,
            };
        }
        let memory = self.memory(slice.buf);
        let from = usize::try_from(slice.at).expect("slice begins inside its buffer") * memory.unit;
        let to = from + slice.len as usize * memory.unit;
        assert!(
            to <= memory.cells.len(),
            "{slice:?} ends at {to} of {}",
            memory.cells.len()
        );
        Region {
            buf: slice.buf,
            from,
            to,
        }
    }

    fn may(&self, region: &Region, write: bool) {
        assert!(
            !(write && region.buf == SEND && region.to > region.from),
            "writes the send buffer"
        );
        for (_, flying, is_recv) in &self.flying {
            assert!(
                !(flying.meets(region) && (write || *is_recv)),
                "step {} touches {region:?}, in flight",
                self.pc
            );
        }
    }

    fn read(&mut self, slice: Slice) -> Vec<Symbol> {
        let region = self.region(slice);
        self.may(&region, false);
        self.cells(region)
    }

    fn cells(&mut self, r: Region) -> Vec<Symbol> {
        if r.from == r.to {
            Vec::new()
        } else {
            self.memory(r.buf).cells[r.from..r.to].to_vec()
        }
    }

    fn write(&mut self, slice: Slice, data: &[Symbol]) {
        let region = self.region(slice);
        self.may(&region, true);
        assert_eq!(
            region.to - region.from,
            data.len(),
            "lengths differ at step {}",
            self.pc
        );
        self.put(region, data);
    }

    fn put(&mut self, r: Region, data: &[Symbol]) {
        if r.from < r.to {
            self.memory(r.buf).cells[r.from..r.to].copy_from_slice(data);
        }
    }
}

fn temp(temp: &Temp, user: &[Memory]) -> Memory {
    let (cells, unit) = match *temp {
        Temp::Bytes(n) | Temp::Elements(n) => (n as usize, 1),
        Temp::Packed(like) => {
            let n = like.len as usize * user[like.buf as usize].unit;
            (n, n)
        }
    };
    Memory {
        cells: vec![0; cells],
        unit,
    }
}

/// All ranks of one collective.
pub struct World<'a> {
    ranks: Vec<Rank>,
    sends: HashMap<(usize, usize), VecDeque<Post>>,
    recvs: HashMap<(usize, usize), VecDeque<Post>>,
    symbols: &'a mut Symbols,
    commutative: bool,
}

impl<'a> World<'a> {
    /// Ranks with their schedules and the caller's buffers.
    pub fn new(
        ranks: Vec<(Schedule, Vec<Memory>)>,
        symbols: &'a mut Symbols,
        commutative: bool,
    ) -> World<'a> {
        World {
            ranks: ranks.into_iter().map(|(s, m)| Rank::new(s, m)).collect(),
            sends: HashMap::new(),
            recvs: HashMap::new(),
            symbols,
            commutative,
        }
    }

    /// Runs to the end; returns the callers' buffers.
    pub fn run(mut self) -> Vec<Vec<Memory>> {
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
            assert!(
                rank.pc >= rank.schedule.steps.len(),
                "rank {me} stands at step {}: {:?}",
                rank.pc,
                rank.schedule.steps
            );
            assert!(
                rank.ended.iter().all(|&e| e),
                "rank {me} has transfers that never end"
            );
            assert_eq!(
                rank.ended.len() as u32,
                rank.schedule.slots,
                "slots are counted wrongly"
            );
        }
        assert!(
            self.sends
                .values()
                .chain(self.recvs.values())
                .all(|q| q.is_empty()),
            "messages are left over"
        );
        self.ranks.into_iter().map(|r| r.user).collect()
    }

    /// Runs one step of one rank; says whether it could.
    fn step(&mut self, me: usize) -> bool {
        let rank = &mut self.ranks[me];
        let Some(&step) = rank.schedule.steps.get(rank.pc) else {
            return false;
        };
        match step {
            Step::Await(slot) if !rank.ended[slot as usize] => return false,
            Step::Fence if rank.ended.iter().any(|e| !e) => return false,
            Step::Await(_) | Step::Fence => {}
            Step::Raise(_) | Step::Watch { .. } | Step::WatchAll(_) => {
                unimplemented!("the checker does not know boards yet")
            }
            Step::Copy { from, to } => {
                let (a, b) = (rank.region(from), rank.region(to));
                assert!(!a.meets(&b), "copy overlaps itself at step {}", rank.pc);
                let data = rank.read(from);
                rank.write(to, &data);
            }
            Step::Reduce { left, right } => {
                let (a, b) = (rank.read(left), rank.read(right));
                let both = a
                    .iter()
                    .zip(&b)
                    .map(|(&a, &b)| self.symbols.combine(a, b, self.commutative))
                    .collect::<Vec<_>>();
                rank.write(right, &both);
            }
            Step::Send { to, what } => self.post(me, to as usize, what, false),
            Step::Recv { from, into } => self.post(me, from as usize, into, true),
        }
        self.ranks[me].pc += 1;
        true
    }

    fn post(&mut self, me: usize, other: usize, slice: Slice, is_recv: bool) {
        assert_ne!(me, other, "talks to itself");
        assert!(other < self.ranks.len(), "talks to rank {other}");
        let rank = &mut self.ranks[me];
        let region = rank.region(slice);
        rank.may(&region, is_recv);
        let data = if is_recv {
            Vec::new()
        } else {
            rank.cells(region)
        };
        let slot = rank.ended.len() as u32;
        rank.ended.push(false);
        rank.flying.push((slot, region, is_recv));
        let post = Post { slot, region, data };
        let pair = if is_recv { (other, me) } else { (me, other) };
        let queue = if is_recv {
            &mut self.recvs
        } else {
            &mut self.sends
        };
        queue.entry(pair).or_default().push_back(post);
        self.deliver(pair);
    }

    fn deliver(&mut self, pair: (usize, usize)) {
        let (sends, recvs) = (
            self.sends.entry(pair).or_default(),
            self.recvs.entry(pair).or_default(),
        );
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
        assert!(
            send.data.iter().all(|&s| s > 0),
            "{pair:?}: sends memory never written"
        );
        self.ranks[pair.1].put(recv.region, &send.data);
        for (me, slot) in [(pair.0, send.slot), (pair.1, recv.slot)] {
            let rank = &mut self.ranks[me];
            rank.ended[slot as usize] = true;
            rank.flying.retain(|f| f.0 != slot);
        }
    }
}
