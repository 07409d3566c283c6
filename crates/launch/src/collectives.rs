//! Choices of a job started here for its collectives, with their prices: `kwinfo --choices`. The
//! same functions choose in a rank.

use crate::listing::Listing;
use crate::wanted::Job;
use kw_base::Calibration;
use kw_base::calibration::Figure;
use kw_base::settings::{Id, Settings};
use kw_coll::cost::{PRICES, Price, Prices, candidates, cheapest};
use kw_coll::table::COLLS;
use kw_coll::{CallView, Coll, ELEMENT, Table};

/// Message sizes that are shown, bytes.
const SIZES: [u64; 4] = [8, 4 << 10, 128 << 10, 2 << 20];
/// The table if one job is shown.
const JOB_SIZES: [u64; 8] = [
    8,
    256,
    2 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    16 << 20,
];
/// Jobs that are shown: number of ranks, each with a core of its own, and ranks per host.
const JOBS: [(u32, u32); 3] = [(2, 2), (16, 16), (64, 8)];

/// The choices for collectives by these figures and the rows of `KW_COLL`, or why the rows cannot
/// be read.
pub fn collectives(c: &Calibration, settings: &Settings) -> Result<Listing, String> {
    let rows = chosen(c, settings)?.iter().map(Chosen::row).collect();
    Ok(Listing {
        head: vec![
            "Collective",
            "Ranks",
            "Hosts",
            "Bytes",
            "Chosen",
            "Priced",
            "Next best",
        ],
        rows,
    })
}

/// The choices of one job, with their reasons.
pub fn of_job(job: &Job, c: &Calibration, settings: &Settings) -> Result<Listing, String> {
    let row = |one: &Chosen| {
        vec![
            one.name.into(),
            one.bytes.to_string(),
            one.algorithm.clone(),
            micros(one.price),
            one.why.sentence().into(),
            one.others.clone(),
        ]
    };
    Ok(Listing {
        head: vec!["Collective", "Bytes", "Chosen", "Priced", "By", "Next best"],
        rows: chosen_in(&[job], &JOB_SIZES, c, settings)?
            .iter()
            .map(row)
            .collect(),
    })
}

/// The table for programs (`calibrate::choices_for_programs`).
pub fn choice_rows(c: &Calibration, settings: &Settings) -> Result<Vec<Vec<String>>, String> {
    Ok(chosen(c, settings)?.iter().map(Chosen::words).collect())
}

/// The choices of one job, with their reasons.
pub fn job_rows(
    job: &Job,
    c: &Calibration,
    settings: &Settings,
) -> Result<Vec<Vec<String>>, String> {
    let row = |one: &Chosen| {
        let mut words = one.words();
        words.push(one.why.sentence().into());
        words
    };
    let all = chosen_in(&[job], &JOB_SIZES, c, settings)?;
    Ok(all.iter().map(row).collect())
}

/// The choice for every collective, job and size that is shown if no job is named.
fn chosen(c: &Calibration, settings: &Settings) -> Result<Vec<Chosen>, String> {
    let jobs = JOBS.map(|(ranks, per_host)| Job::plain(ranks, per_host));
    chosen_in(&jobs.each_ref(), &SIZES, c, settings)
}

fn chosen_in(
    jobs: &[&Job],
    sizes: &[u64],
    c: &Calibration,
    settings: &Settings,
) -> Result<Vec<Chosen>, String> {
    let read = |file: &str| std::fs::read_to_string(file);
    let in_setting = |e| format!("KW_COLL: {e}");
    let rows = Table::expand(settings.text(Id::Coll), read).map_err(in_setting)?;
    let tables = |prices| -> Result<Tables, String> {
        Ok(Tables {
            all: Table::with(&rows).map_err(in_setting)?.priced(prices),
            own: Table::only(&rows).map_err(in_setting)?.priced(prices),
            prices,
        })
    };
    let by_job = |job: &&Job| tables(job.prices(c));
    let tables = jobs.iter().map(by_job).collect::<Result<Vec<_>, _>>()?;
    let mut chosen = Vec::new();
    for (coll, _) in COLLS.iter().filter(|c| !is_one_way(c.0)) {
        for (job, tables) in jobs.iter().zip(&tables) {
            let shown = if *coll == Coll::Barrier {
                &sizes[..1]
            } else {
                sizes
            };
            chosen.extend(shown.iter().map(|&bytes| choose(*coll, job, bytes, tables)));
        }
    }
    Ok(chosen)
}

