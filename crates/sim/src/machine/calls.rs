//! Calls as programs make them: equal blocks, elements of 8 bytes, an operation that commutes,
//! buffers of one's own; and every algorithm that can do them.

use super::Machine;
use super::run::{Call, Outcome, Stuck, run};
use kw_coll::algorithms::{Algorithm, Need};
use kw_coll::cost::{able, price};
use kw_coll::table::Site;
use kw_coll::{
    CallView, Chooser, Coll, Domain, ELEMENT, Levels, Neighbors, Nodes, Schedule, ShmSizes, Table,
};

/// Most steps of all ranks of a schedule that is simulated.
pub const MOST_STEPS: usize = 1 << 20;

/// The collectives that are examined.
pub const LOOKED_AT: [Coll; 11] = [
    Coll::Allreduce,
    Coll::Bcast,
    Coll::Barrier,
    Coll::Reduce,
    Coll::Allgather,
    Coll::Alltoall,
    Coll::ReduceScatter,
    Coll::Gather,
    Coll::Scatter,
    Coll::Scan,
    Coll::Exscan,
];

/// Neighbourhood collectives, for which there is no choice; ranks are in a ring.
pub const OF_NEIGHBORS: [Coll; 2] = [Coll::NeighborAllgather, Coll::NeighborAlltoall];

/// A collective call on a machine.
#[derive(Debug)]
pub struct Case<'a> {
    machine: &'a Machine,
    nodes: Option<Nodes>,
    /// Levels of ranks on one host that have a core each: they are bound to it.
    levels: Option<Levels>,
    /// Edges by rank, for a neighbourhood collective.
    neighbors: Vec<Neighbors>,
    /// The collective.
    pub coll: Coll,
    /// Ranks.
    pub n: u32,
    /// Ranks of each host.
    pub per_host: u32,
    /// Bytes as the table counts them.
    pub bytes: u64,
    /// The root, if there is one.
    pub root: u32,
}

impl<'a> Case<'a> {
    /// A call of `n` ranks, `per_host` of them on each host.
    pub fn new(
        machine: &'a Machine,
        coll: Coll,
        (n, per_host): (u32, u32),
        bytes: u64,
    ) -> Case<'a> {
        let bytes = match coll {
            Coll::Barrier => 0,
            Coll::ReduceScatter => bytes.max(ELEMENT * n as u64),
            _ => bytes,
        };
        let nodes = Nodes::of_hosts((0..n).map(|r| r / per_host));
        let bound = per_host <= machine.host_cores() && !machine.network;
        let domain = |r: u32| {
            let core = r % per_host;
            let package = core / machine.cores;
            let cache = Some(core % machine.cores / machine.cache_cores());
            Domain { package, cache }
        };
        let one_host = nodes.is_none();
        let nodes = nodes.map(|n| n.with_domains(|r| bound.then(|| domain(r))));
        let around =
            |r: u32| Neighbors::of_grid([(Some((r + n - 1) % n), Some((r + 1) % n))].into_iter());
        let neighbors = match OF_NEIGHBORS.contains(&coll) {
            true => (0..n).map(around).collect(),
            false => Vec::new(),
        };
        Case {
            machine,
            nodes,
            neighbors,
            levels: (bound && one_host)
                .then(|| Levels::of(&(0..n).map(domain).collect::<Vec<_>>())),
            coll,
            n,
            per_host,
            bytes,
            root: 0,
        }
    }

    /// Whether it has a root.
    pub fn is_rooted(coll: Coll) -> bool {
        matches!(
            coll,
            Coll::Bcast | Coll::Gather | Coll::Scatter | Coll::Reduce
        )
    }

    /// Hosts and domains of the ranks.
    pub fn site(&self) -> Site {
        Site {
            shared: self.nodes.is_none() && self.per_host > self.machine.host_cores(),
            network: self.machine.network || self.per_host == 1 && self.n > 1,
        }
    }

    /// Whether an algorithm with this need is for ranks in this placement: on several hosts, in
    /// several domains of one, or close to each other.
    pub fn is_for(&self, need: Need) -> bool {
        let apart = self.levels.as_ref().is_some_and(|l| !l.tiers().is_empty());
        match (&self.nodes, apart) {
            (Some(_), _) => matches!(
                need,
                Need::Nodes | Need::NodesFold | Need::NodesEven | Need::NodesEvenApart
            ),
            (None, true) => matches!(need, Need::Levels | Need::ShortLevelsFold),
            (None, false) => true,
        }
    }

    fn unit(&self) -> u64 {
        if self.coll.combines() { ELEMENT } else { 1 }
    }

    fn shm_region(&self) -> Option<ShmSizes> {
        let (n, ranks) = (self.n as u64, self.per_host.min(self.n) as u64);
        let shm_region = ShmSizes::usual(ranks, self.unit());
        (ranks > 1 && n > 1 && !self.machine.network).then_some(shm_region)
    }

    /// The call as a rank makes it.
    pub fn call_view<'b>(&'b self, rank: u32, table: &'b Table) -> CallView<'b> {
        CallView {
            nodes: self.nodes.as_ref(),
            levels: self.levels.as_ref(),
            shm_region: self.shm_region(),
            chooser: Some(Chooser {
                table,
                site: self.site(),
            }),
            root: self.root,
            neighbors: self.neighbors.get(rank as usize),
            ..CallView::ordinary(self.coll, rank, self.n, self.bytes)
        }
    }

    /// The table's choice.
    pub fn chosen(&self, table: &Table) -> (&'static Algorithm, u32) {
        table.choose(
            self.coll,
            self.bytes,
            self.site(),
            &self.call_view(0, table),
        )
    }

    /// Every algorithm that can do it, with the numbers that make a difference.
    pub fn candidates(&self, table: &Table) -> Vec<(&'static Algorithm, u32)> {
        able(self.coll, &self.call_view(0, table)).collect()
    }

    /// The schedules of all ranks; `None` where they are too long to be simulated.
    pub fn schedules(&self, algorithm: &Algorithm, param: u32, table: &Table) -> Option<Call> {
        let emit = |rank| {
            let mut s = Schedule::default();
            let call = CallView {
                param,
                ..self.call_view(rank, table)
            };
            (algorithm.emit)(&call, &mut s);
            s
        };
        let long = |s: &Schedule| s.steps.len() * self.n as usize > MOST_STEPS;
        let first = emit(self.n - 1);
        if long(&first) {
            return None;
        }
        let mut schedules: Vec<Schedule> = (0..self.n - 1).map(emit).collect();
        schedules.push(first);
        Some(Call {
            schedules,
            unit: self.unit(),
            footprint: self.coll.buffers(self.bytes, self.n),
            per_host: self.per_host,
        })
    }

    /// Nanoseconds by the algorithm's closed form.
    pub fn form(&self, (algorithm, param): (&Algorithm, u32), table: &Table) -> f64 {
        let call = CallView {
            param,
            ..self.call_view(0, table)
        };
        price(algorithm, &call, &self.machine.prices, self.site())
    }

    /// Simulates `times` consecutive calls.
    pub fn run(
        &self,
        (algorithm, param): (&Algorithm, u32),
        table: &Table,
        times: u32,
    ) -> Result<Option<Outcome>, Stuck> {
        let call = self.schedules(algorithm, param, table);
        call.map(|c| run(self.machine, &c, times)).transpose()
    }
}
