//! The profile for people: a head, then the calls by place.

use super::function;
use super::table::{Line, RankTimes, Site, Spread, Table, percent};
use crate::sites::Sites;
use kw_hang::Frame;
use kw_start::profile::NONE;
use std::path::Path;

/// Most rows of places; the remaining ones become one row.
const MOST: usize = 30;
/// Most ranks that a sentence names.
const NAMED: usize = 8;

/// The text; `size`: number of ranks.
pub fn page(table: &Table, size: usize, sites: &mut Sites) -> String {
    let mut out = String::new();
    if table.ranks.is_empty() {
        return format!("  {} called no function of MPI\n", ranks(&all(size)));
    }
    let run = table.spread(|r| r.run as f64 * 1e-9);
    out += &format!(
        "  {} of {size} ranks, from MPI_Init to MPI_Finalize {} s ({} to {})\n",
        table.ranks.len(),
        seconds(run.mean),
        seconds(run.least.0),
        seconds(run.most.0)
    );
    out += &share("in MPI", table.spread(|r| r.share(r.inside)));
    out += &share("waiting", table.spread(|r| r.share(r.waiting)));
    if table.ranks.iter().any(|r| r.files > 0) {
        out += &share("in files", table.spread(|r| r.share(r.files)));
        if table
            .ranks
            .iter()
            .any(|r| r.file_access + r.file_exchange > 0)
        {
            let (access, exchange) = ("file access", "file exchange");
            out += &share(access, table.spread(|r| r.share(r.file_access)));
            out += &share(exchange, table.spread(|r| r.share(r.file_exchange)));
        }
    }
    out += &imbalance(table);
    out += &remarks(table, size);
    out + "\n" + &places(table, size, sites)
}

fn share(what: &str, s: Spread) -> String {
    format!(
        "  {what:<14} {:5.1} % mean, {:.1} % least (rank {}), {:.1} % most (rank {})\n",
        s.mean, s.least.0, s.least.1, s.most.0, s.most.1
    )
}

/// Imbalance of the time outside MPI, which the other ranks have to wait for.
fn imbalance(table: &Table) -> String {
    let s = table.spread(|r| r.outside() as f64 * 1e-9);
    let more = match s.mean > 0.0 {
        true => 100.0 * (s.most.0 / s.mean - 1.0),
        false => 0.0,
    };
    format!(
        "  outside MPI    {} s mean, {} least (rank {}), {} most (rank {}): imbalance {more:.1} % (most over mean)\n",
        seconds(s.mean),
        seconds(s.least.0),
        s.least.1,
        seconds(s.most.0),
        s.most.1
    )
}

fn all(size: usize) -> Vec<u32> {
    (0..size as u32).collect()
}

/// `rank 3`, `ranks 1, 2`, or the first few of many.
fn ranks(which: &[u32]) -> String {
    let names: Vec<String> = which.iter().take(NAMED).map(u32::to_string).collect();
    let more = match which.len().checked_sub(NAMED) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let word = if which.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}{more}", names.join(", "))
}

/// Notes on the figures.
fn remarks(table: &Table, size: usize) -> String {
    let mut out = String::new();
    let mut known = vec![false; size];
    let here = table.ranks.iter().map(|r| r.rank as usize);
    here.filter(|r| *r < size).for_each(|r| known[r] = true);
    let none: Vec<u32> = all(size)
        .into_iter()
        .filter(|r| !known[*r as usize])
        .collect();
    if !none.is_empty() {
        out += &format!("  {} called no function of MPI\n", ranks(&none));
    }
    let open = |r: &&RankTimes| !r.over;
    let mut open: Vec<u32> = table.ranks.iter().filter(open).map(|r| r.rank).collect();
    open.sort_unstable();
    if !open.is_empty() {
        out += &format!("  {} did not reach the end of MPI_Finalize\n", ranks(&open));
    }
    out
}

/// The table by place.
fn places(table: &Table, size: usize, sites: &mut Sites) -> String {
    let lines = table.sorted();
    let (shown, others) = lines.split_at(lines.len().min(MOST));
    let mut rows = vec![HEAD.map(String::from)];
    for (site, line) in shown {
        let place = place(table, site, sites);
        rows.push(row(
            table,
            line,
            size,
            function(site.function).0,
            &place.text(),
        ));
    }
    if !others.is_empty() {
        let mut sum = Line::default();
        others.iter().for_each(|(_, line)| sum.join(line));
        let what = format!("{} more places", others.len());
        rows.push(row(table, &sum, size, "other calls", &what));
    }
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = String::new();
    for cells in &rows {
        let mut line = String::new();
        for (c, cell) in cells.iter().enumerate() {
            let width = widths[c];
            line += &match c < TEXTS {
                true => format!("  {cell:>width$}"),
                false => format!("  {cell:<width$}"),
            };
        }
        out += line.trim_end();
        out += "\n";
    }
    out
}

