//! Rank 0's decision on the records of all ranks: the agreed settings, or an error that names the
//! rank that differs.
//!
//! ```text
//! ok KEY HOSTS LOAD FIGURES BOUND
//!                        KEY: the job's key, or -
//!                        HOSTS: map or here (as the launcher told), or the map of hosts by name
//!                        LOAD: runs of ranks on hosts with a CPU for each rank (0) or not (1)
//!                        FIGURES: what choices are priced with (`kw_base::calibration`)
//!                        BOUND: runs of ranks by the package, and the last-level cache, that they are bound to, or -
//! no SENTENCE
//! ```

use std::collections::{BTreeMap, HashMap};

use super::Mismatch;
use super::load::{Cpus, is_oversubscribed};
use super::record::{Bound, FROM_LAUNCHER, List, Runs, THE_LIBRARY, settings};
use crate::pmi::{mapping, ranks, text};
use kw_base::Calibration;
use kw_base::settings::ALL;

/// Rank 0's decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// A new key, if the launcher made none.
    pub key: Option<[u8; 32]>,
    /// Hosts of the ranks as reported by the launcher to all ranks alike.
    pub from_launcher: Option<Vec<u32>>,
    /// Whether hosts are distinguished by name all the same.
    pub named: bool,
    /// According to the launcher, all ranks share the memory of one host: no rank listens for other
    /// hosts.
    pub here: bool,
    /// The calibration values behind the choices.
    pub calibration: Calibration,
}

/// Hosts of the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// As reported by the launcher.
    FromLauncher,
    /// Host number of each rank.
    Named(Vec<u32>),
}

/// The agreed settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The job's key, if rank 0 made it.
    pub key: Option<[u8; 32]>,
    /// Hosts of the ranks.
    pub hosts: Hosts,
    /// Whether nothing remains to be stored: the first rank has published the location of its
    /// memory.
    pub here: bool,
    /// Which ranks are on oversubscribed hosts.
    pub load: Load,
    /// The calibration used by all ranks.
    pub calibration: Calibration,
    /// Bindings of the ranks.
    pub bound: Places,
}

/// Bindings of the ranks on hosts whose ranks are all bound and have a core each; runs of ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(Vec<(Option<Bound>, u32)>);

impl Places {
    /// The binding of each rank, in order.
    pub fn by_rank(&self) -> impl Iterator<Item = Option<Bound>> {
        let runs = self.0.iter();
        runs.flat_map(|(bound, n)| std::iter::repeat_n(*bound, *n as usize))
    }
}

/// Which ranks are on hosts that are oversubscribed (see `load`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load(Vec<(bool, u32)>);

impl Load {
    /// Describes this many ranks, whose hosts are all alike.
    pub fn even(oversubscribed: bool, ranks: u32) -> Load {
        Load(vec![(oversubscribed, ranks)])
    }

    /// Whether the host of this rank has more ranks than CPUs for them.
    pub fn is_oversubscribed(&self, rank: u32) -> bool {
        let mut first = 0u32;
        let run = self.0.iter().find(|(_, n)| {
            first = first.saturating_add(*n);
            rank < first
        });
        run.is_some_and(|(oversubscribed, _)| *oversubscribed)
    }
}

/// The verdict on all ranks' records.
pub(super) fn write(word: &Word, list: &List) -> Result<String, Mismatch> {
    let named;
    let (by_name, hosts) = match &word.from_launcher {
        Some(hosts) if !word.named => (false, hosts),
        from_launcher => {
            named = by_name(list, from_launcher.as_deref());
            (true, &named)
        }
    };
    if hosts.len() as u64 != list.ranks() {
        return Err(Mismatch::Places {
            ranks: list.ranks(),
            places: hosts.len(),
        });
    }
    let cpus = cpus_by_rank(&list.cpus)?;
    if let Some(sentence) = differ(list).or_else(|| differ_on_a_host(hosts, &cpus)) {
        return Ok(format!("no {sentence}"));
    }
    let key = word.key.map_or("-".into(), |k| text::hex(&k));
    let by = match (by_name, word.here) {
        (true, _) => mapping::write(hosts),
        (_, true) => "here".into(),
        (_, false) => "map".into(),
    };
    let (load, figures) = (load(hosts, &cpus), word.calibration.word());
    let bound = bound(hosts, &load, &list.bound).write();
    let load = load.write();
    Ok(format!("ok {key} {by} {load} {figures} {bound}"))
}

