//! How a rank comes to its paths: which ones the knobs allow, and what the ranks tell each other
//! about them.

use super::Paths;
use kw_base::Peer;
use kw_base::knobs::{Id, Knobs};
use kw_boot::{Allowed, BootError, Job, Launcher, Memory, Wire};
use kw_path::shm::{Lead, Local, ShmPath};
use kw_path::tcp::{self, TcpPath, Tuning};
use kw_path::udp::{self, UdpPath};
use kw_path::{Member, Path, Ports};
use kw_start::{Joins, Publish};
use std::time::Duration;

/// How long the ranks of a host may take to come together.
const PATIENCE: Duration = Duration::from_secs(60);

/// Open files that connections leave to the program and to the rest of the library.
const SPARE_FILES: usize = 16;

/// A rank that knows its job, and has made the memory of its host if it is the first of several
/// there.
#[derive(Debug)]
pub struct Joined {
    job: kw_boot::Joined,
    lead: Option<Lead>,
}

/// Learns the whole job. Collective over all ranks (it fences).
pub fn join(launcher: &mut dyn Launcher, knobs: &Knobs) -> Result<Joined, BootError> {
    let mut lead = None;
    let job = kw_boot::join(launcher, knobs, |me, hosts| {
        lead = make_memory(me, hosts, knobs)?;
        Ok(lead.as_ref().map(Lead::address))
    })?;
    Ok(Joined { job, lead })
}

/// The memory of this host, if this rank is the first of several here.
fn make_memory(me: Peer, hosts: &[u32], knobs: &Knobs) -> Result<Option<Lead>, BootError> {
    let local = local(me, hosts);
    if !Allowed::read(knobs)?.shm || local.peers.len() < 2 || local.peers[0] != local.me {
        return Ok(None);
    }
    ShmPath::lead(&local).map(Some).map_err(no_path)
}

impl Paths {
    /// Opens what the knobs allow, and lets the other ranks know how to reach this one. Collective
    /// over all ranks.
    pub(crate) fn open(
        launcher: &mut dyn Launcher,
        joined: Joined,
        knobs: &Knobs,
    ) -> Result<(Paths, Job), BootError> {
        let Joined { job, lead } = joined;
        let kw_boot::Joined { job, memory } = job;
        let allowed = Allowed::read(knobs)?;
        let local = local(job.me, job.hosts());
        let leads = allowed.shm && local.peers.len() > 1 && local.peers[0] == job.me;
        let (lead, said, here) = match memory {
            Memory::Said { here } => (lead, true, here),
            Memory::Unsaid if leads => {
                let lead = ShmPath::lead(&local).map_err(no_path)?;
                (Some(lead), false, false)
            }
            Memory::Unsaid => (None, false, false),
        };
        let by_shm = if allowed.shm { local.peers.len() } else { 1 };
        let wire = allowed.wire.filter(|_| job.size() as usize > by_shm);
        let member = || member_of(launcher.job(), &job, knobs, &local);
        let (mut tcp, mut udp) = (None, None);
        match wire {
            Some(Wire::Tcp) => tcp = Some(listen(&job, knobs, member(), by_shm)?),
            Some(Wire::Udp) => udp = Some(open_udp(member())?),
            None => {}
        }
        let listens = listens(tcp.as_ref(), udp.as_ref());
        let joins = by_shm > 1 && lead.is_none();
        let publish = Publish {
            rank: job.me.0,
            fence: job.size() > 1 && !here,
            listens,
            leads: lead.as_ref().filter(|_| !said).map(Lead::address),
            joins: joins.then_some(Joins {
                lead: local.peers[0].0,
                said,
            }),
        };
        let memory = kw_boot::hold(launcher, publish.plan())?;
        let mut shm = match (lead, memory) {
            (Some(lead), _) => Some(lead.serve(&job.key, PATIENCE).map_err(no_path)?),
            (None, Some(at)) => Some(ShmPath::join(&local, &job.key, &at).map_err(no_path)?),
            (None, None) => None,
        };
        if let Some(shm) = &mut shm {
            shm.spread_out(job.crowded());
        }
        let alone = (allowed.shm && local.peers.len() == 1).then_some(job.me);
        let paths = Paths {
            shm,
            tcp,
            udp,
            alone,
            ..Paths::new(&job, knobs, None)
        };
        Ok((paths, job))
    }
}

/// The ranks of this rank's host.
/// This rank, and the ranks of its host.
pub(crate) fn local(me: Peer, hosts: &[u32]) -> Local {
    let mine = hosts[me.idx()];
    let here = hosts.iter().zip(0..).filter(|(h, _)| **h == mine);
    Local {
        me,
        peers: here.map(|(_, r)| Peer(r)).collect(),
    }
}

fn member_of(name: &str, job: &Job, knobs: &Knobs, local: &Local) -> Member {
    let index = local.peers.iter().position(|p| *p == job.me).unwrap_or(0);
    Member {
        me: job.me,
        size: job.size(),
        job: name.to_string(),
        key: job.key,
        interfaces: knobs.text(Id::Interfaces).to_string(),
        ports: Ports {
            range: knobs.ports(Id::Ports),
            ranks: local.peers.len() as u32,
            index: index as u32,
        },
        single_host: local.peers.len() == job.size() as usize,
    }
}

/// `sharing`: ranks that share memory with this one, whose processes it may watch.
fn listen(job: &Job, knobs: &Knobs, member: Member, sharing: usize) -> Result<TcpPath, BootError> {
    let config = tcp::Config {
        member,
        reliable: knobs.flag(Id::Reliable),
        stripe: knobs.flag(Id::Stripe),
        host: match knobs.text(Id::Host) {
            "auto" => kw_sys::host::name(),
            name => name.to_string(),
        },
        most: kw_sys::process::spare_files().saturating_sub(SPARE_FILES + sharing),
    };
    let tuning = match job.crowded() {
        true => Tuning::for_size(job.size()).on_shared_cores(),
        false => Tuning::for_size(job.size()),
    };
    TcpPath::tuned(config, tuning).map_err(no_path)
}

/// By which network this rank is reached, and where.
fn listens(tcp: Option<&TcpPath>, udp: Option<&UdpPath>) -> Option<(&'static str, String)> {
    let tcp = tcp.map(|tcp| ("tcp", tcp.address()));
    let found = tcp.or_else(|| udp.map(|udp| ("udp", udp.address())));
    match &found {
        Some((wire, address)) => tracing::debug!("listens by {wire}: {address}"),
        None => tracing::debug!("listens on no network"),
    }
    found
}

fn open_udp(member: Member) -> Result<UdpPath, BootError> {
    let clock = kw_sys::clock::now;
    UdpPath::new(udp::Config { member, clock }).map_err(no_path)
}

fn no_path(e: impl std::error::Error + Send + Sync + 'static) -> BootError {
    BootError::Path(Box::new(e))
}
