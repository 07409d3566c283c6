//! Machines that we do not have: a description, and the schedules of all ranks run on it in virtual
//! time.
//!
//! A description (`crates/sim/machines/NAME.tsv`) says what hosts, sockets and cores there are and
//! what things cost there ([`Prices`]); each row says where its number comes from. [`run`] runs the
//! library's own schedules with it, [`calls`] makes the calls, [`regret`] compares what is chosen
//! with the best of all algorithms.

pub mod calls;
pub mod check;
pub mod forms;
pub mod regret;
pub mod run;
#[cfg(test)]
mod tests;

use kw_coll::cost::{PRICES, Price, Prices};
use std::collections::HashMap;

/// The descriptions that come with the simulator.
const BUILT_IN: &[(&str, &str)] = &[
    ("two-cores", include_str!("../../machines/two-cores.tsv")),
    (
        "two-cores-tcp",
        include_str!("../../machines/two-cores-tcp.tsv"),
    ),
    ("16-cores", include_str!("../../machines/16-cores.tsv")),
    ("64-cores", include_str!("../../machines/64-cores.tsv")),
    ("16-hosts", include_str!("../../machines/16-hosts.tsv")),
    (
        "16-two-socket-hosts",
        include_str!("../../machines/16-two-socket-hosts.tsv"),
    ),
    (
        "64-cores-8-caches",
        include_str!("../../machines/64-cores-8-caches.tsv"),
    ),
    ("100-hosts", include_str!("../../machines/100-hosts.tsv")),
];

/// A machine, or a cluster of machines that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Hosts.
    pub hosts: u32,
    /// Sockets of a host.
    pub sockets: u32,
    /// Cores of a socket.
    pub cores: u32,
    /// Last-level caches of a socket.
    pub caches: u32,
    /// Messages go over the network even within a host.
    pub network: bool,
    /// Costs of operations.
    pub prices: Prices,
    /// Numbers of ranks that are examined, with the ranks of each host.
    pub ranks: Vec<(u32, u32)>,
}

/// Why a description cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A row that does not consist of name, value and source.
    #[error("line {0} does not consist of a name, a value and a source, separated by tabs")]
    Row(usize),
    /// A row that occurs twice.
    #[error("line {0} repeats {1}")]
    Again(usize, String),
    /// A value that is not a number.
    #[error("{0} is not a nonnegative number")]
    Number(String),
    /// A row that is missing.
    #[error("there is no row {0}")]
    Missing(&'static str),
    /// An unknown row.
    #[error("unknown name {0}")]
    Unknown(String),
}

impl Machine {
    /// The machines whose descriptions come with the simulator.
    pub fn all() -> Vec<Machine> {
        let read = |&(name, text): &(&str, &str)| Machine::parse(name, text);
        // A test reads them.
        let all: Result<_, _> = BUILT_IN.iter().map(read).collect();
        all.expect("the descriptions are well-formed")
    }

    /// Reads a description: `name<tab>value<tab>source` a line; the value of a price may be
    /// `start`, the library's built-in value.
    pub fn parse(name: &str, text: &str) -> Result<Machine, Unreadable> {
        let mut rows = Rows::read(text)?;
        let count = |rows: &mut Rows, name| Ok(rows.number(name)? as u32);
        let ranks = rows.word("ranks")?;
        let prices = Prices::each(|p| rows.price(p))?;
        let machine = Machine {
            name: name.to_string(),
            hosts: count(&mut rows, "hosts")?,
            sockets: prices.sockets as u32,
            cores: count(&mut rows, "cores")?,
            caches: (prices.caches as u32).max(1),
            network: rows.number("network-inside")? > 0.0,
            prices,
            ranks: placements(&ranks)?,
        };
        match rows.0.into_keys().next() {
            Some(name) => Err(Unreadable::Unknown(name)),
            None => Ok(machine),
        }
    }

    /// Cores that share a last-level cache.
    pub fn cache_cores(&self) -> u32 {
        self.cores.div_ceil(self.caches)
    }

    /// Cores of a host.
    pub fn host_cores(&self) -> u32 {
        self.sockets * self.cores
    }
}

/// `16x1 64x4`: number of ranks, and ranks per host.
fn placements(text: &str) -> Result<Vec<(u32, u32)>, Unreadable> {
    let one = |word: &str| {
        let (n, per) = word.split_once('x')?;
        Some((n.parse().ok()?, per.parse().ok()?))
    };
    let all = text.split_whitespace().map(one).collect::<Option<Vec<_>>>();
    all.ok_or_else(|| Unreadable::Number(text.to_string()))
}

/// The rows of a description that have not been asked for.
struct Rows(HashMap<String, String>);

impl Rows {
    fn read(text: &str) -> Result<Rows, Unreadable> {
        let mut rows = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let words: Vec<&str> = line.split('\t').collect();
            let &[name, value, source] = words.as_slice() else {
                return Err(Unreadable::Row(at + 1));
            };
            if source.trim().is_empty() {
                return Err(Unreadable::Row(at + 1));
            }
            if rows.insert(name.to_string(), value.to_string()).is_some() {
                return Err(Unreadable::Again(at + 1, name.to_string()));
            }
        }
        Ok(Rows(rows))
    }

    fn word(&mut self, name: &'static str) -> Result<String, Unreadable> {
        self.0.remove(name).ok_or(Unreadable::Missing(name))
    }

    /// A number, or `start`: the library's own built-in value.
    fn price(&mut self, price: &Price) -> Result<f64, Unreadable> {
        match self.0.get(price.name).map(String::as_str) {
            Some("start") => {
                self.0.remove(price.name);
                Ok(price.source.start())
            }
            _ => self.number(price.name),
        }
    }

    fn number(&mut self, name: &'static str) -> Result<f64, Unreadable> {
        let word = self.word(name)?;
        let value = word.parse().ok().filter(|v: &f64| *v >= 0.0);
        value.ok_or(Unreadable::Number(word))
    }
}

/// Descriptions of all prices.
pub fn legend() -> String {
    let row = |p: &Price| format!("{}: {}\n", p.name, p.help);
    PRICES.iter().map(row).collect()
}