/// Bindings of the ranks on hosts that are not oversubscribed, if they are known for all ranks
/// there; with the caches, if those are known, too.
fn bound(hosts: &[u32], load: &Runs, given: &Runs) -> Runs {
    let all: Vec<Option<Bound>> = given.by_rank().map(Bound::parse).collect();
    // By host: whether packages are known, and whether caches are.
    let mut known: HashMap<u32, (bool, bool)> = HashMap::new();
    for ((host, oversubscribed), bound) in hosts.iter().zip(load.by_rank()).zip(&all) {
        let host = known.entry(*host).or_insert((true, true));
        host.0 &= bound.is_some() && oversubscribed == "0";
        host.1 &= bound.is_some_and(|b| b.cache.is_some());
    }
    let mut runs = Runs::default();
    for (host, bound) in hosts.iter().zip(&all) {
        let (package, cache) = known[host];
        let bound = bound.filter(|_| package).map(|b| Bound {
            cache: b.cache.filter(|_| cache),
            ..b
        });
        runs.push(&bound.map_or(FROM_LAUNCHER.into(), Bound::write), 1);
    }
    runs
}

/// The host of each rank by its name, or as the launcher reported it for a rank that gives no name.
fn by_name(list: &List, from_launcher: Option<&[u32]>) -> Vec<u32> {
    let from_launcher = |rank: usize| from_launcher.and_then(|hosts| hosts.get(rank).copied());
    let name = |(rank, item): (usize, _)| match item == FROM_LAUNCHER {
        true => (item, from_launcher(rank)),
        false => (item, None),
    };
    mapping::number(
        &list
            .hosts
            .by_rank()
            .enumerate()
            .map(name)
            .collect::<Vec<_>>(),
    )
}

/// The part of a verdict for one of `size` ranks.
pub(super) fn read(verdict: &str, size: u32) -> Result<Agreed, Mismatch> {
    if let Some(sentence) = verdict.strip_prefix("no ") {
        return Err(Mismatch::Disagreement(sentence.into()));
    }
    parse(verdict, size).ok_or(Mismatch::Verdict)
}

fn parse(verdict: &str, size: u32) -> Option<Agreed> {
    let words: Vec<&str> = verdict.split(' ').collect();
    let &["ok", key, by, load, figures, bound] = words.as_slice() else {
        return None;
    };
    let hosts = match by {
        "map" | "here" => Hosts::FromLauncher,
        map => Hosts::Named(mapping::parse(map, size)?),
    };
    let runs = Runs::parse(load, size)?;
    Some(Agreed {
        key: match key {
            "-" => None,
            digits => Some(text::unhex(digits)?),
        },
        hosts,
        here: by == "here",
        load: Load(runs.iter().map(|(word, n)| (word == "1", n)).collect()),
        calibration: Calibration::from_word(figures)?,
        bound: Places(places(bound, size)?),
    })
}

fn places(bound: &str, size: u32) -> Option<Vec<(Option<Bound>, u32)>> {
    let runs = Runs::parse(bound, size)?;
    let place = |item| match item {
        FROM_LAUNCHER => Some(None),
        place => Bound::parse(place).map(Some),
    };
    runs.iter()
        .map(|(item, n)| Some((place(item)?, n)))
        .collect()
}

/// CPUs that each rank may use: the distinct kinds, and the kind of each rank.
struct Kinds {
    all: Vec<Cpus>,
    of: Vec<usize>,
}

fn cpus_by_rank(column: &Runs) -> Result<Kinds, Mismatch> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    let mut kinds = Kinds {
        all: Vec::new(),
        of: Vec::new(),
    };
    for (item, n) in column.iter() {
        let kind = match known.get(item) {
            Some(kind) => *kind,
            None => {
                let cpus = Cpus::parse(item);
                kinds
                    .all
                    .push(cpus.ok_or_else(|| Mismatch::Processors(item.into()))?);
                known.insert(item, kinds.all.len() - 1);
                kinds.all.len() - 1
            }
        };
        kinds.of.extend(std::iter::repeat_n(kind, n as usize));
    }
    Ok(kinds)
}

/// Ranks on oversubscribed hosts. Hosts with the same ranks are evaluated once.
fn load(hosts: &[u32], cpus: &Kinds) -> Runs {
    let mut there: HashMap<u32, BTreeMap<usize, u32>> = HashMap::new();
    for (host, kind) in hosts.iter().zip(&cpus.of) {
        *there.entry(*host).or_default().entry(*kind).or_default() += 1;
    }
    let mut judged: HashMap<&BTreeMap<usize, u32>, bool> = HashMap::new();
    let mut runs = Runs::default();
    for host in hosts {
        let here = &there[host];
        let oversubscribed = *judged.entry(here).or_insert_with(|| {
            let kinds = here.iter().map(|(kind, n)| (&cpus.all[*kind], *n));
            is_oversubscribed(&kinds.collect::<Vec<_>>())
        });
        runs.push(if oversubscribed { "1" } else { "0" }, 1);
    }
    runs
}

