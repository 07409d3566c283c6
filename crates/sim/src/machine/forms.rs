//! The closed forms (`kw_coll::cost`) against the simulator.

use super::Machine;
use super::calls::{Case, LOOKED_AT, OF_NEIGHBORS};
use super::run::Stuck;
use kw_coll::algorithms::Algorithm;
use kw_coll::{Coll, Table};
use std::collections::BTreeMap;

/// One call by one algorithm.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its collective and name.
    pub algorithm: String,
    /// Ranks, bytes and root.
    pub call: (u32, u64, u32),
    /// The algorithm's number.
    pub param: u32,
    /// Nanoseconds, simulated.
    pub simulated: f64,
    /// Nanoseconds by the closed form.
    pub form: f64,
    /// The algorithm is for ranks in this placement. The forms of other algorithms need not hold
    /// there: on several hosts, and domains, these leave the call to such algorithms.
    pub held: bool,
}

impl Point {
    /// The form over the simulation, less one.
    pub fn error(&self) -> f64 {
        self.form / self.simulated - 1.0
    }
}

/// Algorithms whose closed form omits something significant: its mean error if ranks meet only the
/// ranks they exchange data with. All others: [`MEAN`].
const COARSE: &[(&str, f64)] = &[
    // Rounds in which some ranks have nothing to send or to receive.
    ("bcast scatter_doubling", 0.30),
    ("bcast scatter_ring", 0.15),
    ("scan doubling", 0.07),
    // The first rank only sends, and is ahead of the ranks that combine.
    ("exscan chain", 0.10),
    // Long pieces of a chain that combines wait for each other longer, if they are few.
    ("reduce chain", 0.10),
    // The ranks that have no twin are ahead of the others.
    ("reduce_scatter halving", 0.10),
    // The form reads a rank's own shm buffer as private memory, though the root has written it.
    ("scatter shm", 0.10),
    // Trees whose last level is not complete.
    ("barrier tree", 0.10),
    // The form is that of the allreduce: here the root alone collects, and waits at the end.
    ("reduce shm_parts", 0.20),
    // Short data has fewer parts than there are ranks, and few of these have work.
    ("allreduce shm_parts", 0.10),
    ("reduce shm_tree", 0.15),
    // A subtree that runs past the last rank, if rank 0 is not the root, is handled separately.
    ("gather binomial", 0.15),
    // The root sends short blocks before long ones.
    ("scatter binomial", 0.15),
    // Hosts with unequal numbers of ranks get out of step, and delay each other's links.
    ("allgather nodes", 0.10),
    ("alltoall nodes", 0.10),
    // Long data takes every domain for as large as the largest.
    ("allreduce shm_levels", 0.10),
    ("bcast shm_levels", 0.10),
    ("reduce shm_levels", 0.10),
];
/// How far a closed form may be off on average.
const MEAN: f64 = 0.05;

/// The algorithms that are off by more than they may be, each with its mean error.
pub fn beyond(points: &[Point]) -> Vec<String> {
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for p in points.iter().filter(|p| p.held) {
        let of = errors.entry(p.algorithm.as_str()).or_default();
        of.push(p.error().abs());
    }
    let allowed = |name: &str| COARSE.iter().find(|c| c.0 == name).map_or(MEAN, |c| c.1);
    let mean = |e: &[f64]| e.iter().sum::<f64>() / e.len() as f64;
    let wrong = errors.iter().filter(|(name, e)| mean(e) > allowed(name));
    let sentence = |(name, e): (&&str, &Vec<f64>)| format!("{name}: {:.1} %", 100.0 * mean(e));
    wrong.map(sentence).collect()
}

/// The roots that are examined, if a collective has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Rank 0.
    First,
    /// The second rank, the one in the middle and the last; collectives with a root alone.
    Some,
    /// All; collectives without one, too.
    Every,
}

