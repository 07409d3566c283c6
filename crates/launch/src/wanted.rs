//! The job that `kwinfo --choices` describes. With `-n RANKS`: hosts that are all like this one (or
//! have the given number of cores), with ranks dealt out as `mpiexec` does, and the settings on
//! which such ranks would agree. With `--job PID`: the settings on which the ranks of a running job
//! have agreed.

use crate::args::Binding;
use crate::bind;
use kw_base::Calibration;
use kw_base::settings::{Id, Settings};
use kw_coll::cost::Prices;
use kw_coll::table::Site;
use kw_coll::{CallView, Chooser, Coll, Domain, ELEMENT, Levels, Nodes, ShmSizes, Table};
use kw_proto::p2p::prices;
use kw_start::{Agreed, Bound, Hosts};
use std::collections::HashMap;

/// The requested job.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Ranks of the job.
    pub ranks: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// Cores of each host; by default those of this one.
    pub cores: Option<u32>,
    /// The domains of each host's ranks, as `KW_DOMAINS` names them.
    pub domains: Option<String>,
}

/// A job: hosts of its ranks, and their cores.
#[derive(Clone, Debug)]
pub struct Job {
    /// Ranks.
    pub ranks: u32,
    /// Hosts.
    pub hosts: u32,
    /// Most ranks on a host.
    pub per_host: u32,
    /// Fewest ranks on a host.
    least: u32,
    /// Hosts and domains for collectives.
    pub site: Site,
    /// Whether some host has more ranks than cores.
    pub oversubscribed: bool,
    nodes: Option<Nodes>,
    levels: Option<Levels>,
    /// Source of the domains.
    domains: Option<String>,
}

impl Job {
    /// A job of ranks with a core each, this many on every host; their binding is unknown.
    pub fn plain(ranks: u32, per_host: u32) -> Job {
        Job {
            ranks,
            hosts: ranks / per_host,
            per_host,
            least: per_host,
            site: Site::default(),
            oversubscribed: false,
            nodes: Nodes::of_hosts((0..ranks).map(|r| r / per_host)),
            levels: None,
            domains: None,
        }
    }

    /// The requested job in this environment, or what is wrong with it.
    pub fn of(wanted: &Wanted, settings: &Settings) -> Result<Job, String> {
        let (ranks, hosts) = (wanted.ranks, wanted.hosts);
        if hosts == 0 || ranks < hosts {
            return Err(format!(
                "{ranks} ranks do not fill {hosts} hosts: use at least one rank per host"
            ));
        }
        let per_host = ranks.div_ceil(hosts);
        let usable = wanted
            .cores
            .map_or_else(|| usable(settings), |c| c as usize);
        let oversubscribed = per_host as usize > usable;
        let (domains, domains_text) = domains(wanted, settings, per_host, oversubscribed)?;
        let hosts: Vec<u32> = (0..ranks).map(host_of(ranks, hosts)).collect();
        let domains = in_turns(&hosts, &domains);
        Ok(Job::placed(
            &hosts,
            &domains,
            domains_text,
            oversubscribed,
            settings,
        ))
    }

    /// A running job: the settings on which its ranks have agreed, and the host of each from the
    /// launcher.
    pub fn met(hosts_of: &[u32], agreed: &Agreed, settings: &Settings) -> Result<Job, String> {
        let hosts = match &agreed.hosts {
            Hosts::FromLauncher => hosts_of,
            Hosts::Named(hosts) => hosts,
        };
        let bound = |b: Bound| Domain {
            package: b.package,
            cache: b.cache,
        };
        let (domains, domains_text) = match settings.text(Id::Domains) {
            "auto" => {
                let all: Vec<_> = agreed.bound.by_rank().map(|b| b.map(bound)).collect();
                let known = all.iter().any(Option::is_some);
                (all, known.then(|| "those that they are bound to".into()))
            }
            "none" => (Vec::new(), None),
            text => (in_turns(hosts, &parse_domains(text)?), Some(text.into())),
        };
        let oversubscribed = (0..hosts.len() as u32).any(|r| agreed.load.is_oversubscribed(r));
        Ok(Job::placed(
            hosts,
            &domains,
            domains_text,
            oversubscribed,
            settings,
        ))
    }

