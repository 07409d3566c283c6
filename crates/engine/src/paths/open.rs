//! How a rank gets its paths: which ones the settings allow, and how the ranks tell each other
//! about them.

use super::Paths;
use kw_base::Peer;
use kw_base::settings::{Id, Settings};
use kw_boot::{Allowed, BootError, Job, Launcher, Memory};
use kw_path::shm::{Lead, Local, ShmPath};
use kw_path::{Member, Network, Opening, Ports};
use kw_start::{Joins, Publish};
use std::time::Duration;

/// How long the ranks of a host may take to come together.
const PATIENCE: Duration = Duration::from_secs(60);

/// A rank that knows its job, and has made the memory of its host if it is the first of several
/// there.
#[derive(Debug)]
pub struct WithMemory {
    job: Job,
    allowed: Allowed,
    /// The ranks of this host.
    local: Local,
    lead: Option<Lead>,
    /// All know where the memory of each host is.
    published: bool,
    /// All ranks of the job are here.
    here: bool,
}

/// Learns the whole job. Collective over all ranks (it fences).
pub fn join(launcher: &mut dyn Launcher, settings: &Settings) -> Result<WithMemory, BootError> {
    let mut lead = None;
    let kw_boot::Joined { job, memory } = kw_boot::join(launcher, settings, |me, hosts| {
        lead = make_memory(&local(me, hosts), Allowed::read(settings)?)?;
        Ok(lead.as_ref().map(Lead::address))
    })?;
    let allowed = Allowed::read(settings)?;
    let local = local(job.me, job.hosts());
    let (lead, published, here) = match memory {
        Memory::Published { here } => (lead, true, here),
        Memory::Unpublished => (make_memory(&local, allowed)?, false, false),
    };
    Ok(WithMemory {
        job,
        allowed,
        local,
        lead,
        published,
        here,
    })
}

/// The memory of this host, if this rank is the first of several here.
fn make_memory(local: &Local, allowed: Allowed) -> Result<Option<Lead>, BootError> {
    if !allowed.shm || local.peers.len() < 2 || local.peers[0] != local.me {
        return Ok(None);
    }
    ShmPath::lead(local).map(Some).map_err(no_path)
}

impl WithMemory {
    /// Parameters of the network that this rank needs; `None` if it reaches all ranks without one,
    /// or may use none.
    pub fn network<'a>(
        &self,
        launcher: &dyn Launcher,
        settings: &'a Settings,
    ) -> Option<Opening<'a>> {
        let sharing = self.sharing();
        if self.job.size() as usize <= sharing {
            return None;
        }
        Some(Opening {
            name: self.allowed.network?,
            member: member_of(launcher.job(), &self.job, settings, &self.local),
            settings,
            oversubscribed: self.job.oversubscribed(),
            sharing,
        })
    }

    /// Ranks that share memory with this one, including itself.
    fn sharing(&self) -> usize {
        match self.allowed.shm {
            true => self.local.peers.len(),
            false => 1,
        }
    }
}

/// Parameters of the network that a rank opens to meet other jobs, on any host.
pub(crate) fn opening_for_others<'a>(
    name: &str,
    job: &Job,
    settings: &'a Settings,
) -> Result<Opening<'a>, BootError> {
    let Some(network) = Allowed::read(settings)?.network else {
        return Err(kw_boot::Misuse::NoNetwork.into());
    };
    let local = local(job.me, job.hosts());
    let member = Member {
        single_host: !kw_path::reaches_others(settings.text(Id::Interfaces)),
        ..member_of(name, job, settings, &local)
    };
    Ok(Opening {
        name: network,
        member,
        settings,
        oversubscribed: job.oversubscribed(),
        sharing: local.peers.len(),
    })
}

impl Paths {
    /// Joins the memory of this host, if the settings allow it, and publishes how other ranks reach
    /// this one. Collective over all ranks.
    pub(crate) fn open(
        launcher: &mut dyn Launcher,
        joined: WithMemory,
        net: Option<Box<dyn Network>>,
        settings: &Settings,
    ) -> Result<(Paths, Job), BootError> {
        let joins = joined.sharing() > 1 && joined.lead.is_none();
        let WithMemory {
            job,
            allowed,
            local,
            lead,
            published,
            here,
        } = joined;
        let publish = Publish {
            rank: job.me.0,
            fence: job.size() > 1 && !here,
            listens: listens(net.as_deref()),
            leads: lead.as_ref().filter(|_| !published).map(Lead::address),
            joins: joins.then_some(Joins {
                lead: local.peers[0].0,
                published,
            }),
        };
        let memory = kw_boot::hold(launcher, publish.plan())?;
        let mut shm = match (lead, memory) {
            (Some(lead), _) => Some(lead.serve(job.key(), PATIENCE).map_err(no_path)?),
            (None, Some(at)) => Some(ShmPath::join(&local, job.key(), &at).map_err(no_path)?),
            (None, None) => None,
        };
        if let Some(shm) = &mut shm {
            shm.spread_out(job.oversubscribed());
            shm.share_fences(job.oversubscribed());
        }
        let alone = (allowed.shm && local.peers.len() == 1).then_some(job.me);
        let paths = Paths {
            shm,
            alone,
            ..Paths::over(&job, settings, net)
        };
        Ok((paths, job))
    }
}

/// This rank, and the ranks of its host.
pub(crate) fn local(me: Peer, hosts: &[u32]) -> Local {
    let mine = hosts[me.idx()];
    let here = hosts.iter().zip(0..).filter(|(h, _)| **h == mine);
    Local {
        me,
        peers: here.map(|(_, r)| Peer(r)).collect(),
    }
}

fn member_of(name: &str, job: &Job, settings: &Settings, local: &Local) -> Member {
    let index = local.peers.iter().position(|p| *p == job.me).unwrap_or(0);
    Member {
        me: job.me,
        size: job.size(),
        job: name.to_string(),
        key: *job.key(),
        interfaces: settings.text(Id::Interfaces).to_string(),
        ports: Ports {
            range: settings.ports(Id::Ports),
            ranks: local.peers.len() as u32,
            index: index as u32,
        },
        single_host: local.peers.len() == job.size() as usize,
    }
}

/// The network by which this rank is reached, and its address there.
fn listens(net: Option<&dyn Network>) -> Option<(&'static str, String)> {
    let found = net.map(|net| (net.about().name, net.address()));
    match &found {
        Some((network, address)) => tracing::debug!("listens by {network}: {address}"),
        None => tracing::debug!("listens on no network"),
    }
    found
}

fn no_path(e: impl std::error::Error + Send + Sync + 'static) -> BootError {
    BootError::Path(Box::new(e))
}