impl Roots {
    fn of(self, coll: Coll, n: u32) -> Vec<u32> {
        let mut roots: Vec<u32> = match self {
            Roots::Some if !Case::is_rooted(coll) => Vec::new(),
            _ if !Case::is_rooted(coll) => vec![0],
            Roots::First => vec![0],
            Roots::Some => vec![1, n / 2, n - 1],
            Roots::Every => (0..n).collect(),
        };
        roots.dedup();
        roots
    }
}

/// Every algorithm for those numbers of ranks, bytes and roots.
pub fn points(
    machine: &Machine,
    ranks: &[(u32, u32)],
    (sizes, roots): (&[u64], Roots),
    table: &Table,
) -> Result<Vec<Point>, Stuck> {
    let table = &table.clone().priced(machine.prices);
    let mut all = Vec::new();
    for &n in ranks {
        for coll in LOOKED_AT.into_iter().chain(OF_NEIGHBORS) {
            let sizes = if coll == Coll::Barrier {
                &sizes[..1]
            } else {
                sizes
            };
            for (&bytes, root) in sizes
                .iter()
                .flat_map(|b| roots.of(coll, n.0).into_iter().map(move |r| (b, r)))
            {
                let mut case = Case::new(machine, coll, n, bytes);
                case.root = root;
                for (algorithm, param) in case.candidates(table) {
                    all.extend(point(&case, algorithm, param, table)?);
                }
            }
        }
    }
    Ok(all)
}

fn point(
    case: &Case,
    algorithm: &Algorithm,
    param: u32,
    table: &Table,
) -> Result<Option<Point>, Stuck> {
    let outcome = case.run((algorithm, param), table, 1)?;
    Ok(outcome.map(|o| Point {
        algorithm: format!("{} {}", case.coll.name(), algorithm.name),
        call: (case.n, case.bytes, case.root),
        param,
        simulated: o.time,
        form: case.form((algorithm, param), table),
        held: case.is_for(algorithm.need),
    }))
}

/// Mean and worst error of every algorithm, and where it is worst.
pub fn rows(points: &[Point]) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = points.iter().map(|p| p.algorithm.as_str()).collect();
    names.dedup();
    names.sort();
    names.dedup();
    let row = |of: &&str| {
        let these: Vec<&Point> = points.iter().filter(|p| p.algorithm == *of).collect();
        let mean = these.iter().map(|p| p.error().abs()).sum::<f64>() / these.len() as f64;
        let by = |a: &&&Point, b: &&&Point| a.error().abs().total_cmp(&b.error().abs());
        let within = these.iter().filter(|p| p.error().abs() <= 0.05).count();
        let worst = these.iter().max_by(by).map_or(String::new(), |p| {
            format!(
                "{:+.0} % ({} ranks, {} bytes, root {}, /{}: {:.2} us, not {:.2})",
                100.0 * p.error(),
                p.call.0,
                p.call.1,
                p.call.2,
                p.param,
                p.form / 1000.0,
                p.simulated / 1000.0
            )
        });
        vec![
            of.to_string(),
            these.len().to_string(),
            format!("{:.1} %", 100.0 * mean),
            format!("{:.0} %", 100.0 * within as f64 / these.len() as f64),
            worst,
        ]
    };
    names.iter().map(row).collect()
}

/// Heading of the rows.
pub const HEAD: [&str; 5] = ["Algorithm", "Calls", "Mean error", "Within 5 %", "Worst"];

/// A machine on which ranks meet only those they exchange data with: hosts of one socket, memory
/// that holds everything, and a core for each of many ranks.
pub fn open(machine: &Machine) -> Machine {
    let mut open = with_domains(machine);
    (open.sockets, open.cores, open.caches) = (1, 1 << 10, 1);
    open.prices.sockets = 1.0;
    open.prices.far_line = open.prices.line;
    open.prices.far_read = open.prices.read;
    open
}

/// The machine with its actual sockets and caches.
pub fn with_domains(machine: &Machine) -> Machine {
    let mut open = machine.clone();
    open.prices.cache = f64::INFINITY;
    open
}
