//! One rank in the checker: its programs, its private memory, its transfers in flight, and its
//! announcements.

use super::clock::Clock;
use super::symbol::Symbol;
use super::{Call, Memory, Region};
use crate::executor::{FlowControl, Op, Progress};
use crate::{SEND, Schedule, Slice, TEMPS, Temp, is_shm_buffer};

/// A transfer that the rank has not waited for.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub slot: u32,
    pub region: Region,
    pub is_recv: bool,
    /// The other end has come.
    pub ended: bool,
    /// Knowledge of the sender.
    pub news: Option<Clock>,
}

/// An announcement on the shm region.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// The collective's number on the shm region.
    pub number: u64,
    pub stage: u32,
    /// Knowledge of its rank.
    pub clock: Clock,
}

#[derive(Debug)]
struct Program {
    schedule: Schedule,
    user: Vec<Memory>,
    temps: Vec<Memory>,
}

/// One rank.
#[derive(Debug)]
pub struct Rank {
    programs: Vec<Program>,
    /// Its current collective.
    pub op: usize,
    /// The ops of the current collective, and how far they are done.
    pub ops: Vec<Op>,
    pub progress: Option<Progress>,
    /// Number of the current collective, and its part of the ring.
    pub at_work: (u64, u64),
    /// Its side of the shm region, and the ranks of its node.
    pub flow: Option<FlowControl>,
    pub members: Vec<usize>,
    pub posted: u32,
    pub flights: Vec<Flight>,
    pub clock: Clock,
    pub marks: Vec<Mark>,
}

impl Rank {
    pub fn new(me: usize, calls: Vec<Call>) -> Rank {
        let program = |(schedule, user): Call| Program {
            temps: schedule.temps.iter().map(|t| temp(t, &user)).collect(),
            schedule,
            user,
        };
        Rank {
            programs: calls.into_iter().map(program).collect(),
            op: 0,
            ops: Vec::new(),
            progress: None,
            at_work: (0, 0),
            flow: None,
            members: Vec::new(),
            posted: 0,
            flights: Vec::new(),
            clock: Clock::new(me),
            marks: Vec::new(),
        }
    }

    /// The schedule it runs now, unless it has ended all.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.programs.get(self.op).map(|p| &p.schedule)
    }

    /// The schedules of all its collectives.
    pub fn schedules(&self) -> impl Iterator<Item = &Schedule> {
        self.programs.iter().map(|p| &p.schedule)
    }

    /// The caller's buffers of every collective.
    pub fn into_user(self) -> Vec<Vec<Memory>> {
        self.programs.into_iter().map(|p| p.user).collect()
    }

    /// The current op.
    pub fn pc(&self) -> u32 {
        self.progress.map_or(0, |p| p.at())
    }

    /// Size of a unit of a buffer of its own, in symbols.
    pub fn unit(&self, buf: u32) -> usize {
        let program = &self.programs[self.op];
        let memory = match buf.checked_sub(TEMPS) {
            Some(temp) => program.temps.get(temp as usize),
            None => program.user.get(buf as usize),
        };
        memory.map_or(0, |m| m.unit)
    }

    /// Announces its knowledge to the others of its node.
    pub fn announce(&mut self, me: usize, number: u64, stage: u32) {
        let clock = self.clock.announce(me);
        self.marks.push(Mark {
            number,
            stage,
            clock,
        });
    }

    /// Number of the current collective on the shm region.
    pub fn number(&self) -> u64 {
        self.at_work.0
    }

    /// Start of its part of the ring.
    pub fn ring_at(&self) -> u64 {
        self.at_work.1
    }

    fn memory(&mut self, buf: u32) -> &mut Memory {
        assert!(!is_shm_buffer(buf), "no private memory");
        let program = &mut self.programs[self.op];
        if buf >= TEMPS {
            &mut program.temps[(buf - TEMPS) as usize]
        } else {
            &mut program.user[buf as usize]
        }
    }

    /// Location of a slice of private memory.
    pub fn region(&mut self, slice: Slice) -> Region {
        let memory = self.memory(slice.buf);
        let from = usize::try_from(slice.at).expect("slice begins inside its buffer") * memory.unit;
        let to = from + slice.len as usize * memory.unit;
        let len = memory.cells.len();
        assert!(to <= len, "{slice:?} ends at {to} of {len}");
        let buf = slice.buf;
        Region { buf, from, to }
    }

    /// Faults if the region may not be touched now.
    pub fn may(&self, region: &Region, write: bool) {
        assert!(
            !(write && region.buf == SEND && region.to > region.from),
            "writes the send buffer"
        );
        for f in &self.flights {
            assert!(
                !(f.region.meets(region) && (write || f.is_recv)),
                "op {} touches {region:?}, in flight",
                self.pc()
            );
        }
    }

    pub fn load(&mut self, r: Region) -> Vec<Symbol> {
        self.memory(r.buf).cells[r.from..r.to].to_vec()
    }

    pub fn store(&mut self, r: Region, data: &[Symbol]) {
        self.memory(r.buf).cells[r.from..r.to].copy_from_slice(data);
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
    let cells = vec![Symbol::NEVER; cells];
    Memory { cells, unit }
}
