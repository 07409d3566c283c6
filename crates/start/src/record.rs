//! The record that each rank contributes when the job starts, and many ranks' records as a list.
//!
//! A list has four columns, each in runs of equal items over consecutive ranks
//! (`item:ranks,item,...`): hosts, CPUs, settings, bindings. The ranks of a host are mostly
//! consecutive and settings mostly the same everywhere, so lists are short.

use super::Mismatch;
use super::load::Cpus;
use crate::pmi::text;

/// Longest value of a setting that is sent as it is, in bytes; of a longer one, the beginning and
/// the hash are sent.
const LONGEST: usize = 64;
/// Pseudo-setting of a record: version of the rank's library ([`kw_base::LIBRARY`]).
pub const THE_LIBRARY: &str = "the MPI library";
/// The host is the one that the launcher reports; the binding of a rank is unknown.
pub(super) const FROM_LAUNCHER: &str = "-";

/// CPUs of a host to which a rank is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The number of the package that contains all of them.
    pub package: u32,
    /// The last-level cache that all of them share, if there is one.
    pub cache: Option<u32>,
}

impl Bound {
    /// `PACKAGE.CACHE`, or `PACKAGE`.
    pub(super) fn write(self) -> String {
        match self.cache {
            Some(cache) => format!("{}.{cache}", self.package),
            None => self.package.to_string(),
        }
    }

    /// The output of [`Bound::write`].
    pub(super) fn parse(text: &str) -> Option<Bound> {
        let (package, cache) = match text.split_once('.') {
            Some((package, cache)) => (package, Some(cache.parse().ok()?)),
            None => (text, None),
        };
        Some(Bound {
            package: package.parse().ok()?,
            cache,
        })
    }
}

/// The record of one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Identity of its host; `None`: as reported by the launcher.
    pub host: Option<String>,
    /// CPUs that it may use.
    pub cpus: Cpus,
    /// The settings that must be the same on all ranks and are not at their defaults: name and
    /// value.
    pub settings: Vec<(String, String)>,
    /// Its binding; `None`: it may move from package to package.
    pub bound: Option<Bound>,
}

/// Equal items of consecutive ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs(Vec<(String, u32)>);

/// The records of consecutive ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    /// Sixteen digits of the hash of each host's name, or [`FROM_LAUNCHER`].
    pub hosts: Runs,
    /// Items in the format of [`Cpus`].
    pub cpus: Runs,
    /// Items that [`settings`] reads.
    pub settings: Runs,
    /// Items in the format of [`Bound`], or [`FROM_LAUNCHER`].
    pub bound: Runs,
}

impl Runs {
    pub fn push(&mut self, item: &str, ranks: u32) {
        match self.0.last_mut() {
            Some((last, many)) if last == item => *many = many.saturating_add(ranks),
            _ => self.0.push((item.to_string(), ranks)),
        }
    }

    /// Number of ranks.
    fn ranks(&self) -> u64 {
        self.0.iter().map(|(_, n)| u64::from(*n)).sum()
    }

    /// The runs, in the order of ranks.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(item, n)| (item.as_str(), *n))
    }

    /// The item of each rank.
    pub fn by_rank(&self) -> impl Iterator<Item = &str> {
        self.iter()
            .flat_map(|(item, n)| std::iter::repeat_n(item, n as usize))
    }

    pub fn write(&self) -> String {
        let run = |(item, n): (&str, u32)| match n {
            1 => item.to_string(),
            n => format!("{item}:{n}"),
        };
        self.iter().map(run).collect::<Vec<_>>().join(",")
    }

    /// Reads runs of at most `most` ranks in total.
    pub fn parse(text: &str, most: u32) -> Option<Runs> {
        let mut runs = Runs::default();
        for run in text.split(',') {
            let (item, n) = run.rsplit_once(':').unwrap_or((run, "1"));
            runs.push(item, n.parse().ok().filter(|n| (1..=most).contains(n))?);
        }
        (runs.ranks() <= u64::from(most)).then_some(runs)
    }
}

