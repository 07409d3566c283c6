//! What a job that starts here would choose for its collectives, with the price of each choice:
//! `kwinfo --choices`. The same functions choose in a rank.

use crate::listing::Listing;
use kw_base::Calibration;
use kw_base::calibration::Figure;
use kw_base::knobs::{Id, Knobs};
use kw_coll::cost::{PRICES, Price, Prices, candidates};
use kw_coll::table::{COLLS, Site};
use kw_coll::{Ask, Board, Chooser, Coll, ELEMENT, Nodes, Table};

/// Bytes that are shown.
const SIZES: [u64; 4] = [8, 4 << 10, 128 << 10, 2 << 20];
/// Jobs that are shown: their ranks, a core each, and those of each host.
const JOBS: [(u32, u32); 3] = [(2, 2), (16, 16), (64, 8)];

/// The choices for collectives, by these figures and the rows of `KW_COLL`; why those cannot be
/// read.
pub fn collectives(c: &Calibration, knobs: &Knobs) -> Result<Listing, String> {
    let rows = chosen(c, knobs)?.iter().map(Chosen::row).collect();
    Ok(Listing {
        head: vec![
            "Collective",
            "Ranks",
            "Hosts",
            "Bytes",
            "Chosen",
            "Priced",
            "Cheapest others",
        ],
        rows,
    })
}

/// The same for programs (`figures::choices_for_programs`).
pub fn choice_rows(c: &Calibration, knobs: &Knobs) -> Result<Vec<Vec<String>>, String> {
    let row = |chosen: &Chosen| {
        let words = [
            "collective".into(),
            chosen.name.into(),
            chosen.ranks.to_string(),
            chosen.hosts.to_string(),
            chosen.bytes.to_string(),
            chosen.algorithm.clone(),
            format!("{:.4}", chosen.price / 1e3),
        ];
        words.to_vec()
    };
    Ok(chosen(c, knobs)?.iter().map(row).collect())
}

/// What would be chosen for every collective, job and size that is shown.
fn chosen(c: &Calibration, knobs: &Knobs) -> Result<Vec<Chosen>, String> {
    let read = |file: &str| std::fs::read_to_string(file);
    let table = Table::with_files(knobs.text(Id::Coll), read);
    let prices = Prices::of(c);
    let table = table.map_err(|e| format!("KW_COLL: {e}"))?.priced(prices);
    let mut rows = Vec::new();
    for &(coll, name) in COLLS.iter().filter(|c| !is_one_way(c.0)) {
        for job in JOBS {
            let shown = if coll == Coll::Barrier {
                1
            } else {
                SIZES.len()
            };
            let of = |&bytes: &u64| choose((coll, name), job, bytes, (&table, &prices));
            rows.extend(SIZES[..shown].iter().map(of));
        }
    }
    Ok(rows)
}

/// The prices of collectives by these figures, and where each comes from.
pub fn prices(c: &Calibration) -> Listing {
    let row = |(price, value): (&Price, f64)| {
        let from = match made_of(price, c) {
            Some(f) if c.has_measured(f) => format!("measured: {}", f.row().name),
            Some(f) => format!("starting value of {}", f.row().name),
            None => "starting value".into(),
        };
        vec![
            price.name.into(),
            format!("{value:.4}"),
            from,
            price.help.into(),
        ]
    };
    Listing {
        head: vec!["Price", "ns", "From", "What it is"],
        rows: PRICES.iter().zip(Prices::of(c).values()).map(row).collect(),
    }
}

/// The same for programs (`figures::choices_for_programs`).
pub fn price_rows(c: &Calibration) -> Vec<Vec<String>> {
    let row = |(price, value): (&Price, f64)| {
        let figure = made_of(price, c);
        let measured = figure.is_some_and(|f| c.has_measured(f));
        vec![
            "price".into(),
            price.name.into(),
            value.to_string(),
            crate::figures::origin(measured).into(),
            figure.map_or("-", |f| f.row().name).into(),
            price.source.start().to_string(),
        ]
    };
    PRICES.iter().zip(Prices::of(c).values()).map(row).collect()
}

