//! Costs of collectives: the linear model of *Performance Analysis of Message-Passing Libraries on
//! High-Speed Clusters* (section 3), fitted to measurements, one set of parameters for each
//! algorithm and process count, or two if there is a cache limit between.
//!
//! `T(n) = t0 + ti * (tb n / (t0 + tb n)) + tb n`: `t0` is the start-up, `tb` the time of a byte,
//! and `ti` what messages of middle size pay on top (the intercept of the regression of `T(n) - t0`
//! on `n`).
//!
//! `measured.tsv` is written by `kwlab tune`, never by hand. Nothing here runs while a program
//! communicates: the selection table is made from these figures beforehand, and `kwsim choices`
//! judges it by them.

use kw_coll::Coll;
use kw_coll::table::COLLS;

/// The measurements that come with the library.
const BUILT_IN: &str = include_str!("measured.tsv");

/// Parameters of the model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Start-up, microseconds.
    pub t0: f64,
    /// Extra time of middle sizes, microseconds; may be negative.
    pub ti: f64,
    /// Microseconds a byte.
    pub tb: f64,
}

impl Cost {
    /// Microseconds for `n` bytes (as `table.txt` counts them).
    pub fn time(&self, n: u64) -> f64 {
        let moving = self.tb * n as f64;
        let share = if moving > 0.0 {
            moving / (self.t0 + moving)
        } else {
            0.0
        };
        self.t0 + self.ti * share + moving
    }
}

/// One algorithm, measured with one number of processes.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The collective.
    pub coll: Coll,
    /// The algorithm and its parameter, as in the table.
    pub algorithm: String,
    /// Whether its messages went over a network path.
    pub network: bool,
    /// Whether there were more ranks than cores.
    pub shared: bool,
    /// Processes.
    pub procs: u32,
    /// The model applies from this many bytes on, up to the start of another one of the same
    /// algorithm.
    pub from: u64,
    /// The fitted model.
    pub cost: Cost,
    /// Mean absolute relative error of the fit at the measured sizes, and scatter of the
    /// measurements.
    pub error: f64,
}

/// Circumstances of a prediction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// Over a network path.
    pub network: bool,
    /// More ranks than cores.
    pub shared: bool,
    /// Processes.
    pub procs: u32,
}

/// All measurements.
#[derive(Clone, Debug)]
pub struct Measurements {
    rows: Vec<Measured>,
}

impl Default for Measurements {
    fn default() -> Self {
        // The built-in text is read by a test.
        Measurements::parse(BUILT_IN).expect("the built-in measurements are well-formed")
    }
}

/// Why measurements cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {wrong}")]
pub struct Unreadable {
    line: usize,
    wrong: WrongRow,
}

/// Error in a row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum WrongRow {
    #[error("has {0} words instead of 10")]
    Words(usize),
    #[error("{0} is not a number")]
    Number(String),
    #[error("no collective is called {0}")]
    Collective(String),
}

impl Measurements {
    /// Reads the text that `kwlab tune` writes; an error names the line and the fault.
    pub fn parse(text: &str) -> Result<Measurements, Unreadable> {
        let lines = text.lines().enumerate();
        let content = lines.filter(|(_, l)| !l.starts_with('#') && !l.trim().is_empty());
        let rows = content
            .map(|(i, l)| parse_row(l).map_err(|wrong| Unreadable { line: i + 1, wrong }))
            .collect::<Result<_, _>>()?;
        Ok(Measurements { rows })
    }

    /// Every row.
    pub fn rows(&self) -> &[Measured] {
        &self.rows
    }

    /// The algorithms of a collective that were measured in such circumstances, with their
    /// predicted microseconds and the relative error of the fit, fastest first.
    pub fn candidates(&self, coll: Coll, place: Conditions, bytes: u64) -> Vec<(&str, f64, f64)> {
        let fits = |r: &&Measured| {
            let here = Conditions {
                network: r.network,
                shared: r.shared,
                procs: r.procs,
            };
            r.coll == coll && here == place && r.from <= bytes
        };
        let fitting: Vec<&Measured> = self.rows.iter().filter(fits).collect();
        let holds = |r: &&&Measured| {
            let mut same = fitting.iter().filter(|o| o.algorithm == r.algorithm);
            same.all(|o| o.from <= r.from)
        };
        let mut all: Vec<_> = fitting
            .iter()
            .filter(holds)
            .map(|r| (r.algorithm.as_str(), r.cost.time(bytes), r.error))
            .collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        all
    }

    /// Predicted microseconds of one algorithm, and the relative error of the fit.
    pub fn time(
        &self,
        coll: Coll,
        algorithm: &str,
        place: Conditions,
        bytes: u64,
    ) -> Option<(f64, f64)> {
        let all = self.candidates(coll, place, bytes);
        let found = all.iter().find(|c| c.0 == algorithm);
        found.map(|c| (c.1, c.2))
    }

