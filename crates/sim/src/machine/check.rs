//! The simulator against measurements of a machine: calls in a loop, each with an algorithm that was
//! forced. `kwlab check FILE` writes them.

use super::Machine;
use super::calls::Case;
use super::run::Stuck;
use kw_coll::algorithms::ALL;
use kw_coll::table::COLLS;
use kw_coll::{Coll, Table};

/// Consecutive calls, as measurements make them.
const TIMES: u32 = 4;

/// Where a call was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Over a network path.
    pub network: bool,
    /// More ranks than cores.
    pub shared: bool,
    /// Processes.
    pub procs: u32,
}

/// One algorithm, measured at one size.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Place.
    pub place: Place,
    /// The collective.
    pub coll: Coll,
    /// The algorithm and its parameter, as in the selection table.
    pub algorithm: String,
    /// Bytes.
    pub bytes: u64,
    /// Microseconds.
    pub time: f64,
}

/// Why measurements cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "line {line}: '{row}' is not: collective, algorithm, shm or net, free or shared, ranks, bytes, microseconds"
)]
pub struct BadRow {
    line: usize,
    row: String,
}

impl Measured {
    /// Reads rows of seven words; an error names the line.
    pub fn parse(text: &str) -> Result<Vec<Measured>, BadRow> {
        let lines = text.lines().enumerate();
        let content = lines.filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
        let bad = |(i, l): (usize, &str)| BadRow {
            line: i + 1,
            row: l.into(),
        };
        content
            .map(|row| Measured::row(row.1).ok_or_else(|| bad(row)))
            .collect()
    }

    fn row(line: &str) -> Option<Measured> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[coll, algorithm, path, load, procs, bytes, time] = words.as_slice() else {
            return None;
        };
        let one_of =
            |word, [no, yes]: [&str; 2]| (word == no || word == yes).then_some(word == yes);
        let time: f64 = time.parse().ok()?;
        Some(Measured {
            place: Place {
                network: one_of(path, ["shm", "net"])?,
                shared: one_of(load, ["free", "shared"])?,
                procs: procs.parse().ok()?,
            },
            coll: COLLS.iter().find(|c| c.1 == coll)?.0,
            algorithm: algorithm.to_string(),
            bytes: bytes.parse().ok()?,
            time: Some(time).filter(|t| t.is_finite() && *t > 0.0)?,
        })
    }
}

/// One algorithm at one size.
#[derive(Clone, Debug)]
pub struct Point {
    /// Place.
    pub place: Place,
    /// The collective.
    pub coll: Coll,
    /// The algorithm and its number.
    pub algorithm: String,
    /// Bytes.
    pub bytes: u64,
    /// Microseconds, measured.
    pub measured: f64,
    /// Microseconds, simulated.
    pub simulated: f64,
}

impl Point {
    /// Simulated over measured, less one.
    pub fn error(&self) -> f64 {
        self.simulated / self.measured - 1.0
    }
}

/// How far the simulation of some points is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Off {
    /// Points.
    pub points: usize,
    /// Geometric mean of simulated over measured.
    pub bias: f64,
    /// Mean factor between both, whichever is larger.
    pub factor: f64,
}

/// Deviation of those points.
pub fn off<'a>(points: impl Iterator<Item = &'a Point>) -> Off {
    let logs: Vec<f64> = points.map(|p| (p.simulated / p.measured).ln()).collect();
    let mean = |of: fn(f64) -> f64| {
        let sum: f64 = logs.iter().map(|l| of(*l)).sum();
        (sum / logs.len().max(1) as f64).exp()
    };
    Off {
        points: logs.len(),
        bias: mean(|l| l),
        factor: mean(f64::abs),
    }
}

/// Every measured algorithm, simulated; `shm` and `net` are the machine's two descriptions.
pub fn points(
    [shm, net]: [&Machine; 2],
    measured: &[Measured],
    table: &Table,
) -> Result<Vec<Point>, Stuck> {
    let mut all = Vec::new();
    for row in measured {
        let machine = if row.place.network { net } else { shm };
        all.extend(point(row, machine, table)?);
    }
    Ok(all)
}