/// The figure that makes a price.
fn made_of(price: &Price, c: &Calibration) -> Option<Figure> {
    let figures = price.source.figures();
    let first = figures.iter().find(|f| c.get(**f).is_some());
    first.or(figures.first()).copied()
}

/// Whether there is nothing to choose.
fn is_one_way(coll: Coll) -> bool {
    matches!(coll, Coll::NeighborAllgather | Coll::NeighborAlltoall)
}

/// What would be chosen for one call, and what else there is.
struct Chosen {
    name: &'static str,
    ranks: u32,
    hosts: u32,
    bytes: u64,
    algorithm: String,
    /// Nanoseconds.
    price: f64,
    others: String,
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
}

fn choose(
    (coll, name): (Coll, &'static str),
    (ranks, per_host): (u32, u32),
    bytes: u64,
    (table, prices): (&Table, &Prices),
) -> Chosen {
    let nodes = Nodes::of_hosts((0..ranks).map(|r| r / per_host));
    let board = Board {
        short: 4096,
        long: 256 << 10,
        unit: if coll.combines() { ELEMENT } else { 1 },
    };
    let site = Site::default();
    let bytes = match coll {
        Coll::Barrier => 0,
        Coll::ReduceScatter => bytes.max(ELEMENT * u64::from(ranks)),
        _ => bytes,
    };
    let ask = Ask {
        nodes: nodes.as_ref(),
        board: Some(board),
        chooser: Some(Chooser { table, site }),
        ..Ask::ordinary(coll, 0, ranks, bytes)
    };
    let (chosen, param) = table.choose(coll, bytes, site, &ask);
    let mut all: Vec<_> = candidates(coll, &ask, prices, site).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let own = kw_coll::cost::price(chosen, &Ask { param, ..ask }, prices, site);
    let mut seen = vec![chosen.name];
    let mut others = Vec::new();
    for (ns, algorithm, param) in all {
        if !seen.contains(&algorithm.name) && others.len() < 2 {
            seen.push(algorithm.name);
            others.push(format!("{}/{param} {}", algorithm.name, micros(ns)));
        }
    }
    Chosen {
        name,
        ranks,
        hosts: ranks / per_host,
        bytes,
        algorithm: format!("{}/{param}", chosen.name),
        price: own,
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
        let list = collectives(&Calibration::START, &Knobs::defaults()).unwrap();
        assert_eq!(list.rows.len(), 3 + 10 * JOBS.len() * SIZES.len());
        assert!(list.rows.iter().all(|r| r.len() == list.head.len()));
    }

    #[test]
    fn a_price_says_which_figure_makes_it_and_whether_that_was_measured() {
        let from = |c: &Calibration, price: &str| {
            let rows = prices(c).rows;
            let row = rows.into_iter().find(|r| r[0] == price);
            row.map(|r| r[2].clone()).unwrap_or_default()
        };
        let start = Calibration::START;
        assert_eq!(from(&start, "step"), "starting value");
        assert_eq!(from(&start, "line"), "starting value of line-package");
        let known = start.with_network(100_000_000, 0);
        assert_eq!(from(&known, "latency"), "measured: net-round-trip");
        assert_eq!(from(&known, "link-byte"), "starting value of net-rate");
        assert_eq!(from(&known, "line"), "starting value of line-package");
    }

    #[test]
    fn rows_of_the_user_go_before() {
        let mut knobs = Knobs::defaults();
        knobs.set(Id::Coll, "bcast - - any any any linear").unwrap();
        let list = collectives(&Calibration::START, &knobs).unwrap();
        let chosen = |r: &Vec<String>| r[0] != "bcast" || r[4] == "linear/4";
        assert!(list.rows.iter().all(chosen));
    }
}
