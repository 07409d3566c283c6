//! Composition: the schedule of some of the ranks, a *sub-communicator*, as a part of the schedule
//! of all.
//!
//! An algorithm that is written for all ranks of a communicator is emitted for a part of them, and
//! its steps are then renamed: ranks, the two buffers of the caller, and shm buffers. So a
//! collective on several nodes is made of the same algorithms as one on a single node, and the same
//! table chooses them.

use super::table::Site;
use super::{
    CallView, Coll, Levels, RECV, SEND, SHM_BUFFERS, Schedule, ShmBuffer, Slice, Step, TEMPS, Table,
};

/// Basis of the choice of a composed algorithm's parts.
#[derive(Clone, Copy, Debug)]
pub struct Chooser<'a> {
    /// The table.
    pub table: &'a Table,
    /// Hosts and domains of the communicator.
    pub site: Site,
}

/// Stages of a part begin this far above those of the part before it on the same shm region.
const STAGES: u32 = 1 << 14;

/// Some ranks of a communicator, this one among them.
#[derive(Clone, Copy, Debug)]
pub struct SubComm<'a> {
    /// The ranks; the position here is the rank in the part.
    pub ranks: &'a [u32],
    /// The part's view of the caller's send buffer: its first unit lies here.
    pub send: Slice,
    /// The part's view of the caller's receive buffer.
    pub recv: Slice,
    /// How many parts of this schedule have used the shm region before, if this one may use it.
    pub shm_region: Option<u32>,
    /// Levels of these ranks, if they are those of a node where levels are known.
    pub levels: Option<&'a Levels>,
}

impl<'a> SubComm<'a> {
    /// Ranks with the caller's own buffers; without a shm region.
    pub fn new(ranks: &'a [u32]) -> SubComm<'a> {
        SubComm {
            ranks,
            send: Slice::whole(SEND, 0),
            recv: Slice::whole(RECV, 0),
            shm_region: None,
            levels: None,
        }
    }

    /// These ranks with other memory instead of the caller's buffers.
    pub fn on(self, send: Slice, recv: Slice) -> SubComm<'a> {
        SubComm { send, recv, ..self }
    }

