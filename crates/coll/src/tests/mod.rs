//! Every algorithm under the symbolic checker: for process counts from 1 to 64, every root, with
//! and without MPI_IN_PLACE, with shm regions that hold the data in one piece and shm regions that
//! need many.

mod combining;
mod moving;
mod shm_regions;

use super::algorithms::{ALL, Algorithm, Need};
use super::check::{Call, Memory, Symbol, World};
use super::{
    Blocks, CallView, Chooser, Coll, Domain, FLAG_LINE_BYTES, Levels, Nodes, RECV, SEND, Schedule,
    ShmSizes, Table,
};
use std::sync::LazyLock;

/// Process counts: all to 64 in `make check-all`. Otherwise all to 33, and large ones that are a power
/// of two, one below it, and three times one; those between take most of the time.
fn sizes() -> impl Iterator<Item = u32> {
    let all = std::env::var_os("CHECK_ALL").is_some_and(|set| !set.is_empty());
    (1..=64).filter(move |n| all || *n <= 33 || [48, 63, 64].contains(n))
}

/// Setting in which an algorithm runs.
#[derive(Clone, Debug, Default)]
struct Site {
    shm_region: Option<ShmSizes>,
    nodes: Option<Nodes>,
    levels: Option<Levels>,
    /// Basis of the choice of composed algorithms' parts.
    table: Option<&'static Table>,
}

impl Site {
    /// A call of rank `r` of `n` here.
    fn call(&self, r: u32, n: u32) -> CallView<'_> {
        CallView {
            shm_region: self.shm_region,
            nodes: self.nodes.as_ref(),
            levels: self.levels.as_ref(),
            chooser: self.table.map(|table| Chooser {
                table,
                site: Default::default(),
            }),
            ..CallView::new(r, n)
        }
    }
}

/// An algorithm with every process count, on everything that it can run on.
fn cases(coll: Coll) -> impl Iterator<Item = (&'static Algorithm, u32, Site)> {
    let every = of(coll).flat_map(|a| sizes().map(move |n| (a, n)));
    every.flat_map(|(a, n)| sites(a.need, n).into_iter().map(move |site| (a, n, site)))
}

fn of(coll: Coll) -> impl Iterator<Item = &'static Algorithm> {
    ALL.iter().filter(move |a| a.coll == coll)
}

fn sites(need: Need, n: u32) -> Vec<Site> {
    let shm_region = |b| Site {
        shm_region: Some(b),
        ..Site::default()
    };
    match need {
        Need::Shm | Need::ShortShm | Need::EvenShm => {
            shm_regions(n).into_iter().map(shm_region).collect()
        }
        Need::Levels | Need::ShortLevelsFold => levels(n),
        Need::Nodes | Need::NodesFold | Need::NodesEven | Need::NodesEvenApart => nodes(n),
        _ => vec![Site::default()],
    }
}

/// One node with several domains in several shapes, by turns with either shm region: equal ones,
/// unequal ones, one with a single rank, ranks in turns, and caches within packages.
fn levels(n: u32) -> Vec<Site> {
    let shapes: [fn(u32, u32) -> (u32, u32); 6] = [
        |r, n| (2 * r / n, 0),
        |r, n| ((r > n / 5) as u32 + (r > n / 2) as u32, 0),
        |r, _| ((r > 0) as u32, r / 9),
        |r, _| (r % 3, 0),
        |r, _| (r / 12, r / 3),
        |r, _| (r % 2, r % 8),
    ];
    let site = |(i, shape): (usize, &fn(u32, u32) -> (u32, u32))| Site {
        shm_region: Some(shm_regions(n)[(n as usize + i) % 2]),
        levels: Some(Levels::of(
            &(0..n)
                .map(|r| shape(r, n))
                .flat_map(|(p, c)| domain(p, c))
                .collect::<Vec<_>>(),
        )),
        ..Site::default()
    };
    let all = shapes.iter().enumerate().map(site);
    let several = |s: &Site| s.levels.as_ref().is_some_and(|l| !l.tiers().is_empty());
    all.filter(several).collect()
}

