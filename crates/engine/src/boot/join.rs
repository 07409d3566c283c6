//! How a rank learns its job from its launcher.

use super::{BootError, Job, Launcher, talk};
use crate::paths;
use kw_base::Peer;
use kw_base::knobs::{Id, Knobs};
use kw_path::shm::{Lead, ShmPath};
use kw_start::{Agree, Hosts, Word};

/// A rank that knows its job.
#[derive(Debug)]
pub struct Joined {
    /// The job.
    pub job: Job,
    pub(crate) memory: Memory,
}

/// What all know of the memory that the ranks of a host share.
#[derive(Debug)]
pub(crate) enum Memory {
    /// Nothing yet.
    Unsaid,
    /// The first rank of each host has said where it is.
    Said {
        /// It, if that is this rank.
        lead: Option<Lead>,
        /// That is all there is to say: nobody fences again.
        here: bool,
    },
}

/// Learns the whole job. Collective over all ranks (it may fence).
///
/// Under our own mpiexec everything is known at once. Under another launcher rank 0 makes the key and stores it, and says
/// whether hosts are told apart by name, which is so when its `KW_HOST` is set or when the launcher does not map ranks.
pub fn join(launcher: &mut dyn Launcher, knobs: &Knobs) -> Result<Joined, BootError> {
    let (hosts, key) = match (launcher.key(), launcher.size()) {
        (Some(key), _) => (told_hosts(launcher)?, key),
        (None, 1) => (vec![0], fresh_key()?),
        (None, _) => return agree(launcher, knobs),
    };
    Ok(Joined {
        job: job(launcher, knobs, hosts, key),
        memory: Memory::Unsaid,
    })
}

fn job(launcher: &dyn Launcher, knobs: &Knobs, hosts: Vec<u32>, key: [u8; 32]) -> Job {
    let cpus = knobs.number(Id::Cpus).map(|n| n as u32);
    Job {
        me: Peer(launcher.rank()),
        size: launcher.size(),
        hosts,
        key,
        cpus: cpus.unwrap_or_else(|| kw_sys::cpus::usable() as u32).max(1),
    }
}

fn told_hosts(launcher: &mut dyn Launcher) -> Result<Vec<u32>, BootError> {
    launcher
        .hosts()
        .ok_or_else(|| BootError(format!("{} does not say who is where", launcher.name())))
}

fn fresh_key() -> Result<[u8; 32], BootError> {
    kw_sys::random::key().map_err(|e| BootError(format!("the kernel gives no random bytes: {e}")))
}

/// Under a launcher that knows nothing of Kittiwake.
fn agree(launcher: &mut dyn Launcher, knobs: &Knobs) -> Result<Joined, BootError> {
    let me = (launcher.rank(), launcher.size());
    let told = launcher.hosts();
    let word = match me.0 {
        0 => Some(word(told.as_deref(), knobs)?),
        _ => None,
    };
    let lead = match &told {
        Some(hosts) => lead(me.0, hosts, knobs)?,
        None => None,
    };
    let name = match knobs.text(Id::Host) {
        "auto" => machine(),
        own => own.to_string(),
    };
    let at = lead.as_ref().map(Lead::address);
    let agreed = talk::hold(launcher, Agree::new(me, told.is_some(), &name, word, at))?;
    let (hosts, memory) = match (agreed.hosts, told) {
        (Hosts::Named(hosts), _) => (hosts, Memory::Unsaid),
        (Hosts::Told, told) => {
            let here = agreed.here;
            (told.unwrap_or_default(), Memory::Said { lead, here })
        }
    };
    Ok(Joined {
        job: job(launcher, knobs, hosts, agreed.key),
        memory,
    })
}

/// What rank 0 decides.
fn word(told: Option<&[u32]>, knobs: &Knobs) -> Result<Word, BootError> {
    let one = told.is_some_and(|hosts| hosts.iter().all(|h| *h == hosts[0]));
    Ok(Word {
        key: fresh_key()?,
        named: knobs.text(Id::Host) != "auto",
        here: one && paths::shares_memory(knobs)?,
    })
}

/// The memory of this host, if this rank is the first of several here.
fn lead(me: u32, hosts: &[u32], knobs: &Knobs) -> Result<Option<Lead>, BootError> {
    let local = paths::local(Peer(me), hosts);
    if !paths::shares_memory(knobs)? || local.peers.len() < 2 || local.peers[0] != local.me {
        return Ok(None);
    }
    let lead = ShmPath::lead(&local).map_err(|e| BootError(e.to_string()))?;
    Ok(Some(lead))
}

/// What tells machines apart: the kernel's boot, or failing that the host name.
pub(super) fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}-{}", kw_sys::host::name(), boot.trim())
}
