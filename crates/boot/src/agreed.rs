//! Settings agreed on by the ranks of a job when they met: one value, the same on all ranks, that
//! never changes.
//!
//! All ranks must choose alike (algorithms of collectives, shapes of trees, protocols between
//! them), so code that chooses takes an [`Agreed`] or something made of it, and reads neither this
//! process's affinity nor its settings, its clock or its environment. Each rank reports what it may
//! run on and which settings it was given ([`record`]); rank 0 decides, and all ranks get the same
//! decision (`kw_start`).

use std::collections::{HashMap, HashSet};

use kw_base::calibration::{Figure, Part};
use kw_base::settings::{ALL, Id, Kind, Reach, Settings, parse_bool};
use kw_base::{Calibration, LIBRARY, Peer};
use kw_coll::cost::Prices;
use kw_coll::table::Site;
use kw_coll::{Domain, Levels, Nodes, Table};
use kw_proto::p2p::prices;
use kw_start::{Bound, Cpus, Load, Places, Quota, Record, THE_LIBRARY};

use super::{Allowed, BootError, Misuse};

/// Settings agreed on by the ranks of a job.
#[derive(Clone, Debug)]
pub struct Agreed {
    hosts: Vec<u32>,
    load: Load,
    /// Rows of `KW_COLL`, those of files among them.
    rows: String,
    check: bool,
    site: Site,
    calibration: Calibration,
    /// Binding of each rank; empty when the binding of no rank is known.
    domains: Vec<Option<Domain>>,
}

impl Agreed {
    /// `hosts` and `load` as the job agreed on them, and the settings of any rank: the settings
    /// that are read here are the same on all.
    pub fn new(hosts: Vec<u32>, load: Load, settings: &Settings) -> Result<Agreed, BootError> {
        let shm = Allowed::read(settings)?.shm;
        Ok(Agreed {
            site: site(&hosts, &load, shm),
            hosts,
            load,
            rows: rows(settings)?,
            check: settings.flag(Id::Check),
            calibration: Calibration::START,
            domains: Vec::new(),
        })
    }

    /// These settings with the known binding of ranks, unless a setting (the same on all ranks)
    /// overrides it.
    pub fn bound(self, places: &Places, settings: &Settings) -> Result<Agreed, BootError> {
        let domains = match domains_setting(settings)? {
            DomainsSetting::Auto => places.by_rank().map(|p| p.map(domain)).collect(),
            DomainsSetting::None => Vec::new(),
            DomainsSetting::Domains(of) => in_turns(&self.hosts, &of),
        };
        let known = domains.iter().any(Option::is_some);
        Ok(Agreed {
            domains: if known { domains } else { Vec::new() },
            ..self
        })
    }

    /// The binding of ranks of one host, if it is known for all of them.
    pub fn levels(&self, ranks: impl Iterator<Item = Peer>) -> Option<Levels> {
        let domains: Option<Vec<Domain>> = ranks.map(|rank| self.domain(rank)).collect();
        Some(Levels::of(&domains?))
    }

    /// Nodes of these ranks, with the domains inside each; `None` when all share a machine.
    pub fn nodes(&self, ranks: impl Fn(u32) -> Peer, size: u32) -> Option<Nodes> {
        if (0..size).any(|r| ranks(r).0 >= self.size()) {
            // Nothing is known of the hosts of another job.
            return Nodes::of_hosts(0..size);
        }
        let nodes = Nodes::of_hosts((0..size).map(|r| self.hosts[ranks(r).idx()]))?;
        Some(nodes.with_domains(|r| self.domain(ranks(r))))
    }

    fn domain(&self, rank: Peer) -> Option<Domain> {
        self.domains.get(rank.idx()).copied().flatten()
    }

    /// These settings with the calibration that choices are priced with.
    pub fn priced(self, calibration: Calibration) -> Agreed {
        Agreed {
            calibration,
            ..self
        }
    }