    /// A job whose ranks are on these hosts, in these domains if they are known.
    fn placed(
        hosts: &[u32],
        domains: &[Option<Domain>],
        domains_text: Option<String>,
        oversubscribed: bool,
        settings: &Settings,
    ) -> Job {
        let mut there: HashMap<u32, u32> = HashMap::new();
        hosts
            .iter()
            .for_each(|h| *there.entry(*h).or_default() += 1);
        let ranks = hosts.len() as u32;
        let domain = |r: u32| domains.get(r as usize).copied().flatten();
        let nodes = Nodes::of_hosts(hosts.iter().copied()).map(|n| n.with_domains(domain));
        let all: Option<Vec<Domain>> = (0..ranks).map(domain).collect();
        let one_host = there.len() == 1;
        let spread = there.len() == hosts.len() && ranks > 1;
        Job {
            ranks,
            hosts: there.len() as u32,
            per_host: there.values().copied().max().unwrap_or(0),
            least: there.values().copied().min().unwrap_or(0),
            site: Site {
                shared: one_host && oversubscribed,
                network: !has_path(settings, "shm") || spread,
            },
            oversubscribed,
            nodes,
            levels: all.filter(|_| one_host).map(|all| Levels::of(&all)),
            domains: domains_text,
        }
    }

    /// A sentence about the job.
    pub fn sentence(&self) -> String {
        let count = |n: u32, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let most = match self.per_host - self.least {
            0 => self.per_host.to_string(),
            1 => format!("{} or {}", self.least, self.per_host),
            _ => format!("{} to {}", self.least, self.per_host),
        };
        let cores = match self.oversubscribed {
            true => "ranks share cores",
            false => "a core for each rank",
        };
        let domains = match &self.domains {
            Some(domains_text) => format!("domains of a host's ranks: {domains_text}"),
            None => "it is unknown which ranks of a host are close to each other".into(),
        };
        format!(
            "{} on {} ({most} on each), {cores}; {domains}.",
            count(self.ranks, "rank"),
            count(self.hosts, "host")
        )
    }

    /// Prices of its collectives, from this calibration.
    pub fn prices(&self, c: &Calibration) -> Prices {
        match self.hosts {
            1 => Prices::of(c).on_one_host(),
            _ => Prices::of(c).eager_between_hosts(prices::eager_between_hosts(c, self.ranks)),
        }
    }

    /// A call of a collective in it, as its rank 0 makes it; `bytes` as counted in the table.
    pub fn call_view<'a>(&'a self, coll: Coll, bytes: u64, table: &'a Table) -> CallView<'a> {
        let unit = if coll.combines() { ELEMENT } else { 1 };
        let shm_region = (self.per_host > 1 && !self.site.network)
            .then(|| ShmSizes::usual(self.per_host.into(), unit));
        CallView {
            nodes: self.nodes.as_ref(),
            levels: self.levels.as_ref(),
            shm_region,
            chooser: Some(Chooser {
                table,
                site: self.site,
            }),
            ..CallView::ordinary(coll, 0, self.ranks, bytes)
        }
    }
}

/// The host of a rank if `ranks` are dealt out to `hosts` in blocks: the first ones get one more.
fn host_of(ranks: u32, hosts: u32) -> impl Fn(u32) -> u32 {
    let (each, more) = (ranks / hosts, ranks % hosts);
    move |r| match r < more * (each + 1) {
        true => r / (each + 1),
        false => more + (r - more * (each + 1)) / each,
    }
}

/// Whether the settings allow this path.
pub fn has_path(settings: &Settings, path: &str) -> bool {
    let paths = settings.text(Id::Paths);
    paths.split(',').any(|p| p.trim() == path)
}

/// Processors that ranks may use here at the same time.
fn usable(settings: &Settings) -> usize {
    let most = settings.number(Id::Cpus).map_or(usize::MAX, |n| n as usize);
    kw_sys::cpus::usable().min(most)
}

