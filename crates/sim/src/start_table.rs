//! Output of `kwsim start`: the messages between the ranks of a large job and their launcher until
//! all know the job, and their duration in virtual time; then the first barrier. The machines are
//! those of real ranks ([`kw_start`]).

use crate::start::{self as sim, Figures, Knows, Scenario, Shape};
use kw_launch::listing::Listing;

/// Most ranks that are simulated.
pub const MOST: u32 = 1 << 20;
/// Children of each server in a tree.
const FAN: u32 = 32;

/// The network and the machines.
#[derive(Clone, Copy, Debug)]
pub struct Hardware {
    /// Ranks of each host.
    pub per_host: u32,
    /// Microseconds of a message between hosts.
    pub latency_us: u32,
    /// Million bytes a second between hosts.
    pub bandwidth_mb: u32,
}

/// The launchers that are simulated: name, servers, what they know.
const LAUNCHERS: [(&str, Shape, Knows); 3] = [
    ("a server on each host", Shape::Tree(FAN), Knows::Hosts),
    ("the same, hosts unsaid", Shape::Tree(FAN), Knows::Ranks),
    ("ours: one server", Shape::One, Knows::Key),
];

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum NoTable {
    /// Misuse: this many ranks are not simulated.
    #[error("start takes 1 to {MOST} ranks, not {0}")]
    Ranks(u32),
    /// A start that comes to no end.
    #[error(transparent)]
    StartError(#[from] sim::StartError),
}

/// One row for each number of ranks and launcher.
pub fn listing(ranks: &[u32], place: Hardware) -> Result<Listing, NoTable> {
    let mut rows = Vec::new();
    for &n in ranks {
        if n == 0 || n > MOST {
            return Err(NoTable::Ranks(n));
        }
        for (name, shape, knows) in LAUNCHERS {
            let scenario = Scenario {
                far_ns: u64::from(place.latency_us) * 1000,
                bandwidth: u64::from(place.bandwidth_mb.max(1)) * 1_000_000,
                ..Scenario::ethernet(n, place.per_host, shape, knows)
            };
            rows.push(row(n, name, &sim::run(&scenario)?));
        }
    }
    let head = vec![
        "Ranks",
        "Launcher",
        "Gets",
        "Fences",
        "Asked",
        "Bytes",
        "Asked by all",
        "Bytes of all",
        "Between servers",
        "Busiest server",
        "Ready, ms",
        "Connections",
        "Lookups",
        "Barrier, ms",
    ];
    Ok(Listing { head, rows })
}

fn row(n: u32, name: &str, f: &Figures) -> Vec<String> {
    let ms = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
    let cells = [
        n.to_string(),
        name.to_string(),
        f.most.gets.to_string(),
        f.most.fences.to_string(),
        f.most.asks.to_string(),
        f.most.bytes.to_string(),
        f.all.asks.to_string(),
        f.all.bytes.to_string(),
        format!("{} ({} MB)", f.between, f.between_bytes / 1_000_000),
        f.busiest.to_string(),
        ms(f.ready_ns),
        f.barrier.connections.to_string(),
        f.barrier.lookups.to_string(),
        ms(f.barrier.took_ns),
    ];
    cells.to_vec()
}

/// Descriptions of the columns.
pub fn legend(place: Hardware) -> String {
    format!(
        "Gets, fences, questions and bytes: the most of any rank, with the 7 of PMI-1's greeting. Ready: all ranks know the job and can be found; what it takes to start processes is \
         not in it. Connections and lookups: the most of any host's first rank in the first barrier between hosts, which follows. {} ranks a host; {} us \
         and {} MB/s between hosts, 10 us between processes of one, 5 us of a server for each message, trees of servers with {FAN} children each.\n",
        place.per_host, place.latency_us, place.bandwidth_mb
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Hardware = Hardware {
        per_host: 4,
        latency_us: 50,
        bandwidth_mb: 125,
    };

    #[test]
    fn there_is_a_row_for_each_launcher() {
        let listing = listing(&[1, 100], PLACE).unwrap();
        assert_eq!(listing.rows.len(), 6);
        assert!(listing.rows.iter().all(|r| r.len() == listing.head.len()));
    }

    #[test]
    fn no_ranks_and_too_many_are_refused() {
        for n in [0, MOST + 1] {
            assert!(matches!(listing(&[n], PLACE), Err(NoTable::Ranks(m)) if m == n));
        }
    }
}