/// A sentence, if a setting differs between ranks.
fn differ(list: &List) -> Option<String> {
    if list.settings.iter().count() < 2 {
        return None;
    }
    let given: Vec<_> = list.settings.by_rank().map(settings).collect();
    let names = given.iter().flatten().map(|(name, _)| name.as_str());
    let names: std::collections::BTreeSet<&str> = names.collect();
    names.into_iter().find_map(|name| {
        let own = |set: &Vec<(String, String)>| {
            let found = set.iter().find(|(n, _)| *n == name);
            found.map_or_else(|| default_of(name), |(_, value)| format!("'{value}'"))
        };
        let values: Vec<String> = given.iter().map(own).collect();
        disagreement(name, "all ranks", &values, |_| true)
    })
}

fn default_of(name: &str) -> String {
    if name == THE_LIBRARY {
        return "an older one".into();
    }
    let row = ALL.iter().find(|k| k.name == name);
    format!("'{}' (the default)", row.map_or("", |k| k.default))
}

/// A sentence, if `KW_CPUS` differs between ranks of some host.
fn differ_on_a_host(hosts: &[u32], cpus: &Kinds) -> Option<String> {
    if cpus.all.iter().all(|c| c.most == cpus.all[0].most) {
        return None;
    }
    let most = |kind: &usize| cpus.all[*kind].most;
    let mut first: HashMap<u32, Option<u32>> = HashMap::new();
    let ranks = hosts.iter().zip(&cpus.of);
    let odd = ranks.map(|(host, kind)| (*host, most(kind)));
    let odd = odd
        .into_iter()
        .find(|(h, m)| first.entry(*h).or_insert(*m) != m);
    let (odd, _) = odd?;
    let value = |kind| most(kind).map_or("'auto'".into(), |n| format!("'{n}'"));
    let values: Vec<String> = cpus.of.iter().map(value).collect();
    disagreement("KW_CPUS", "all ranks of a host", &values, |r| {
        hosts[r] == odd
    })
}