/// The domain of each rank of a host, and its source; none if unknown.
fn domains(
    wanted: &Wanted,
    settings: &Settings,
    per_host: u32,
    oversubscribed: bool,
) -> Result<(Vec<Domain>, Option<String>), String> {
    let domains_text = wanted.domains.as_deref();
    match domains_text.unwrap_or(settings.text(Id::Domains)) {
        "none" => Ok((Vec::new(), None)),
        "auto" if oversubscribed || wanted.cores.is_some() => Ok((Vec::new(), None)),
        "auto" => {
            let here = bound_here(per_host as usize);
            let domains_text = here
                .is_some()
                .then(|| "those that mpiexec binds to here".into());
            Ok((here.unwrap_or_default(), domains_text))
        }
        text => Ok((parse_domains(text)?, Some(text.into()))),
    }
}

/// Domains in the format of `KW_DOMAINS`.
fn parse_domains(text: &str) -> Result<Vec<Domain>, String> {
    let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
    let numbers = numbers.map_err(|_| {
        format!("the domains are '{text}': give numbers with dots between, such as 0.0.1.1")
    })?;
    let domain = |package| Domain {
        package,
        cache: Some(0),
    };
    Ok(numbers.into_iter().map(domain).collect())
}

/// Assigns these domains to the ranks of each host in turn.
fn in_turns(hosts: &[u32], domains: &[Domain]) -> Vec<Option<Domain>> {
    let mut there: HashMap<u32, usize> = HashMap::new();
    let next = |host: &u32| {
        let at = there.entry(*host).or_default();
        *at += 1;
        domains.get((*at - 1).checked_rem(domains.len())?).copied()
    };
    hosts.iter().map(next).collect()
}

/// Where mpiexec would bind this many ranks here; `None` if it would not, or if unknown.
fn bound_here(n: usize) -> Option<Vec<Domain>> {
    let usable = kw_sys::cpus::usable();
    let cores = kw_sys::topology::cores;
    let shares = bind::bind(
        Binding::Auto,
        n,
        usable,
        (cores, &kw_sys::topology::MachinePart::of),
        Vec::new,
    )
    .ok()?;
    let domain = |cpus: &Vec<usize>| {
        let (package, cache) = kw_sys::topology::bound(cpus)?;
        Some(Domain {
            package: package as u32,
            cache: cache.map(|c| c as u32),
        })
    };
    shares.iter().map(domain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ranks: u32, hosts: u32, cores: u32, domains: &str) -> Result<Job, String> {
        let wanted = Wanted {
            ranks,
            hosts,
            cores: Some(cores),
            domains: Some(domains.into()),
        };
        Job::of(&wanted, &Settings::defaults())
    }

    #[test]
    fn ranks_are_dealt_out_to_hosts_in_a_row() {
        let of = |ranks, hosts| (0..ranks).map(host_of(ranks, hosts)).collect::<Vec<_>>();
        assert_eq!(of(7, 3), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(of(4, 4), [0, 1, 2, 3]);
        let uneven = job(7, 3, 4, "0.1").unwrap();
        assert!(
            uneven
                .sentence()
                .contains("7 ranks on 3 hosts (2 or 3 on each)")
        );
        assert!(job(2, 3, 4, "none").is_err() && job(2, 0, 4, "none").is_err());
    }

    #[test]
    fn a_job_knows_what_its_ranks_would_agree_on() {
        let site = |j: &Job| (j.site.shared, j.site.network, j.oversubscribed);
        let oversubscribed = job(8, 1, 4, "none").unwrap();
        assert_eq!(site(&oversubscribed), (true, false, true));
        let spread = job(4, 4, 1, "0.0.1.1").unwrap();
        assert_eq!(site(&spread), (false, true, false));
        let both = job(16, 4, 4, "0.0.1.1").unwrap();
        let table = Table::default();
        let call = both.call_view(Coll::Bcast, 8, &table);
        assert_eq!(call.priced_levels().map(|l| l.tiers().len()), Some(1));
        assert!(call.levels.is_none() && call.shm_region.is_some());
        let one = job(4, 1, 4, "0.0.1.1").unwrap();
        assert!(one.call_view(Coll::Bcast, 8, &table).levels.is_some());
        assert!(job(4, 1, 4, "0,1").unwrap_err().contains("'0,1'"));
    }
}
