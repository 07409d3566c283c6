//! Which algorithm the table chooses when, what that costs by the fitted models, and where another
//! choice would be faster.

use crate::model::{Conditions, Measurements, SUBSTITUTES, bytes_of};
use kw_coll::algorithms::ALL;
use kw_coll::table::{COLLS, Site};
use kw_coll::{CallView, Coll, ELEMENT, ShmSizes, Table};

/// Sizes that are examined, in bytes as the table counts them.
const SIZES: [u64; 7] = [8, 256, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20];
/// A substitute must be faster by this factor to be reported.
const MARGIN: f64 = 1.10;

/// One choice of the table, and the prediction of the models.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The collective.
    pub coll: &'static str,
    /// Place.
    pub place: Conditions,
    /// Bytes.
    pub bytes: u64,
    /// The chosen algorithm, with its parameter when that is not the usual one.
    pub chosen: String,
    /// Its predicted microseconds, if it was measured there.
    pub predicted: Option<f64>,
    /// Relative error of that prediction.
    pub error: f64,
}

/// A case in which something else would be faster by more than a tenth.
#[derive(Clone, Debug, PartialEq)]
pub struct Better {
    /// The chosen algorithm.
    pub choice: Choice,
    /// A faster alternative: an algorithm, or two collectives in sequence.
    pub instead: String,
    /// Its predicted microseconds.
    pub predicted: f64,
}

/// The table's choice for an ordinary call: equal blocks, a commutative operation, one node.
fn choose(table: &Table, coll: Coll, place: Conditions, bytes: u64) -> String {
    let shm_region = ShmSizes {
        short: 4096,
        long: 256 << 10,
        unit: if coll.combines() { ELEMENT } else { 1 },
    };
    let call = CallView {
        shm_region: (!place.network).then_some(shm_region),
        ..CallView::ordinary(coll, 0, place.procs, bytes)
    };
    let site = Site {
        shared: place.shared,
        network: place.network,
    };
    let (algorithm, param) = table.choose(coll, bytes, site, &call);
    match param {
        4 => algorithm.name.to_string(),
        _ => format!("{}/{param}", algorithm.name),
    }
}

fn choice(
    table: &Table,
    models: &Measurements,
    (coll, called): (Coll, &'static str),
    place: Conditions,
    bytes: u64,
) -> Choice {
    let chosen = choose(table, coll, place, bytes);
    let time = models.time(coll, &chosen, place, bytes);
    Choice {
        coll: called,
        place,
        bytes,
        predicted: time.map(|t| t.0),
        error: time.map_or(0.0, |t| t.1),
        chosen,
    }
}

/// The table's choice for every collective, measured place and size.
pub fn choices(table: &Table, models: &Measurements) -> Vec<Choice> {
    let mut all = Vec::new();
    for &coll in COLLS {
        for place in models.places() {
            let sizes: &[u64] = if coll.0 == Coll::Barrier {
                &[0]
            } else {
                &SIZES
            };
            all.extend(
                sizes
                    .iter()
                    .map(|&bytes| choice(table, models, coll, place, bytes)),
            );
        }
    }
    all
}

/// How many choices the models can judge, and those that they cannot, because the chosen algorithm
/// was not measured there: collective, path and number. Collectives with one algorithm are not
/// counted.
pub fn judged(table: &Table, models: &Measurements) -> (usize, Vec<(String, usize)>) {
    let rivals = |coll: &str| ALL.iter().filter(|a| a.coll.name() == coll).count() > 1;
    let (mut judged, mut left): (usize, Vec<(String, usize)>) = (0, Vec::new());
    for choice in choices(table, models).iter().filter(|c| rivals(c.coll)) {
        let path = if choice.place.network { "net" } else { "shm" };
        let what = format!("{} {path}", choice.coll);
        match (choice.predicted, left.iter_mut().find(|n| n.0 == what)) {
            (Some(_), _) => judged += 1,
            (None, Some(n)) => n.1 += 1,
            (None, None) => left.push((what, 1)),
        }
    }
    (judged, left)
}

/// How much longer than the best measured algorithm the chosen ones take, in the same place.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// The collective.
    pub coll: &'static str,
    /// Over a network path, and more ranks than cores.
    pub place: (bool, bool),
    /// Choices whose algorithm was measured.
    pub judged: usize,
    /// Geometric mean.
    pub mean: f64,
    /// The worst, its ranks and bytes.
    pub worst: (f64, u32, u64),
}