fn point(row: &Measured, machine: &Machine, table: &Table) -> Result<Option<Point>, Stuck> {
    let (word, number) = row
        .algorithm
        .split_once('/')
        .unwrap_or((&row.algorithm, "4"));
    let algorithm = ALL.iter().find(|a| a.coll == row.coll && a.name == word);
    let (Some(algorithm), Ok(number)) = (algorithm, number.parse()) else {
        return Ok(None);
    };
    let ranks = row.place.procs;
    let case = Case::new(machine, row.coll, (ranks, ranks), row.bytes);
    // A row that forced an algorithm which the call could not use measured another one.
    if !algorithm.need.met(&case.call_view(0, table)) {
        return Ok(None);
    }
    let outcome = case.run((algorithm, number), table, TIMES)?;
    Ok(outcome.map(|o| Point {
        place: row.place,
        coll: row.coll,
        algorithm: row.algorithm.clone(),
        bytes: row.bytes,
        measured: row.time,
        simulated: o.time / 1000.0,
    }))
}

/// Measured time of what the simulation finds fastest over that of what was measured fastest, for
/// every call of those points.
pub fn chosen_by_simulation(points: &[Point]) -> Vec<f64> {
    let mut calls: Vec<(&Point, &Point, &Point)> = Vec::new();
    for p in points {
        let same = |q: &Point| (q.coll, q.place, q.bytes) == (p.coll, p.place, p.bytes);
        match calls.iter_mut().find(|c| same(c.0)) {
            None => calls.push((p, p, p)),
            Some((_, quick, best)) => {
                if p.simulated < quick.simulated {
                    *quick = p;
                }
                if p.measured < best.measured {
                    *best = p;
                }
            }
        }
    }
    let regret = |(_, quick, best): &(&Point, &Point, &Point)| quick.measured / best.measured;
    calls.iter().map(regret).collect()
}

/// A row of a table: the place, how many points, bias and factor.
pub fn rows(points: &[Point]) -> Vec<Vec<String>> {
    let mut groups: Vec<(Place, Coll)> = Vec::new();
    for p in points {
        if !groups.contains(&(p.place, p.coll)) {
            groups.push((p.place, p.coll));
        }
    }
    let row = |&(place, coll): &(Place, Coll)| {
        let o = off(points.iter().filter(|p| (p.place, p.coll) == (place, coll)));
        vec![
            coll.name().to_string(),
            if place.network { "net" } else { "shm" }.to_string(),
            place.procs.to_string(),
            o.points.to_string(),
            format!("{:.2}", o.bias),
            format!("{:.2}", o.factor),
        ]
    };
    groups.iter().map(row).collect()
}

/// Heading of the rows.
pub const HEAD: [&str; 6] = [
    "Collective",
    "Path",
    "Ranks",
    "Points",
    "Simulated/measured",
    "Factor",
];

/// The means over all, by path and load, and how good a choice by simulation is where it was
/// measured.
pub fn sentences(points: &[Point]) -> String {
    let mut text = String::new();
    for (network, shared) in [(false, false), (false, true), (true, false), (true, true)] {
        let here = |p: &&Point| (p.place.network, p.place.shared) == (network, shared);
        let these: Vec<Point> = points.iter().filter(here).cloned().collect();
        let (o, by) = (off(these.iter()), chosen_by_simulation(&these));
        let logs: f64 = by.iter().map(|r| r.ln()).sum();
        text += &format!(
            "{}, {}: {} points, simulated/measured {:.2}, factor {:.2}; the simulation's choice takes {:.2} times as long as the measured best\n",
            if network { "TCP" } else { "shared memory" },
            if shared {
                "cores shared"
            } else {
                "a core each"
            },
            o.points,
            o.bias,
            o.factor,
            (logs / by.len().max(1) as f64).exp()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_simulated_where_the_algorithm_can_run() {
        let text = "# machine\nbcast\tbinomial\tshm\tfree\t2\t8\t1.5\nbarrier tree/8 net shared 4 0 30\n\
            bcast no_such shm free 2 8 1\n";
        let all = Machine::all();
        let measured = Measured::parse(text).unwrap();
        let points = points([&all[0], &all[1]], &measured, &Table::default()).unwrap();
        let of = |p: &Point| (p.coll, p.place.network, p.bytes, p.measured);
        let expected = [(Coll::Bcast, false, 8, 1.5), (Coll::Barrier, true, 0, 30.0)];
        assert_eq!(points.iter().map(of).collect::<Vec<_>>(), expected);
        assert!(points.iter().all(|p| p.simulated > 0.0));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for row in [
            "bcast tree shm free 2 8",
            "bcast tree tcp free 2 8 1",
            "bcast tree shm free 2 8 -1",
        ] {
            let bad = Measured::parse(&format!("# x\n{row}\n")).unwrap_err();
            assert!(
                bad.to_string()
                    .starts_with(&format!("line 2: '{row}' is not: "))
            );
        }
    }
}
