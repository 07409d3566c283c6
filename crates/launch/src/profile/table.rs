//! The calls of all ranks together, in bounded memory.

use std::collections::HashMap;

use super::function;
use kw_start::profile::{Calls, NONE, Row};

/// Most rows; the calls from further places share one row.
const ROWS: usize = 4096;

/// A place that calls a function of MPI: the function, the program or library, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    /// Number of the function.
    pub function: u32,
    /// Which of [`Table::files`], or [`NONE`].
    pub file: u32,
    /// Return address of the call.
    pub offset: u64,
}

/// The row of the calls that had no room.
const REST: Site = Site {
    function: NONE,
    file: NONE,
    offset: 0,
};

/// The calls from one place, of all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Calls.
    pub count: u64,
    /// Bytes.
    pub bytes: u64,
    /// Nanoseconds, summed over the ranks.
    pub time: u64,
    /// The maximum over the ranks, and its rank.
    pub most: u64,
    /// The rank with the maximum.
    pub rank: u32,
}

impl Line {
    fn add(&mut self, rank: u32, row: &Row) {
        self.join(&Line {
            count: row.count,
            bytes: row.bytes,
            time: row.time,
            most: row.time,
            rank,
        });
    }

    /// Merges another line into this one.
    pub fn join(&mut self, other: &Line) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.time = self.time.saturating_add(other.time);
        if other.most > self.most {
            (self.most, self.rank) = (other.most, other.rank);
        }
    }
}

/// Times of a rank in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTimes {
    /// The rank.
    pub rank: u32,
    /// From MPI_Init to MPI_Finalize, or to its end.
    pub run: u64,
    /// In calls of MPI.
    pub inside: u64,
    /// In calls that wait for other ranks.
    pub waiting: u64,
    /// In calls for files.
    pub files: u64,
    /// Access to files, also by threads that run beside the program.
    pub file_access: u64,
    /// Communication of collective access to files, and waiting for other ranks.
    pub file_exchange: u64,
    /// Whether it has finalised.
    pub over: bool,
}

/// The calls of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Programs and libraries that make calls, by path.
    pub files: Vec<String>,
    numbers: HashMap<String, u32>,
    lines: HashMap<Site, Line>,
    /// The ranks that have made any call.
    pub ranks: Vec<RankTimes>,
}

impl Table {
    /// Adds the calls of a rank.
    pub fn add(&mut self, rank: u32, calls: &Calls) {
        let files: Vec<u32> = calls.files.iter().map(|f| self.file(f)).collect();
        let mut of = RankTimes {
            rank,
            run: calls.run,
            over: calls.over,
            file_access: calls.file_access,
            file_exchange: calls.file_exchange,
            ..RankTimes::default()
        };
        for row in &calls.rows {
            of.inside += row.time;
            let (name, waits) = function(row.function);
            of.waiting += row.time * u64::from(waits);
            of.files += row.time * u64::from(name.starts_with("MPI_File_"));
            let site = Site {
                function: row.function,
                file: files.get(row.file as usize).copied().unwrap_or(NONE),
                offset: row.offset,
            };
            let known = self.lines.contains_key(&site) || self.lines.len() < ROWS;
            let site = if known { site } else { REST };
            self.lines.entry(site).or_default().add(rank, row);
        }
        self.ranks.push(of);
    }

    fn file(&mut self, path: &str) -> u32 {
        if let Some(known) = self.numbers.get(path) {
            return *known;
        }
        let number = self.files.len() as u32;
        self.files.push(path.into());
        self.numbers.insert(path.into(), number);
        number
    }

    /// The lines in descending order of time.
    pub fn sorted(&self) -> Vec<(Site, Line)> {
        let mut lines: Vec<_> = self.lines.iter().map(|(s, l)| (*s, *l)).collect();
        lines.sort_by_key(|(site, line)| (std::cmp::Reverse(line.time), *site));
        lines
    }

    /// Run time of all ranks together.
    pub fn run(&self) -> u64 {
        self.ranks.iter().map(|r| r.run).sum()
    }

    /// Minimum (with its rank), mean and maximum (with its rank) over the ranks.
    pub fn spread(&self, of: impl Fn(&RankTimes) -> f64) -> Spread {
        let values = self.ranks.iter().map(|r| (of(r), r.rank));
        let mut sum = 0.0;
        let mut spread: Option<Spread> = None;
        for (value, rank) in values {
            sum += value;
            let s = spread.get_or_insert(Spread {
                least: (value, rank),
                mean: 0.0,
                most: (value, rank),
            });
            if value < s.least.0 {
                s.least = (value, rank);
            }
            if value > s.most.0 {
                s.most = (value, rank);
            }
        }
        let mut spread = spread.unwrap_or_default();
        spread.mean = sum / self.ranks.len().max(1) as f64;
        spread
    }
}

/// Spread of a figure over the ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The minimum, and its rank.
    pub least: (f64, u32),
    /// The mean of all ranks.
    pub mean: f64,
    /// The maximum, and its rank.
    pub most: (f64, u32),
}

impl RankTimes {
    /// A fraction of its run, in percent.
    pub fn share(&self, part: u64) -> f64 {
        percent(part, self.run)
    }

    /// Nanoseconds outside MPI.
    pub fn outside(&self) -> u64 {
        self.run.saturating_sub(self.inside)
    }
}

/// A fraction of a whole, in percent.
pub fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => 100.0 * part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(file: &str, offsets: std::ops::Range<u64>, time: u64) -> Calls {
        let row = |offset| Row {
            function: 1,
            file: 0,
            offset,
            count: 2,
            time,
            bytes: 8,
        };
        Calls {
            run: 1000,
            over: true,
            files: vec![file.into()],
            rows: offsets.map(row).collect(),
            ..Calls::default()
        }
    }

    #[test]
    fn the_same_place_is_one_line_of_all_ranks() {
        let mut table = Table::default();
        table.add(0, &calls("/a", 5..6, 100));
        table.add(1, &calls("/a", 5..6, 300));
        table.add(2, &calls("/b", 5..6, 50));
        let lines = table.sorted();
        assert_eq!(lines.len(), 2);
        let (site, line) = lines[0];
        assert_eq!((site.file, line.count, line.bytes), (0, 4, 16));
        assert_eq!((line.time, line.most, line.rank), (400, 300, 1));
        let spread = table.spread(|r| r.share(r.inside));
        assert_eq!((spread.least, spread.most), ((5.0, 2), (30.0, 1)));
        assert_eq!(spread.mean, 15.0);
    }

    #[test]
    fn places_without_number_are_one_line() {
        let mut table = Table::default();
        table.add(0, &calls("/a", 0..ROWS as u64 + 10, 1));
        let lines = table.sorted();
        assert_eq!(lines.len(), ROWS + 1);
        let rest = lines.iter().find(|(site, _)| *site == REST).unwrap();
        assert_eq!((rest.1.count, rest.1.time), (20, 10));
        assert_eq!(table.ranks[0].inside, ROWS as u64 + 10);
    }
}