    /// The circumstances that were measured, each once, in the order of the file.
    pub fn places(&self) -> Vec<Conditions> {
        let mut places: Vec<Conditions> = Vec::new();
        for r in &self.rows {
            let place = Conditions {
                network: r.network,
                shared: r.shared,
                procs: r.procs,
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }
}

/// The substitutions of the paper's section 5.3: a collective, and two others that have the same
/// effect one after the other. The second and fourth column say how many bytes (as the table counts
/// them) of the two correspond to `n` of the first: `n` times `mul` divided by `div`, where 0
/// stands for the number of processes.
pub const SUBSTITUTES: &[(Coll, [(Coll, u32, u32); 2])] = &[
    (
        Coll::Bcast,
        [(Coll::Scatter, 1, 0), (Coll::Allgather, 1, 0)],
    ),
    (Coll::Allgather, [(Coll::Gather, 1, 1), (Coll::Bcast, 0, 1)]),
    (
        Coll::ReduceScatter,
        [(Coll::Reduce, 1, 1), (Coll::Scatter, 1, 0)],
    ),
    (Coll::Allreduce, [(Coll::Reduce, 1, 1), (Coll::Bcast, 1, 1)]),
    (
        Coll::Allreduce,
        [(Coll::ReduceScatter, 1, 1), (Coll::Allgather, 1, 0)],
    ),
];

/// Bytes of a part of a substitute, from the row above.
pub fn bytes_of((_, mul, div): (Coll, u32, u32), n: u64, procs: u32) -> u64 {
    let real = |k: u32| if k == 0 { procs as u64 } else { k as u64 };
    n * real(mul) / real(div)
}

fn parse_row(line: &str) -> Result<Measured, WrongRow> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[coll, algorithm, path, load, procs, from, t0, ti, tb, error] = words.as_slice() else {
        return Err(WrongRow::Words(words.len()));
    };
    let no_number = |w: &str| WrongRow::Number(w.into());
    let whole = |w: &str| w.parse().map_err(|_| no_number(w));
    let number = |w: &str| {
        let value = w.parse().ok().filter(|v: &f64| v.is_finite());
        value.ok_or_else(|| no_number(w))
    };
    let &(coll, _) = COLLS
        .iter()
        .find(|c| c.1 == coll)
        .ok_or_else(|| WrongRow::Collective(coll.into()))?;
    Ok(Measured {
        coll,
        algorithm: algorithm.to_string(),
        network: path == "net",
        shared: load == "shared",
        procs: whole(procs)?,
        from: from.parse().map_err(|_| no_number(from))?,
        cost: Cost {
            t0: number(t0)?,
            ti: number(ti)?,
            tb: number(tb)? / 1000.0,
        },
        error: number(error)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_paper() {
        let cost = Cost {
            t0: 4.0,
            ti: 13.0,
            tb: 0.00389,
        };
        assert_eq!(cost.time(0), 4.0);
        // Half of ti is paid where tb n = t0.
        let middle = (cost.t0 / cost.tb) as u64;
        assert!((cost.time(middle) - (4.0 + 6.5 + 4.0)).abs() < 0.01);
        assert!(cost.time(1 << 30) > 0.00389 * (1u64 << 30) as f64);
    }

    #[test]
    fn what_comes_with_the_library_can_be_read() {
        for r in Measurements::default().rows() {
            let least = r.cost.time(r.from);
            assert!(least > 0.0 && r.cost.tb >= 0.0, "{r:?}");
        }
    }

    #[test]
    fn candidates_come_quickest_first_and_only_from_the_same_place() {
        let text = "bcast a shm free 2 0 1 0 1 0.1\nbcast a shm free 2 90000 1 0 0.01 0.1\n\
            bcast b shm free 2 0 2 0 0.1 0.1\nbcast c net free 2 0 0.1 0 0 0\n";
        let m = Measurements::parse(text).unwrap();
        let place = Conditions {
            network: false,
            shared: false,
            procs: 2,
        };
        let names = |n| {
            m.candidates(Coll::Bcast, place, n)
                .iter()
                .map(|c| c.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(0), ["a", "b"]);
        assert_eq!(names(10_000), ["b", "a"]);
        // From here on another piece of its model holds.
        assert_eq!(names(90_000), ["a", "b"]);
        assert_eq!(m.places().len(), 2);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let e = Measurements::parse("# x\nbcast a shm free 2 1 0\n").unwrap_err();
        assert_eq!(e.to_string(), "line 2: has 7 words instead of 10");
    }

    #[test]
    fn substitutes_move_the_same_data() {
        assert_eq!(bytes_of((Coll::Scatter, 1, 0), 800, 8), 100);
        assert_eq!(bytes_of((Coll::Bcast, 0, 1), 100, 8), 800);
    }
}