/// Basis of a job's choices.
struct Tables {
    /// All rows.
    all: Table,
    /// The rows of `KW_COLL`.
    own: Table,
    prices: Prices,
}

/// The prices of collectives by these figures, for this job or for one on several hosts, and the
/// source of each.
pub fn prices(c: &Calibration, job: Option<&Job>) -> Listing {
    let own = Prices::of(c);
    let used = job.map_or(own, |j| j.prices(c));
    let row = |((price, value), own): ((&Price, f64), f64)| {
        let from = match made_of(price, c) {
            _ if value != own && job.is_some_and(|j| j.hosts > 1) => {
                "largest eager message between hosts".into()
            }
            _ if value != own => "all ranks on one host".into(),
            Some(f) => {
                let origin = match c.has_measured(f) {
                    true => "measured:",
                    false => "built-in value of",
                };
                let factor = match price.source.times() {
                    1.0 => String::new(),
                    times => format!(" x {times}"),
                };
                format!("{origin} {}{factor}", f.row().name)
            }
            None => "built-in value".into(),
        };
        vec![
            price.name.into(),
            format!("{value:.4}"),
            from,
            price.help.into(),
        ]
    };
    Listing {
        head: vec!["Price", "ns", "From", "Meaning"],
        rows: PRICES
            .iter()
            .zip(used.values())
            .zip(own.values())
            .map(row)
            .collect(),
    }
}

/// The table for programs (`calibrate::choices_for_programs`).
pub fn price_rows(c: &Calibration, job: Option<&Job>) -> Vec<Vec<String>> {
    let row = |(price, value): (&Price, f64)| {
        let figure = made_of(price, c);
        let measured = figure.is_some_and(|f| c.has_measured(f));
        vec![
            "price".into(),
            price.name.into(),
            value.to_string(),
            crate::calibrate::origin(measured).into(),
            figure.map_or("-", |f| f.row().name).into(),
            price.source.start().to_string(),
        ]
    };
    let used = job.map_or(Prices::of(c), |j| j.prices(c));
    PRICES.iter().zip(used.values()).map(row).collect()
}

/// The figure behind a price.
fn made_of(price: &Price, c: &Calibration) -> Option<Figure> {
    let figures = price.source.figures();
    let first = figures.iter().find(|f| c.get(**f).is_some());
    first.or(figures.first()).copied()
}

/// Whether there is only one possibility.
fn is_one_way(coll: Coll) -> bool {
    matches!(coll, Coll::NeighborAllgather | Coll::NeighborAlltoall)
}

/// The choice for one call, and its alternatives.
struct Chosen {
    name: &'static str,
    ranks: u32,
    hosts: u32,
    bytes: u64,
    algorithm: String,
    /// Nanoseconds.
    price: f64,
    why: Why,
    others: String,
}

/// The reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    Setting,
    Price,
    Row,
}

impl Why {
    fn sentence(self) -> &'static str {
        match self {
            Why::Setting => "KW_COLL",
            Why::Price => "lowest price",
            Why::Row => "row of the table",
        }
    }
}

impl Chosen {
    /// For people.
    fn row(&self) -> Vec<String> {
        vec![
            self.name.into(),
            self.ranks.to_string(),
            self.hosts.to_string(),
            self.bytes.to_string(),
            self.algorithm.clone(),
            micros(self.price),
            self.others.clone(),
        ]
    }