/// The ranks with each value, if the values in `among` differ.
fn disagreement(
    name: &str,
    where_: &str,
    values: &[String],
    among: impl Fn(usize) -> bool,
) -> Option<String> {
    let mut given: Vec<(&str, Vec<u32>)> = Vec::new();
    for (rank, value) in values.iter().enumerate().filter(|(r, _)| among(*r)) {
        match given.iter_mut().find(|(v, _)| v == value) {
            Some((_, who)) => who.push(rank as u32),
            None => given.push((value, vec![rank as u32])),
        }
    }
    if given.len() < 2 {
        return None;
    }
    let shown = given.iter().take(4);
    let mut words: Vec<String> = shown
        .map(|(v, who)| format!("{v} on {}", ranks(who)))
        .collect();
    if given.len() > 4 {
        words.push(format!("something else on {} more", given.len() - 4));
    }
    let remedy = match name {
        THE_LIBRARY => "install the same on all hosts",
        _ => "set it for the whole job",
    };
    Some(format!(
        "{name} must be the same on {where_}, but it is {}; {remedy}",
        words.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::record::Record;
    use super::*;

    fn rank(host: &str, set: &[u32], settings: &[(&str, &str)]) -> Record {
        Record {
            host: Some(host.into()),
            cpus: Cpus {
                set: set.to_vec(),
                ..Cpus::default()
            },
            settings: settings
                .iter()
                .map(|(n, v)| (n.to_string(), v.to_string()))
                .collect(),
            bound: None,
        }
    }

    #[test]
    fn where_ranks_are_bound_to_is_known_of_whole_hosts_with_a_core_for_each() {
        let bound = |package, cache| Some(Bound { package, cache });
        let on = |host: &str, cpu, bound| Record {
            bound,
            ..rank(host, &[cpu], &[])
        };
        let mut records = vec![
            on("a", 0, bound(0, Some(0))),
            on("a", 1, bound(0, Some(1))),
            // One rank of this host shares its cache with unknown ranks.
            on("b", 0, bound(0, Some(0))),
            on("b", 1, bound(1, None)),
            // Two ranks share a core.
            on("c", 0, bound(0, Some(0))),
            on("c", 0, bound(0, Some(0))),
            // One is not bound.
            on("d", 0, bound(0, Some(0))),
            on("d", 1, None),
            on("a", 2, bound(1, Some(2))),
        ];
        let places = |records: &[Record]| -> Vec<_> {
            let agreed = judge(&Word::default(), records).unwrap();
            agreed.bound.by_rank().collect()
        };
        let (a, none) = (|p, c| bound(p, Some(c)), None);
        let known = [a(0, 0), a(0, 1), bound(0, None), bound(1, None)];
        let unknown = [none; 4];
        let all = known.into_iter().chain(unknown).chain([a(1, 2)]);
        assert_eq!(places(&records), all.collect::<Vec<_>>());
        records.iter_mut().for_each(|r| r.bound = None);
        assert_eq!(places(&records), [None; 9]);
    }

    fn judge(word: &Word, records: &[Record]) -> Result<Agreed, String> {
        let mut list = List::default();
        records.iter().for_each(|r| list.join(&List::of(r)));
        let agreed = write(word, &list).and_then(|given| read(&given, records.len() as u32));
        agreed.map_err(|e| e.to_string())
    }

    #[test]
    fn each_host_is_judged_by_its_own_ranks() {
        let sets: [(&str, &[u32]); 6] = [
            ("a", &[0]),
            ("a", &[1]),
            ("b", &[0]),
            ("b", &[0]),
            ("a", &[2, 3]),
            ("c", &[0]),
        ];
        let records: Vec<Record> = sets.iter().map(|(h, s)| rank(h, s, &[])).collect();
        let agreed = judge(&Word::default(), &records).unwrap();
        assert_eq!(agreed.hosts, Hosts::Named(vec![0, 0, 1, 1, 0, 2]));
        let oversubscribed: Vec<bool> = (0..6).map(|r| agreed.load.is_oversubscribed(r)).collect();
        assert_eq!(oversubscribed, [false, false, true, true, false, false]);
        let word = Word {
            key: Some([9; 32]),
            from_launcher: Some(vec![0; 6]),
            named: false,
            here: true,
            calibration: Calibration::measured(|f| 100_000 + f as u64),
        };
        let agreed = judge(&word, &records).unwrap();
        assert_eq!(
            (agreed.key, agreed.hosts),
            (Some([9; 32]), Hosts::FromLauncher)
        );
        assert!(agreed.here && agreed.load == Load::even(true, 6));
        assert_eq!(agreed.calibration, word.calibration);
    }

    #[test]
    fn who_gives_no_name_is_where_the_launcher_says() {
        let mut records = vec![rank("x", &[0], &[]); 4];
        records[1].host = None;
        records[3].host = None;
        let mut word = Word {
            from_launcher: Some(vec![0, 1, 2, 1]),
            ..Word::default()
        };
        assert_eq!(judge(&word, &records).unwrap().hosts, Hosts::FromLauncher);
        word.named = true;
        let hosts = judge(&word, &records).unwrap().hosts;
        assert_eq!(hosts, Hosts::Named(vec![0, 1, 0, 1]));
    }

    #[test]
    fn who_has_another_value_of_a_setting_is_named() {
        let of = |values: &[&[(&str, &str)]]| {
            let records: Vec<Record> = values.iter().map(|v| rank("a", &[0], v)).collect();
            judge(&Word::default(), &records).unwrap_err()
        };
        let check = [("KW_CHECK", "yes")];
        assert_eq!(
            of(&[&[], &check, &[], &check]),
            "KW_CHECK must be the same on all ranks, but it is 'no' (the default) on ranks 0, 2, 'yes' on ranks 1, 3; set it for \
             the whole job"
        );
        let given = of(&[&[("KW_COLL", "a")], &[("KW_COLL", "b")]]);
        assert!(given.contains("'a' on rank 0, 'b' on rank 1"), "{given}");
    }

    #[test]
    fn ranks_with_different_libraries_are_named() {
        let with = |library: &str| rank("a", &[0], &[(THE_LIBRARY, library)]);
        let judged = |records: &[Record]| judge(&Word::default(), records);
        assert!(judged(&[with("Kittiwake 1"), with("Kittiwake 1")]).is_ok());
        assert_eq!(
            judged(&[
                with("Kittiwake 1"),
                with("Kittiwake 2"),
                rank("a", &[0], &[])
            ])
            .unwrap_err(),
            "the MPI library must be the same on all ranks, but it is 'Kittiwake 1' on rank 0, 'Kittiwake 2' on rank 1, \
             an older one on rank 2; install the same on all hosts"
        );
    }

    #[test]
    fn kw_cpus_may_differ_between_hosts_and_not_within_one() {
        let with = |host: &str, most| Record {
            cpus: Cpus {
                most,
                ..Cpus::default()
            },
            ..rank(host, &[], &[])
        };
        let hosts = [with("a", Some(2)), with("b", Some(3)), with("a", Some(2))];
        assert!(judge(&Word::default(), &hosts).is_ok());
        let mut hosts = hosts.to_vec();
        hosts.push(with("b", None));
        assert_eq!(
            judge(&Word::default(), &hosts).unwrap_err(),
            "KW_CPUS must be the same on all ranks of a host, but it is '3' on rank 1, 'auto' on rank 3; set it for the whole job"
        );
    }
}