    /// The figures that all ranks price their choices with: those of rank 0's host.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The part that another job needs to know, as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let oversubscribed = |rank| self.is_oversubscribed(Peer(rank)) as u8;
        let mut out = self.size().to_le_bytes().to_vec();
        out.push(self.check as u8);
        out.extend((0..self.size()).map(oversubscribed));
        out
    }

    /// Decodes the output of [`Agreed::encode`], as far as another job knows it: its hosts are
    /// unknown.
    pub fn decode(bytes: &[u8]) -> Option<Agreed> {
        let (size, rest) = bytes.split_first_chunk()?;
        let size = u32::from_le_bytes(*size);
        let (&check, oversubscribed) = rest.split_first()?;
        if size == 0 || oversubscribed.len() != size as usize {
            return None;
        }
        let load = Load::even(oversubscribed.contains(&1), size);
        let agreed = Agreed::new((0..size).collect(), load, &Settings::defaults()).ok()?;
        Some(Agreed {
            check: check != 0,
            ..agreed
        })
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Host number of every rank (ranks with the same number share a machine).
    pub fn hosts(&self) -> &[u32] {
        &self.hosts
    }

    /// Whether the host of this rank has more ranks than CPUs for them: there spinning takes time
    /// from other ranks.
    pub fn is_oversubscribed(&self, rank: Peer) -> bool {
        self.load.is_oversubscribed(rank.0)
    }

    /// Whether ranks compare what they say on every collective call.
    pub fn checks(&self) -> bool {
        self.check
    }

    /// Hosts and domains for collectives.
    pub fn site(&self) -> Site {
        self.site
    }

    /// The table that collectives choose by, with the prices of rank 0's host and of its network.
    pub fn table(&self) -> Table {
        // rows that cannot be read have stopped the start
        let table = Table::with(&self.rows).unwrap_or_default();
        let prices = Prices::of(&self.calibration);
        let eager = prices::eager_between_hosts(&self.calibration, self.size());
        if is_one_host(&self.hosts) {
            return table.priced(prices.on_one_host());
        }
        let trip = self.calibration.get_or_start(Figure::NetTrip) / 1e3;
        let byte = self.calibration.get_or_start(Figure::NetByte);
        tracing::debug!(
            "between hosts collectives are priced with {trip:.3} us, {byte:.4} ns/B ({})",
            match self.calibration.has(Part::Network) {
                true => "measured",
                false => "built-in values",
            }
        );
        table.priced(prices.eager_between_hosts(eager))
    }
}

fn domain(bound: Bound) -> Domain {
    let Bound { package, cache } = bound;
    Domain { package, cache }
}

/// The value of `KW_DOMAINS`.
enum DomainsSetting {
    Auto,
    None,
    Domains(Vec<u32>),
}

fn domains_setting(settings: &Settings) -> Result<DomainsSetting, Misuse> {
    match settings.text(Id::Domains) {
        "auto" => Ok(DomainsSetting::Auto),
        "none" => Ok(DomainsSetting::None),
        text => {
            let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
            let numbers = numbers.map_err(|_| Misuse::Domains(text.into()))?;
            Ok(DomainsSetting::Domains(numbers))
        }
    }
}

/// The ranks of each host take these domains in turns.
fn in_turns(hosts: &[u32], domains: &[u32]) -> Vec<Option<Domain>> {
    let mut there: HashMap<u32, usize> = HashMap::new();
    let next = |host: &u32| {
        let at = there.entry(*host).or_default();
        *at += 1;
        let package = domains[(*at - 1) % domains.len()];
        let cache = Some(0);
        Some(Domain { package, cache })
    };
    hosts.iter().map(next).collect()
}

/// Whether ranks with these host numbers share one machine.
pub(super) fn is_one_host(hosts: &[u32]) -> bool {
    hosts.iter().all(|h| *h == hosts[0])
}

/// `shm`: ranks of a host share memory. Rows for shared cores are those of jobs on one host.
fn site(hosts: &[u32], load: &Load, shm: bool) -> Site {
    let seen: HashSet<u32> = hosts.iter().copied().collect();
    Site {
        shared: is_one_host(hosts) && load.is_oversubscribed(0),
        network: !shm || seen.len() == hosts.len(),
    }
}

fn rows(settings: &Settings) -> Result<String, Misuse> {
    let file = |name: &str| std::fs::read_to_string(name);
    Ok(Table::expand(settings.text(Id::Coll), file)?)
}

/// Whether the rows that the settings put in front of the table can be read, and the domains of
/// ranks.
pub(super) fn check_settings(settings: &Settings) -> Result<(), Misuse> {
    domains_setting(settings)?;
    rows(settings).map(drop)
}

/// This rank's record.
pub(super) fn record(host: Option<String>, settings: &Settings) -> Result<Record, BootError> {
    let alike = ALL.iter().zip(0..).filter(|(k, _)| k.reach == Reach::Alike);
    let mut given = vec![(THE_LIBRARY.to_string(), LIBRARY.to_string())];
    for (setting, at) in alike {
        let (own, default) = (
            plain(setting.kind, settings.at(at)),
            plain(setting.kind, setting.default),
        );
        if own != default {
            given.push((setting.name.to_string(), own));
        }
    }
    if settings.text(Id::Coll).contains('@') {
        // files may differ between hosts
        let of_files = rows(settings)?;
        given.push(("KW_COLL (with what is in its files)".into(), of_files));
    }
    Ok(Record {
        host,
        cpus: cpus(settings),
        settings: given,
        bound: bound(),
    })
}

/// One spelling for each value.
fn plain(kind: Kind, text: &str) -> String {
    match (kind, parse_bool(text)) {
        (Kind::Bool, Some(yes)) => if yes { "yes" } else { "no" }.into(),
        _ => text.trim().to_string(),
    }
}

/// Binding of this rank.
fn bound() -> Option<Bound> {
    let (package, cache) = kw_sys::topology::bound(&kw_sys::cpus::allowed())?;
    Some(Bound {
        package: package as u32,
        cache: cache.map(|c| c as u32),
    })
}