/// Several nodes in several placements: blocked, in turns, uneven, mixed, and each rank alone; by
/// turns with and without shm regions, with domains inside of either kind, of some nodes alone, or
/// with none, and with tables that choose different algorithms for the parts.
fn nodes(n: u32) -> Vec<Site> {
    let placements: [&dyn Fn(u32) -> u32; 5] = [
        &|r| r / 4,
        &|r| r % 3,
        &|r| (r > 0) as u32 + (r > n / 2) as u32,
        &|r| r * r % 7,
        &|r| r,
    ];
    let [roomy, tight] = shm_regions(n);
    let site = |(i, hosts): (usize, &&dyn Fn(u32) -> u32)| {
        let turn = n as usize + i;
        let nodes = Nodes::of_hosts((0..n).map(hosts))?;
        Some(Site {
            shm_region: [None, Some(roomy), Some(tight)][turn % 3],
            nodes: Some(nodes.with_domains(DOMAINS[turn % 4])),
            table: TABLES[turn / 3 % TABLES.len()].as_ref(),
            levels: None,
        })
    };
    placements.iter().enumerate().filter_map(site).collect()
}

/// The domain of each rank on its node.
const DOMAINS: [fn(u32) -> Option<Domain>; 4] = [
    |r| domain(r / 2 % 2, 0),
    |r| domain(r % 3, r / 3 % 2),
    |r| (r != 5).then_some(()).and(domain(r / 3, 0)),
    |_| None,
];

fn domain(package: u32, cache: u32) -> Option<Domain> {
    let cache = Some(cache);
    Some(Domain { package, cache })
}

/// The built-in table, one with algorithms for long data, one with those that follow domains, and
/// none.
static TABLES: LazyLock<[Option<Table>; 4]> = LazyLock::new(|| {
    let long = "bcast - - any any any scatter_ring; reduce - - any any any rabenseifner; \
        reduce - - any any any chain/3; allreduce - - any any any ring; allgather - - any any any ring; \
        reduce_scatter - - any any any halving; gather - - any any any binomial; scatter - - any any any binomial";
    let levels = "bcast - - any any any shm_levels/2; reduce - - any any any shm_levels/3; \
        allreduce - - any any any shm_levels/4; barrier - - any any any shm_levels/2";
    // Rows of this file.
    let [long, levels] = [long, levels].map(|t| Table::with(t).expect("the rows are well-formed"));
    [Some(Table::default()), Some(long), Some(levels), None]
});

/// A shm region that holds everything at once, and the smallest one that algorithms must do with.
fn shm_regions(n: u32) -> [ShmSizes; 2] {
    let unit = 1;
    let (short, long) = (FLAG_LINE_BYTES + 2, FLAG_LINE_BYTES + 4 * n as u64);
    let roomy = ShmSizes {
        short: 1 << 12,
        long: 1 << 16,
        unit,
    };
    [roomy, ShmSizes { short, long, unit }]
}

fn emit(a: &Algorithm, call: &CallView) -> Schedule {
    let mut s = Schedule::default();
    (a.emit)(call, &mut s);
    s
}

/// Every root, some with all the variants of a call and the others with one each.
fn rooted<T: Copy>(n: u32, variants: &[T]) -> Vec<(u32, T)> {
    let some = [0, 1, n / 2, n - 1];
    let of = |r: u32| {
        let turn = r as usize % variants.len();
        let all = n <= 9 || some.contains(&r);
        let mine = if all {
            variants
        } else {
            &variants[turn..=turn]
        };
        mine.iter().map(move |&v| (r, v))
    };
    (0..n).flat_map(of).collect()
}

/// Runs `a` on `n` ranks; `memory(rank)` gives the buffers, `call(rank)` the call.
fn world<'a>(
    a: &Algorithm,
    n: u32,
    commutative: bool,
    call: &dyn Fn(u32) -> CallView<'a>,
    memory: &dyn Fn(u32) -> Vec<Memory>,
) -> Vec<Vec<Memory>> {
    let ranks = (0..n).map(|r| (emit(a, &call(r)), memory(r))).collect();
    let site = call(0);
    World::new(ranks, commutative)
        .on(site.shm_region, site.nodes)
        .run()
}

fn base(rank: u32, len: usize) -> Vec<Symbol> {
    (0..len).map(|i| Symbol::of(rank, i)).collect()
}

/// Contributions of ranks `from..to` at each place.
fn folded(ranks: std::ops::Range<u32>, places: std::ops::Range<usize>) -> Vec<Symbol> {
    places.map(|i| Symbol::folded(ranks.clone(), i)).collect()
}

fn never(len: usize) -> Vec<Symbol> {
    vec![Symbol::NEVER; len]
}

fn plain(cells: Vec<Symbol>) -> Memory {
    Memory { cells, unit: 1 }
}

fn unit(cells: Vec<Symbol>, unit: usize) -> Memory {
    Memory { cells, unit }
}