/// The regret of every collective in every kind of place, as far as choices were measured.
pub fn regret(table: &Table, models: &Measurements) -> Vec<Regret> {
    let mut all: Vec<Regret> = Vec::new();
    for c in choices(table, models) {
        let Some(&(coll, _)) = COLLS.iter().find(|k| k.1 == c.coll) else {
            continue;
        };
        let best = models.candidates(coll, c.place, c.bytes);
        let (Some(own), Some(best)) = (c.predicted, best.first()) else {
            continue;
        };
        let (place, factor) = ((c.place.network, c.place.shared), own / best.1);
        let fresh = Regret {
            coll: c.coll,
            place,
            judged: 0,
            mean: 0.0,
            worst: (0.0, 0, 0),
        };
        let at = all
            .iter()
            .position(|r| (r.coll, r.place) == (c.coll, place));
        let at = at.unwrap_or_else(|| {
            all.push(fresh);
            all.len() - 1
        });
        let sum = &mut all[at];
        (sum.judged, sum.mean) = (sum.judged + 1, sum.mean + factor.ln());
        if factor > sum.worst.0 {
            sum.worst = (factor, c.place.procs, c.bytes);
        }
    }
    for sum in &mut all {
        sum.mean = (sum.mean / sum.judged as f64).exp();
    }
    all
}

/// Where the models say that another algorithm, or the two collectives of a substitution, would be
/// faster by more than a tenth, even if both predictions are as wrong as their fits were on
/// average.
pub fn inconsistencies(table: &Table, models: &Measurements) -> Vec<Better> {
    let mut found = Vec::new();
    for choice in choices(table, models) {
        let Some(now) = choice.predicted else {
            continue;
        };
        let others = rivals(table, models, &choice);
        let surely = |r: &(String, f64, f64)| r.1 * (1.0 + r.2);
        let best = others
            .into_iter()
            .min_by(|a, b| surely(a).total_cmp(&surely(b)));
        if let Some(rival) = best
            && surely(&rival) * MARGIN < now * (1.0 - choice.error)
        {
            let (instead, predicted, _) = rival;
            found.push(Better {
                choice,
                instead,
                predicted,
            });
        }
    }
    found
}

/// Name, predicted microseconds and their relative error of everything that has the same effect.
fn rivals(table: &Table, models: &Measurements, c: &Choice) -> Vec<(String, f64, f64)> {
    let Some(&(coll, _)) = COLLS.iter().find(|k| k.1 == c.coll) else {
        return Vec::new();
    };
    let direct = models.candidates(coll, c.place, c.bytes);
    let mut all: Vec<_> = direct.iter().map(|d| (d.0.to_string(), d.1, d.2)).collect();
    for (_, parts) in SUBSTITUTES.iter().filter(|s| s.0 == coll) {
        let time = |part: &(Coll, u32, u32)| {
            let bytes = bytes_of(*part, c.bytes, c.place.procs);
            let chosen = choose(table, part.0, c.place, bytes);
            models.time(part.0, &chosen, c.place, bytes)
        };
        if let (Some(a), Some(b)) = (time(&parts[0]), time(&parts[1])) {
            let both = format!("{} + {}", parts[0].0.name(), parts[1].0.name());
            all.push((both, a.0 + b.0, a.1.max(b.1)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: &str = "bcast linear shm free 2 0 10 0 0 0\nbcast binomial shm free 2 0 5 0 0 0\n\
        scatter linear shm free 2 0 1 0 0 0\nscatter binomial shm free 2 0 1 0 0 0\nallgather ring shm free 2 0 2 0 0 0\n";

    fn table(bcast: &str) -> Table {
        let rows = format!(
            "bcast - - any any any {bcast}; scatter - - any any any linear; allgather - - any any any ring"
        );
        Table::with(&rows).unwrap()
    }

    #[test]
    fn a_slower_choice_is_reported_with_the_best_rival() {
        let models = Measurements::parse(MODELS).unwrap();
        let found = inconsistencies(&table("linear"), &models);
        assert_eq!(found.len(), SIZES.len());
        assert!(
            found
                .iter()
                .all(|b| b.instead == "scatter + allgather" && b.predicted == 3.0)
        );
        assert!(found.iter().all(|b| b.choice.chosen == "linear"));
    }

    #[test]
    fn what_was_not_measured_is_counted_and_not_judged() {
        let models = Measurements::parse(MODELS).unwrap();
        let (judged, left) = judged(&table("linear"), &models);
        assert_eq!(judged, 3 * SIZES.len(), "bcast, scatter, allgather");
        assert!(left.contains(&("reduce shm".to_string(), SIZES.len())));
        assert!(left.contains(&("barrier shm".to_string(), 1)));
        let named = |coll: &str| left.iter().any(|n| n.0.starts_with(coll));
        assert!(!named("bcast") && !named("neighbor"));
    }

    #[test]
    fn a_choice_within_a_tenth_of_the_best_is_left_alone() {
        let models = MODELS.replace("binomial shm free 2 0 5", "binomial shm free 2 0 3.2");
        let models = Measurements::parse(&models).unwrap();
        assert_eq!(inconsistencies(&table("binomial"), &models), []);
    }
}