fn cpus(settings: &Settings) -> Cpus {
    let quota = kw_sys::cpus::quota().map(|q| Quota {
        group: q.group,
        cpus: q.amount.ceil().clamp(1.0, 1e6) as u32,
    });
    Cpus {
        set: kw_sys::cpus::allowed()
            .into_iter()
            .map(|c| c as u32)
            .collect(),
        most: settings.number(Id::Cpus).map(|n| n.min(1 << 20) as u32),
        quota,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(hosts: &[u32], oversubscribed: bool, paths: &str) -> Site {
        let mut settings = Settings::defaults();
        settings.set(Id::Paths, paths).unwrap();
        let load = Load::even(oversubscribed, hosts.len() as u32);
        Agreed::new(hosts.to_vec(), load, &settings).unwrap().site()
    }

    #[test]
    fn another_job_hears_the_size_and_whether_calls_are_compared() {
        let mut settings = Settings::defaults();
        for check in ["no", "yes"] {
            settings.set(Id::Check, check).unwrap();
            let load = Load::even(true, 3);
            let here = Agreed::new(vec![0, 0, 1], load, &settings).unwrap();
            let bytes = here.encode();
            let there = Agreed::decode(&bytes).unwrap();
            assert_eq!((there.size(), there.checks()), (3, check == "yes"));
            assert!(there.is_oversubscribed(Peer(1)));
            for end in 0..bytes.len() {
                assert!(Agreed::decode(&bytes[..end]).is_none());
            }
        }
    }

    #[test]
    fn the_site_is_the_same_whoever_asks() {
        let site = |shared, network| Site { shared, network };
        assert_eq!(of(&[0, 0], false, "self,shm"), site(false, false));
        assert_eq!(of(&[0, 0], true, "self,tcp"), site(true, true));
        assert_eq!(of(&[0, 1, 1], true, "self,shm,tcp"), site(false, false));
        assert_eq!(of(&[0, 1, 2], true, "self,shm,tcp"), site(false, true));
    }

    fn levels(hosts: &[u32], domains: &str, ranks: &[u32]) -> Option<Levels> {
        agreed(hosts, domains).levels(ranks.iter().map(|r| Peer(*r)))
    }

    fn agreed(hosts: &[u32], domains: &str) -> Agreed {
        let mut settings = Settings::defaults();
        settings.set(Id::Domains, domains).unwrap();
        let load = Load::even(false, hosts.len() as u32);
        let agreed = Agreed::new(hosts.to_vec(), load, &settings).unwrap();
        agreed.bound(&Places::default(), &settings).unwrap()
    }

    #[test]
    fn ranks_of_a_host_take_the_domains_of_the_setting_in_turns() {
        let hosts = [0, 0, 1, 1, 0, 0, 0];
        let of = |ranks: &[u32]| levels(&hosts, "0.0.7.7", ranks).unwrap();
        let tiers = of(&[0, 1, 4, 5, 6]);
        assert_eq!(tiers.tiers().len(), 1);
        assert_eq!(tiers.tiers()[0].ranks(0), [0, 1, 4]);
        assert_eq!(of(&[2, 3]).tiers(), []);
        assert_eq!(levels(&hosts, "none", &[0, 1]), None);
        let nodes = agreed(&hosts, "0.0.7.7").nodes(|r| Peer(r + 1), 6).unwrap();
        let inside = |node| nodes.levels(node).map(|l| l.tiers().len());
        assert_eq!(
            [inside(0), inside(1)],
            [Some(1), Some(0)],
            "of ranks 1, 4, 5, 6 and 2, 3"
        );
        assert_eq!(
            agreed(&hosts, "none").nodes(Peer, 7).unwrap().levels(0),
            None
        );
        assert_eq!(
            levels(&hosts, "auto", &[0, 1]),
            None,
            "its place is not known"
        );
        let mut settings = Settings::defaults();
        settings.set(Id::Domains, "0,1").unwrap();
        let why = check_settings(&settings).unwrap_err().to_string();
        assert!(why.contains("KW_DOMAINS is '0,1'"), "{why}");
    }

    #[test]
    fn a_rank_says_which_settings_it_was_given() {
        let mut settings = Settings::defaults();
        let library = (THE_LIBRARY.to_string(), LIBRARY.to_string());
        let given = record(None, &settings).unwrap().settings;
        assert_eq!(given, std::slice::from_ref(&library));
        settings.set(Id::Check, "1").unwrap();
        settings.set(Id::Reliable, "on").unwrap();
        settings.set(Id::Spin, "7").unwrap();
        let given = record(None, &settings).unwrap().settings;
        assert_eq!(given, [library, ("KW_CHECK".into(), "yes".into())]);
        settings.set(Id::Coll, "@/no/such/file").unwrap();
        assert!(
            record(None, &settings)
                .unwrap_err()
                .to_string()
                .contains("/no/such/file")
        );
    }
}