    /// For programs.
    fn words(&self) -> Vec<String> {
        vec![
            "collective".into(),
            self.name.into(),
            self.ranks.to_string(),
            self.hosts.to_string(),
            self.bytes.to_string(),
            self.algorithm.clone(),
            format!("{:.4}", self.price / 1e3),
        ]
    }
}

fn choose(coll: Coll, job: &Job, bytes: u64, tables: &Tables) -> Chosen {
    let Tables { all, own, prices } = tables;
    let site = job.site;
    let bytes = match coll {
        Coll::Barrier => 0,
        Coll::ReduceScatter => bytes.max(ELEMENT * u64::from(job.ranks)),
        _ => bytes,
    };
    let call = job.call_view(coll, bytes, all);
    let (algorithm, param) = all.choose(coll, bytes, site, &call);
    let mut rivals: Vec<_> = candidates(coll, &call, prices, site).collect();
    rivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let price = kw_coll::cost::price(algorithm, &CallView { param, ..call }, prices, site);
    let least = cheapest(coll, &call, prices, site);
    let why = match own.find(coll, bytes, site, &call) {
        Some(_) => Why::Setting,
        None if least.is_some_and(|(a, p)| (a.name, p) == (algorithm.name, param)) => Why::Price,
        None => Why::Row,
    };
    let mut seen = vec![algorithm.name];
    let mut others = Vec::new();
    for (ns, algorithm, param) in rivals {
        if !seen.contains(&algorithm.name) && others.len() < 2 {
            seen.push(algorithm.name);
            others.push(format!("{}/{param} {}", algorithm.name, micros(ns)));
        }
    }
    Chosen {
        name: coll.name(),
        ranks: job.ranks,
        hosts: job.hosts,
        bytes,
        algorithm: format!("{}/{param}", algorithm.name),
        price,
        why,
        others: others.join(", "),
    }
}

fn micros(ns: f64) -> String {
    format!("{:.2} us", ns / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collective_with_a_choice_is_shown() {
        let list = collectives(&Calibration::START, &Settings::defaults()).unwrap();
        assert_eq!(list.rows.len(), 3 + 10 * JOBS.len() * SIZES.len());
        assert!(list.rows.iter().all(|r| r.len() == list.head.len()));
    }

    #[test]
    fn a_price_says_which_figure_makes_it_and_whether_that_was_measured() {
        let from = |c: &Calibration, price: &str| {
            let rows = prices(c, None).rows;
            let row = rows.into_iter().find(|r| r[0] == price);
            row.map(|r| r[2].clone()).unwrap_or_default()
        };
        let start = Calibration::START;
        assert_eq!(from(&start, "step"), "built-in value");
        assert_eq!(from(&start, "line"), "built-in value of line-package");
        let known = start.with_network(100_000_000, 0);
        assert_eq!(from(&known, "latency"), "measured: net-round-trip x 0.5");
        assert_eq!(from(&known, "link-byte"), "built-in value of net-rate");
        assert_eq!(from(&known, "line"), "built-in value of line-package");
    }

    #[test]
    fn rows_of_the_user_go_before() {
        let mut settings = Settings::defaults();
        settings
            .set(Id::Coll, "bcast - - any any any linear")
            .unwrap();
        let list = collectives(&Calibration::START, &settings).unwrap();
        let chosen = |r: &Vec<String>| r[0] != "bcast" || r[4] == "linear/4";
        assert!(list.rows.iter().all(chosen));
        let job = Job::plain(16, 4);
        let list = of_job(&job, &Calibration::START, &settings).unwrap();
        let by = |r: &Vec<String>| (r[0] == "bcast") == (r[4] == "KW_COLL");
        assert!(list.rows.iter().all(by), "{list:?}");
        let words = job_rows(&job, &Calibration::START, &settings).unwrap();
        assert!(words.iter().all(|w| w.len() == 8 && w[2..4] == ["16", "4"]));
    }
}
