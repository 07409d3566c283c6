//! The verdict on a calibration: which choices are slower than an alternative, and whether the
//! built-in values choose better. Pure: times in, sentences and a table out.
//!
//! A time is the median over the rounds, in which the contenders take turns. A cell that exceeds the
//! limit counts only if it does so again when it is measured again ([`Verdict::repeat`]).

use super::cells::Cell;
use crate::listing::Listing;

/// Largest regret: time of the choice over that of the best alternative.
pub const LIMIT: f64 = 1.15;
/// Largest factor by which the choices of a calibration may be slower than those of the built-in
/// values: smaller differences are within the noise of a few rounds.
const LOSES: f64 = 1.05;

/// Contender that is timed in a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The choice by the calibration.
    Chosen,
    /// The choice by the built-in values, if it differs.
    Start,
    /// An alternative that was forced.
    Forced,
}

/// One contender of a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Contender {
    /// What is timed.
    pub cell: Cell,
    /// The contender.
    pub by: By,
    /// The protocol or the algorithm.
    pub name: String,
    /// Nanoseconds, one for each round.
    pub rounds: Vec<f64>,
}

/// The median; `None` without times.
fn median(rounds: &[f64]) -> Option<f64> {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mid = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[mid]),
        _ => Some((sorted[mid - 1] + sorted[mid]) / 2.0),
    }
}

/// A cell with its choice beside the best alternative; nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// What was timed.
    pub cell: Cell,
    /// The choice, and its time.
    pub chosen: (String, f64),
    /// The best alternative, and its time.
    pub best: (String, f64),
    /// The choice by the built-in values, if it differs.
    start: Option<f64>,
    /// Whether it exceeded the limit and was measured again.
    again: bool,
}

impl Row {
    fn of(cell: Cell, all: &[Contender]) -> Option<Row> {
        let here = || all.iter().filter(|c| c.cell == cell);
        let time = |c: &Contender| Some((c.name.clone(), median(&c.rounds)?));
        let chosen = here().find(|c| c.by == By::Chosen).and_then(time)?;
        let others = here().filter(|c| c.by != By::Chosen && c.name != chosen.0);
        let best = others.filter_map(time).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let start = here().find(|c| c.by == By::Start && c.name != chosen.0);
        Some(Row {
            cell,
            chosen,
            best,
            start: start.and_then(time).map(|(_, time)| time),
            again: false,
        })
    }

    /// Time of the choice divided by that of the best alternative: below 1 if the choice is the
    /// best.
    pub fn regret(&self) -> f64 {
        self.chosen.1 / self.best.1
    }

    fn exceeds(&self) -> bool {
        self.regret() > LIMIT
    }
}

/// Results of the measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Verdict {
    /// Each cell that was timed with an alternative.
    pub rows: Vec<Row>,
}

impl Verdict {
    /// Evaluates these times.
    pub fn of(all: &[Contender]) -> Verdict {
        let mut cells: Vec<Cell> = Vec::new();
        for contender in all {
            if !cells.contains(&contender.cell) {
                cells.push(contender.cell);
            }
        }
        let rows = cells.into_iter().filter_map(|cell| Row::of(cell, all));
        Verdict {
            rows: rows.collect(),
        }
    }

    /// The cells that must be measured again before they count.
    pub fn repeat(&self) -> Vec<Cell> {
        let loses = self.loses();
        let counts = |row: &&Row| row.exceeds() || loses.is_some() && row.start.is_some();
        self.rows.iter().filter(counts).map(|r| r.cell).collect()
    }

    /// Replaces cells by repeated measurements.
    pub fn repeated(mut self, again: &Verdict) -> Verdict {
        for row in &mut self.rows {
            if let Some(other) = again.rows.iter().find(|r| r.cell == row.cell) {
                *row = Row {
                    again: true,
                    ..other.clone()
                };
            }
        }
        self
    }

