//! The simulator against measurements: the machine that we do have, simulated and measured
//! ([`Measurements`], fitted curves of calls in a loop).

use super::Machine;
use super::calls::Case;
use super::run::Stuck;
use crate::model::{Conditions, Measured, Measurements};
use kw_coll::algorithms::ALL;
use kw_coll::{Coll, Table};

/// Bytes at which both are compared.
const SIZES: [u64; 6] = [8, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Consecutive calls, as measurements make them.
const TIMES: u32 = 4;

/// One algorithm at one size.
#[derive(Clone, Debug)]
pub struct Point {
    /// Place.
    pub place: Conditions,
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
    measured: &Measurements,
    table: &Table,
) -> Result<Vec<Point>, Stuck> {
    let mut all = Vec::new();
    for row in measured.rows() {
        let machine = if row.network { net } else { shm };
        let sizes = if row.coll == Coll::Barrier {
            &SIZES[..1]
        } else {
            &SIZES[..]
        };
        for &bytes in sizes {
            all.extend(point(row, machine, measured, bytes, table)?);
        }
    }
    Ok(all)
}

fn point(
    row: &Measured,
    machine: &Machine,
    measured: &Measurements,
    bytes: u64,
    table: &Table,
) -> Result<Option<Point>, Stuck> {
    let place = Conditions {
        network: row.network,
        shared: row.shared,
        procs: row.procs,
    };
    // Another piece of the same curve may hold here.
    let Some((time, _)) = measured.time(row.coll, &row.algorithm, place, bytes) else {
        return Ok(None);
    };
    let (word, number) = row
        .algorithm
        .split_once('/')
        .unwrap_or((&row.algorithm, "4"));
    let algorithm = ALL.iter().find(|a| a.coll == row.coll && a.name == word);
    let (Some(algorithm), Ok(number)) = (algorithm, number.parse()) else {
        return Ok(None);
    };
    if row.from > bytes || (time - row.cost.time(bytes)).abs() > 1e-9 || time <= 0.0 {
        return Ok(None);
    }
    let case = Case::new(machine, row.coll, (row.procs, row.procs), bytes);
    // A row that forced an algorithm which the call could not use measured another one.
    if !algorithm.need.met(&case.call_view(0, table)) {
        return Ok(None);
    }
    let outcome = case.run((algorithm, number), table, TIMES)?;
    Ok(outcome.map(|o| Point {
        place,
        coll: row.coll,
        algorithm: row.algorithm.clone(),
        bytes,
        measured: time,
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
    let mut groups: Vec<(Conditions, Coll)> = Vec::new();
    for p in points {
        if !groups.contains(&(p.place, p.coll)) {
            groups.push((p.place, p.coll));
        }
    }
    let row = |&(place, coll): &(Conditions, Coll)| {
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
