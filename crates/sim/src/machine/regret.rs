//! The chosen and the best algorithms on a machine.

use super::Machine;
use super::calls::{Case, LOOKED_AT};
use super::run::Stuck;
use kw_coll::{Coll, Table};

/// Bytes that are examined.
pub const SIZES: [u64; 9] = [
    8,
    256,
    2 << 10,
    8 << 10,
    32 << 10,
    128 << 10,
    512 << 10,
    2 << 20,
    16 << 20,
];
/// Most bytes that all ranks of a call move together.
const MOST_BYTES: u64 = 16 << 30;

/// One call: the chosen algorithm, and the best.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The collective.
    pub coll: Coll,
    /// Ranks.
    pub n: u32,
    /// Ranks of a host.
    pub per_host: u32,
    /// Bytes.
    pub bytes: u64,
    /// The chosen algorithm and its nanoseconds.
    pub chosen: (String, f64),
    /// The best algorithm and its nanoseconds.
    pub best: (String, f64),
}

impl Cell {
    /// Time of the chosen algorithm over that of the best.
    pub fn regret(&self) -> f64 {
        self.chosen.1 / self.best.1
    }
}

/// Mean (geometric) and worst regret, and how many cells are within a tenth of the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Cells.
    pub cells: usize,
    /// Geometric mean.
    pub mean: f64,
    /// Largest.
    pub worst: f64,
    /// Cells of at most 1.1.
    pub within: usize,
}

/// The summary of those cells.
pub fn summary<'a>(cells: impl Iterator<Item = &'a Cell>) -> Summary {
    let all: Vec<f64> = cells.map(Cell::regret).collect();
    let logs: f64 = all.iter().map(|r| r.ln()).sum();
    Summary {
        cells: all.len(),
        mean: (logs / all.len().max(1) as f64).exp(),
        worst: all.iter().copied().fold(1.0, f64::max),
        within: all.iter().filter(|r| **r <= 1.1).count(),
    }
}

/// Every call that is examined on a machine; `sizes`: bytes.
pub fn cases<'m>(machine: &'m Machine, sizes: &[u64]) -> Vec<Case<'m>> {
    let mut all = Vec::new();
    for &ranks in &machine.ranks {
        for coll in LOOKED_AT {
            let sizes = if coll == Coll::Barrier {
                &sizes[..1]
            } else {
                sizes
            };
            for &bytes in sizes {
                let blocks = match coll {
                    Coll::Alltoall => ranks.0 as u64 * ranks.0 as u64,
                    Coll::Allgather => ranks.0 as u64 * ranks.0 as u64,
                    _ => ranks.0 as u64,
                };
                if blocks * bytes <= MOST_BYTES {
                    all.push(Case::new(machine, coll, ranks, bytes));
                }
            }
        }
    }
    all
}

/// Simulates the chosen algorithm and every rival. `None` if the chosen one cannot be simulated.
pub fn judge(case: &Case, table: &Table) -> Result<Option<Cell>, Stuck> {
    let (algorithm, param) = case.chosen(table);
    let Some(own) = case.run((algorithm, param), table, 1)? else {
        return Ok(None);
    };
    let chosen = (format!("{}/{param}", algorithm.name), own.time);
    let mut best = chosen.clone();
    for (rival, number) in case.candidates(table) {
        if let Some(outcome) = case.run((rival, number), table, 1)?
            && outcome.time < best.1
        {
            best = (format!("{}/{number}", rival.name), outcome.time);
        }
    }
    Ok(Some(Cell {
        coll: case.coll,
        n: case.n,
        per_host: case.per_host,
        bytes: case.bytes,
        chosen,
        best,
    }))
}

/// One row of a table.
pub fn row(cell: &Cell) -> Vec<String> {
    let us = |ns: f64| format!("{:.2}", ns / 1000.0);
    vec![
        cell.coll.name().to_string(),
        cell.n.to_string(),
        cell.per_host.to_string(),
        cell.bytes.to_string(),
        cell.chosen.0.clone(),
        us(cell.chosen.1),
        cell.best.0.clone(),
        us(cell.best.1),
        format!("{:.2}", cell.regret()),
    ]
}

/// Heading of the rows.
pub const HEAD: [&str; 9] = [
    "Collective",
    "Ranks",
    "A host",
    "Bytes",
    "Chosen",
    "us",
    "Best",
    "us",
    "Regret",
];

/// The summary in words, with the collectives that fall short.
pub fn sentence(cells: &[Cell]) -> String {
    let all = summary(cells.iter());
    let mut text = format!(
        "{} calls, regret {:.3} (geometric mean), worst {:.2}, {} within a tenth of the best, {} beyond\n",
        all.cells,
        all.mean,
        all.worst,
        all.within,
        all.cells - all.within
    );
    for coll in LOOKED_AT {
        let s = summary(cells.iter().filter(|c| c.coll == coll));
        if s.within < s.cells {
            text += &format!(
                "  {}: {:.3}, worst {:.2}, {} of {} within a tenth\n",
                coll.name(),
                s.mean,
                s.worst,
                s.within,
                s.cells
            );
        }
    }
    text
}