    /// The cells whose choice is slower than an alternative by more than the limit.
    pub fn exceeding(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.exceeds())
    }

    /// Slowdown of the choices relative to those by the built-in values, if it is too large: the
    /// geometric mean over the cells in which they differ, and the number of these.
    pub fn loses(&self) -> Option<(f64, usize)> {
        let ratios = self.rows.iter();
        let ratios: Vec<f64> = ratios
            .filter_map(|row| Some((row.chosen.1 / row.start?).ln()))
            .collect();
        let mean = (ratios.iter().sum::<f64>() / ratios.len().max(1) as f64).exp();
        (mean > LOSES).then_some((mean, ratios.len()))
    }

    /// Whether no choice exceeds the limit, and the calibration does not lose to the built-in
    /// values.
    pub fn is_good(&self) -> bool {
        self.exceeding().count() == 0 && self.loses().is_none()
    }

    /// The table, in plain English.
    pub fn listing(&self) -> Listing {
        let row = |row: &Row| {
            let mark = match (row.exceeds(), row.again) {
                (true, _) => " (too slow, measured twice)",
                (false, true) => " (measured twice)",
                _ => "",
            };
            vec![
                row.cell.name().into(),
                bytes(row.cell.bytes),
                row.chosen.0.clone(),
                micros(row.chosen.1),
                row.best.0.clone(),
                micros(row.best.1),
                format!("{:.2}{mark}", row.regret()),
            ]
        };
        Listing {
            head: vec![
                "Operation",
                "Size",
                "Chosen",
                "Time",
                "Best alternative",
                "Its time",
                "Regret",
            ],
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// The conclusions, in sentences.
    pub fn sentences(&self) -> String {
        let exceeding = self.exceeding().count();
        let mut text = match exceeding {
            0 => format!(
                "Verified: no choice takes more than {LIMIT} times as long as an alternative.\n"
            ),
            _ => format!(
                "{exceeding} of {} choices take more than {LIMIT} times as long as an alternative, in two \
                 series of measurements: report this output, or set the alternative (KW_COLL, KW_EAGER_SHM, \
                 KW_SINGLE_COPY).\n",
                self.rows.len()
            ),
        };
        if let Some((factor, cells)) = self.loses() {
            text += &format!(
                "The calibration is discarded, and jobs use the built-in values: where the choices differ \
                 ({cells} rows), its choices take {factor:.2} times as long as those by the built-in values.\n"
            );
        }
        text
    }
}

fn micros(nanos: f64) -> String {
    format!("{:.2} us", nanos / 1e3)
}

fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MB", n >> 20),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} KB", n >> 10),
        n => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::cells::What;

    fn cell(bytes: u64) -> Cell {
        Cell {
            what: What::Message,
            bytes,
        }
    }

    fn timed(bytes: u64, by: By, name: &str, rounds: &[f64]) -> Contender {
        Contender {
            cell: cell(bytes),
            by,
            name: name.into(),
            rounds: rounds.to_vec(),
        }
    }

    /// A cell whose choice takes `chosen` and an alternative `other`; with `start`, the built-in
    /// values choose the alternative.
    fn pair(bytes: u64, chosen: f64, other: f64, start: bool) -> Vec<Contender> {
        let mut all = vec![
            timed(bytes, By::Chosen, "read", &[chosen]),
            timed(bytes, By::Forced, "eager", &[other]),
        ];
        let (name, time) = if start {
            ("eager", other)
        } else {
            ("read", chosen)
        };
        all.push(timed(bytes, By::Start, name, &[time]));
        all
    }

    #[test]
    fn the_regret_is_that_of_the_medians_against_the_best_alternative() {
        let all = [
            timed(8, By::Chosen, "read", &[300.0, 120.0, 118.0]),
            timed(8, By::Forced, "eager", &[100.0, 101.0, 7.0]),
            timed(8, By::Forced, "rendezvous", &[150.0, 150.0, 150.0]),
            // the same protocol as the choice is not an alternative
            timed(8, By::Forced, "read", &[1.0, 1.0, 1.0]),
        ];
        let verdict = Verdict::of(&all);
        let row = &verdict.rows[0];
        assert_eq!((row.best.0.as_str(), row.best.1), ("eager", 100.0));
        assert!((row.regret() - 1.2).abs() < 1e-9);
        assert_eq!(verdict.repeat(), [cell(8)]);
    }

    #[test]
    fn a_cell_counts_only_if_it_exceeds_twice() {
        let first =
            Verdict::of(&[pair(8, 200.0, 100.0, false), pair(16, 100.0, 100.0, false)].concat());
        assert_eq!(first.repeat(), [cell(8)]);
        let calm = Verdict::of(&pair(8, 101.0, 100.0, false));
        let kept = first.clone().repeated(&calm);
        assert_eq!(kept.exceeding().count(), 0);
        assert!(
            kept.sentences().starts_with("Verified"),
            "{}",
            kept.sentences()
        );
        let slow = Verdict::of(&pair(8, 130.0, 100.0, false));
        let counted = first.repeated(&slow);
        assert_eq!(counted.exceeding().count(), 1);
        assert!(counted.sentences().starts_with("1 of 2 choices take"));
        assert!(
            counted.loses().is_none(),
            "the built-in values choose the same"
        );
    }

    #[test]
    fn a_calibration_that_loses_to_the_built_in_values_is_discarded() {
        // Slower in three sizes and faster in one; another one is the same for both.
        let all = [
            pair(8, 130.0, 100.0, true),
            pair(16, 130.0, 100.0, true),
            pair(32, 130.0, 100.0, true),
            pair(64, 90.0, 100.0, true),
            pair(128, 500.0, 100.0, false),
        ];
        let verdict = Verdict::of(&all.concat());
        let (factor, cells) = verdict.loses().expect("it loses");
        assert!((factor - (1.3f64.powi(3) * 0.9).powf(0.25)).abs() < 1e-9);
        assert_eq!(cells, 4);
        assert!(verdict.sentences().contains("is discarded"));
        assert_eq!(
            verdict.repeat().len(),
            5,
            "all that differ are measured again"
        );
        let won = Verdict::of(&[pair(8, 90.0, 100.0, true), pair(16, 104.0, 100.0, true)].concat());
        assert!(won.loses().is_none() && !won.sentences().contains("discarded"));
    }

    #[test]
    fn what_was_not_timed_is_not_judged() {
        assert_eq!(Verdict::of(&[]).rows, []);
        let alone = [timed(8, By::Chosen, "read", &[1.0])];
        assert_eq!(Verdict::of(&alone).rows, []);
        let empty = [
            timed(8, By::Chosen, "read", &[]),
            timed(8, By::Forced, "eager", &[1.0]),
        ];
        assert_eq!(Verdict::of(&empty).rows, []);
        assert!(Verdict::of(&[]).loses().is_none());
    }

    #[test]
    fn the_table_says_what_was_chosen_and_what_is_better() {
        let text = Verdict::of(&pair(4096, 1300.0, 1000.0, true))
            .listing()
            .text();
        for word in [
            "message",
            "4 KB",
            "read",
            "1.30 us",
            "eager",
            "1.00 us",
            "1.30 (too slow",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