const HEAD: [&str; 8] = [
    "of run",
    "mean s",
    "most s",
    "rank",
    "calls",
    "bytes",
    "function",
    "called from",
];
/// Columns before those with texts.
const TEXTS: usize = 6;

fn row(table: &Table, line: &Line, size: usize, function: &str, place: &str) -> [String; 8] {
    let mean = line.time as f64 * 1e-9 / table.ranks.len().clamp(1, size.max(1)) as f64;
    [
        format!("{:.1} %", percent(line.time, table.run())),
        seconds(mean),
        seconds(line.most as f64 * 1e-9),
        line.rank.to_string(),
        line.count.to_string(),
        amount(line.bytes),
        function.into(),
        place.into(),
    ]
}

/// Place of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLocation {
    /// `FILE:LINE`, the file without its directories; empty if unknown.
    pub line: String,
    /// The function of the program; empty if unknown.
    pub function: String,
    /// The program or library, and the offset in it.
    pub address: String,
}

impl SourceLocation {
    fn text(&self) -> String {
        match (self.function.is_empty(), self.line.is_empty()) {
            (false, false) => format!("{} ({})", self.line, self.function),
            (false, true) => format!("{} in {}", self.function, self.address),
            (true, false) => self.line.clone(),
            (true, true) => self.address.clone(),
        }
    }
}

/// Looks a place up.
pub fn place(table: &Table, site: &Site, sites: &mut Sites) -> SourceLocation {
    let Some(path) = table.files.get(site.file as usize) else {
        return SourceLocation {
            address: if site.file == NONE && site.offset == 0 {
                ""
            } else {
                "code without a file"
            }
            .into(),
            ..SourceLocation::default()
        };
    };
    // The return address is after the call, which may be the last instruction of its line.
    let frame = Frame {
        file: path.clone(),
        offset: site.offset.saturating_sub(1),
    };
    let name = Path::new(path).file_name();
    let name = name.map_or_else(|| path.clone(), |n| n.to_string_lossy().into_owned());
    let (function, line) = sites.place(&frame);
    SourceLocation {
        line,
        function,
        address: format!("{name}+{:#x}", site.offset),
    }
}

/// A number with three digits.
fn seconds(s: f64) -> String {
    match s {
        _ if s >= 100.0 => format!("{s:.0}"),
        _ if s >= 10.0 => format!("{s:.1}"),
        _ if s >= 1.0 => format!("{s:.2}"),
        _ => format!("{s:.4}"),
    }
}

fn amount(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 10_000 {
        return bytes.to_string();
    }
    let mut scaled = bytes as f64;
    let mut unit = "";
    for larger in UNITS {
        if scaled < 1000.0 {
            break;
        }
        (scaled, unit) = (scaled / 1000.0, larger);
    }
    format!("{scaled:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_start::profile::{Calls, Row};

    #[test]
    fn a_page_says_who_and_where() {
        let mut table = Table::default();
        for rank in [0, 2] {
            let row = |offset, time| Row {
                function: NONE - 1,
                file: 0,
                offset,
                count: 3,
                time,
                bytes: 20_000,
            };
            let calls = Calls {
                run: 2_000_000_000,
                over: rank == 0,
                files: vec!["/no/such/a.out".into()],
                rows: (0..40)
                    .map(|n| row(n, 1_000_000 + u64::from(rank)))
                    .collect(),
                ..Calls::default()
            };
            table.add(rank, &calls);
        }
        let text = page(&table, 4, &mut Sites::default());
        for part in [
            "  2 of 4 ranks, from MPI_Init to MPI_Finalize 2.00 s (2.00 to 2.00)\n",
            "  in MPI           2.0 % mean, 2.0 % least (rank 0), 2.0 % most (rank 2)\n",
            "  ranks 1, 3 called no function of MPI\n",
            "  rank 2 did not reach the end of MPI_Finalize\n",
            "10 more places\n",
            "a.out+0x7\n",
        ] {
            assert!(text.contains(part), "{part:?} should be in {text}");
        }
        assert_eq!(text.lines().count(), 6 + 1 + 1 + MOST + 1, "{text}");
        assert!(text.contains("40.0 kB"), "{text}");
    }

    #[test]
    fn who_called_nothing_is_reported() {
        let text = page(&Table::default(), 20, &mut Sites::default());
        assert_eq!(
            text,
            "  ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12 more called no function of MPI\n"
        );
    }
}