impl List {
    /// The list of one rank.
    pub fn of(record: &Record) -> List {
        let mut list = List::default();
        let digits = |name: &String| text::hex(&blake3::hash(name.as_bytes()).as_bytes()[..8]);
        let host = record.host.as_ref().map_or(FROM_LAUNCHER.into(), digits);
        list.hosts.push(&host, 1);
        list.cpus.push(&record.cpus.to_string(), 1);
        list.settings.push(&write_settings(&record.settings), 1);
        let bound = record.bound.map_or(FROM_LAUNCHER.into(), Bound::write);
        list.bound.push(&bound, 1);
        list
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u64 {
        self.hosts.ranks()
    }

    /// Appends the list of the following ranks.
    pub fn join(&mut self, next: &List) {
        for (all, more) in self.columns().into_iter().zip(next.clone().columns()) {
            more.iter().for_each(|(item, n)| all.push(item, n));
        }
    }

    fn columns(&mut self) -> [&mut Runs; 4] {
        let List {
            hosts,
            cpus,
            settings,
            bound,
        } = self;
        [hosts, cpus, settings, bound]
    }

    pub fn write(&self) -> String {
        let columns = [&self.hosts, &self.cpus, &self.settings, &self.bound];
        columns.map(Runs::write).join(" ")
    }

    /// Reads a list of at most `most` ranks.
    pub fn parse(text: &str, most: u32) -> Result<List, Mismatch> {
        let columns: Option<Vec<Runs>> = text.split(' ').map(|c| Runs::parse(c, most)).collect();
        let list = match <[Runs; 4]>::try_from(columns.unwrap_or_default()) {
            Ok([hosts, cpus, settings, bound]) => List {
                hosts,
                cpus,
                settings,
                bound,
            },
            Err(_) => List::default(),
        };
        let ranks = list.ranks();
        let others = [&list.cpus, &list.settings, &list.bound];
        if ranks == 0 || others.into_iter().any(|c| c.ranks() != ranks) {
            return Err(Mismatch::List(text.chars().take(40).collect()));
        }
        Ok(list)
    }
}

/// Settings as an item of a list.
fn write_settings(settings: &[(String, String)]) -> String {
    let word = |text: &str| {
        let word = text::encode(text.as_bytes());
        let marks = [(',', "%2C"), (':', "%3A"), ('@', "%40")];
        marks.iter().fold(word, |w, (c, code)| w.replace(*c, code))
    };
    let one = |(name, value): &(String, String)| format!("{}@{}", word(name), word(&short(value)));
    settings.iter().map(one).collect::<Vec<_>>().join("@@")
}

fn short(value: &str) -> String {
    if value.len() <= LONGEST {
        return value.to_string();
    }
    let hash = text::hex(&blake3::hash(value.as_bytes()).as_bytes()[..8]);
    let begins: String = value.chars().take(LONGEST / 2).collect();
    format!("{begins}... ({hash})")
}

/// The settings in an item of a list: name and value.
pub(super) fn settings(item: &str) -> Vec<(String, String)> {
    let pairs = item.split("@@").filter_map(|pair| pair.split_once('@'));
    let plain = |word| {
        let bytes = text::decode(word).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    pairs
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_survive_the_way_through_the_launcher() {
        let mut all = List::default();
        for (host, most, rows) in [("a", 4, ""), ("a", 4, ""), ("b", 2, "x@y/@z, 1:2")] {
            let cpus = Cpus {
                most: Some(most),
                ..Cpus::default()
            };
            let mut settings = vec![("KW_CHECK".to_string(), "yes".to_string())];
            settings.push(("KW_COLL".into(), rows.into()));
            settings.push(("the rows of a file".into(), "".into()));
            let host = Some(host.to_string());
            let bound = (most == 2).then_some(Bound {
                package: 1,
                cache: Some(7),
            });
            all.join(&List::of(&Record {
                host,
                cpus,
                settings,
                bound,
            }));
        }
        let read = List::parse(&all.write(), 3).unwrap();
        assert_eq!(read, all);
        assert_eq!(read.hosts.iter().count(), 2, "{read:?}");
        let last = read.settings.by_rank().last().map(settings).unwrap();
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(last[0], pair("KW_CHECK", "yes"));
        assert_eq!(last[1], pair("KW_COLL", "x@y/@z, 1:2"));
        assert_eq!(last[2], pair("the rows of a file", ""));
    }

    #[test]
    fn long_values_that_begin_alike_stay_apart() {
        let item = |end: &str| write_settings(&[("K".into(), "a".repeat(200) + end)]);
        assert_ne!(item("x"), item("y"));
        assert!(item("x").len() < 100);
    }
}