    /// These ranks with the shm region of their node, for the `turn`th time in this schedule (from
    /// 0).
    pub fn by_shm_region(self, turn: u32) -> SubComm<'a> {
        SubComm {
            shm_region: Some(turn),
            ..self
        }
    }

    /// Position of a rank in the part; 0 for a rank outside.
    pub fn place(&self, rank: u32) -> u32 {
        self.ranks.iter().position(|&r| r == rank).unwrap_or(0) as u32
    }

    /// The call as the part sees it: the same data, this rank's place in it, and the root's.
    pub fn call<'b>(&self, call: &CallView<'b>) -> CallView<'b>
    where
        'a: 'b,
    {
        CallView {
            rank: self.place(call.rank),
            size: self.ranks.len() as u32,
            root: self.place(call.root),
            nodes: None,
            levels: self.levels,
            shm_region: call.shm_region.filter(|_| self.shm_region.is_some()),
            ..*call
        }
    }

    /// Emits the algorithm that the table chooses for `bytes` (as `table.txt` counts them), and
    /// waits for its end.
    pub fn run(&self, coll: Coll, bytes: u64, call: &CallView, s: &mut Schedule) {
        let network = self.shm_region.is_none();
        let (algorithm, param) = call.choose(coll, bytes, network);
        self.emit(s, |s| (algorithm.emit)(&CallView { param, ..*call }, s));
    }

    /// Emits `part` for the part's ranks and buffers, and waits for its end.
    pub fn emit(&self, s: &mut Schedule, part: impl FnOnce(&mut Schedule)) {
        let (first, temps, slots) = (s.steps.len(), s.temps.len(), s.slots);
        let shm_buffer = std::mem::take(&mut s.shm_buffer);
        part(s);
        for step in &mut s.steps[first..] {
            *step = self.renamed(*step);
        }
        for temp in &mut s.temps[temps..] {
            if let super::Temp::Packed(like) = temp {
                *like = self.slice(*like);
            }
        }
        if s.shm_buffer != ShmBuffer::None {
            self.take_turn(s, first);
        }
        s.shm_buffer = s.shm_buffer.max(shm_buffer);
        if s.slots > slots {
            s.fence();
        }
    }

    /// A later part on the same shared memory: no rank writes a shm buffer before all have finished
    /// the part before.
    fn take_turn(&self, s: &mut Schedule, first: usize) {
        let Some(stage) = self
            .shm_region
            .filter(|&turn| turn > 0)
            .map(|turn| turn * STAGES)
        else {
            return;
        };
        let in_shm_buffer = |slice: &Slice| (SHM_BUFFERS..Slice::NOTHING.buf).contains(&slice.buf);
        let writes = s.steps[first..].iter().any(|step| match step {
            Step::Copy { to, .. } => in_shm_buffer(to),
            Step::Reduce { right, .. } => in_shm_buffer(right),
            _ => false,
        });
        if writes {
            s.steps.insert(first, Step::WatchAll(stage));
        }
        s.steps.insert(first, Step::Raise(stage));
    }

    fn renamed(&self, step: Step) -> Step {
        let rank = |r: u32| self.ranks[r as usize];
        let later = |stage: u32| {
            debug_assert!(stage < STAGES, "stages of two parts of a schedule meet");
            stage + self.shm_region.unwrap_or(0) * STAGES
        };
        match step {
            Step::Send { to, what } => Step::Send {
                to: rank(to),
                what: self.slice(what),
            },
            Step::Recv { from, into } => Step::Recv {
                from: rank(from),
                into: self.slice(into),
            },
            Step::Copy { from, to } => Step::Copy {
                from: self.slice(from),
                to: self.slice(to),
            },
            Step::Reduce { left, right } => Step::Reduce {
                left: self.slice(left),
                right: self.slice(right),
            },
            Step::Watch { rank: r, stage } => Step::Watch {
                rank: rank(r),
                stage: later(stage),
            },
            Step::Raise(stage) => Step::Raise(later(stage)),
            Step::WatchAll(stage) => Step::WatchAll(later(stage)),
            Step::Await(_) | Step::Fence => step,
        }
    }

    fn slice(&self, slice: Slice) -> Slice {
        let moved = |to: Slice| Slice {
            buf: to.buf,
            at: to.at + slice.at,
            len: slice.len,
        };
        match slice.buf {
            SEND => moved(self.send),
            RECV => moved(self.recv),
            SHM_BUFFERS..TEMPS if slice.buf != Slice::NOTHING.buf => Slice {
                buf: SHM_BUFFERS + self.ranks[(slice.buf - SHM_BUFFERS) as usize],
                ..slice
            },
            _ => slice,
        }
    }
}

/// The two levels of a communicator on several nodes, as one rank sees them: the ranks of its node,
/// and one rank of every node, its *leader*: the root on the root's node, the lowest rank on
/// another one.
#[derive(Clone, Debug)]
pub struct Hierarchy<'a> {
    /// Ranks of this node.
    pub here: &'a [u32],
    levels: Option<&'a Levels>,
    /// The leaders, in the order of the nodes.
    pub leaders: Vec<u32>,
    /// This node's leader.
    pub leader: u32,
    /// Whether this rank is its node's leader.
    pub leads: bool,
}

impl<'a> Hierarchy<'a> {
    /// The levels of a call on a communicator with several nodes.
    pub fn of(call: &CallView<'a>) -> Hierarchy<'a> {
        // Rows of `ALL` that come here need nodes.
        let nodes = call.nodes.expect("the communicator has several nodes");
        let leader = |node: u32| {
            if node == nodes.of(call.root) {
                call.root
            } else {
                nodes.leader(node)
            }
        };
        let mine = nodes.of(call.rank);
        Hierarchy {
            here: nodes.ranks(mine),
            levels: nodes.levels(mine),
            leaders: (0..nodes.count()).map(leader).collect(),
            leader: leader(mine),
            leads: leader(mine) == call.rank,
        }
    }

    /// The ranks of this node, on their shm region if they have one.
    pub fn inside(&self, turn: u32) -> SubComm<'a> {
        SubComm {
            levels: self.levels,
            ..SubComm::new(self.here).by_shm_region(turn)
        }
    }

    /// The leaders.
    pub fn between(&self) -> SubComm<'_> {
        SubComm::new(&self.leaders)
    }
}
