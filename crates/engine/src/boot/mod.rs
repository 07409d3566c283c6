//! Where this rank comes from: who started it, which rank it is, and how it learns the others' addresses.
//!
//! [`connect`] finds the launcher from the environment, [`job`] learns the whole job from it. A rank that [`connect`]
//! refuses must stop with the sentence it was given.

pub mod conformance;
mod detect;
mod launcher;
mod pmi1;
mod pmi2;
mod pmix;
mod rendezvous;
mod singleton;
pub(crate) mod talk;
mod traces;
mod watch;
mod words;

#[cfg(test)]
mod server2;
#[cfg(test)]
mod tests;

use kw_base::Peer;
use kw_base::knobs::{Id, Knobs};
use kw_core::start::{Agree, Hosts};

pub use detect::Env;
pub use launcher::{BootError, Launcher, ProcessSet};

/// The whole job, as a rank sees it at start.
#[derive(Clone)]
pub struct Job {
    /// This rank.
    pub me: Peer,
    /// All ranks.
    pub size: u32,
    /// Host number of every rank.
    pub hosts: Vec<u32>,
    /// The job's key: proof of belonging.
    pub key: [u8; 32],
    /// Processors' worth of time that the ranks of this host may use together. With more ranks than this on the host, a
    /// waiting rank should not spin.
    pub cpus: u32,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("me", &self.me)
            .field("size", &self.size)
            .field("hosts", &self.hosts)
            .field("cpus", &self.cpus)
            .finish_non_exhaustive()
    }
}

impl Job {
    /// Ranks on this rank's host, itself included.
    pub fn local(&self) -> u32 {
        let mine = self.hosts[self.me.idx()];
        self.hosts.iter().filter(|h| **h == mine).count() as u32
    }

    /// Whether this host has more ranks than processors, so that spinning takes time from others.
    pub fn crowded(&self) -> bool {
        self.local() > self.cpus
    }
}

/// Finds the launcher that started this process: one that speaks over a descriptor goes before a rendezvous. An error is a
/// sentence for the user; the process must then stop.
pub fn connect(env: Env) -> Result<Box<dyn Launcher>, BootError> {
    if env("PMI_FD").is_none()
        && let Some(meeting) = rendezvous::asked_for(env, &kw_sys::host::name())?
    {
        return Ok(Box::new(rendezvous::open(meeting)?));
    }
    Ok(match detect::detect(env)? {
        detect::Found::Pmi1(wire) => {
            let mut pmi = pmi1::Pmi1::open(wire)?;
            pmi.end_with_launcher()?;
            Box::new(pmi)
        }
        detect::Found::Pmi2(wire, name) => {
            let mut pmi = pmi2::Pmi2::open(wire, env, name)?;
            pmi.end_with_launcher()?;
            Box::new(pmi)
        }
        detect::Found::Pmix(launched) => Box::new(pmix::Pmix::open(&launched, env("KW_PMIX"))?),
        detect::Found::Alone => Box::new(singleton::Singleton::new()?),
    })
}

/// Learns the whole job. Collective over all ranks (it may fence).
///
/// Under our own mpiexec everything is known at once. Under another launcher rank 0 makes the key and stores it, and says
/// whether hosts are told apart by name, which is so when its `KW_HOST` is set or when the launcher does not map ranks.
pub fn job(launcher: &mut dyn Launcher, knobs: &Knobs) -> Result<Job, BootError> {
    let (hosts, key) = match (launcher.key(), launcher.size()) {
        (Some(key), _) => (told_hosts(launcher)?, key),
        (None, 1) => (vec![0], fresh_key()?),
        (None, _) => agree(launcher, knobs)?,
    };
    Ok(Job {
        me: Peer(launcher.rank()),
        size: launcher.size(),
        hosts,
        key,
        cpus: cpus(knobs),
    })
}

fn told_hosts(launcher: &mut dyn Launcher) -> Result<Vec<u32>, BootError> {
    launcher
        .hosts()
        .ok_or_else(|| BootError(format!("{} does not say who is where", launcher.name())))
}

fn cpus(knobs: &Knobs) -> u32 {
    let told = knobs.number(Id::Cpus).map(|n| n as u32);
    told.unwrap_or_else(|| kw_sys::cpus::usable() as u32).max(1)
}

fn fresh_key() -> Result<[u8; 32], BootError> {
    kw_sys::random::key().map_err(|e| BootError(format!("the kernel gives no random bytes: {e}")))
}

/// Key and hosts under a launcher that knows nothing of Kittiwake.
fn agree(launcher: &mut dyn Launcher, knobs: &Knobs) -> Result<(Vec<u32>, [u8; 32]), BootError> {
    let told = launcher.hosts();
    let own = knobs.text(Id::Host);
    let fresh = match launcher.rank() {
        0 => Some((fresh_key()?, own != "auto")),
        _ => None,
    };
    let name = if own == "auto" {
        machine()
    } else {
        own.to_string()
    };
    let (rank, size) = (launcher.rank(), launcher.size());
    let talk = Agree::new(rank, size, told.is_some(), &name, fresh);
    let agreed = talk::hold(launcher, talk)?;
    match (agreed.hosts, told) {
        (Hosts::Told, Some(hosts)) | (Hosts::Named(hosts), _) => Ok((hosts, agreed.key)),
        (Hosts::Told, None) => told_hosts(launcher).map(|hosts| (hosts, agreed.key)),
    }
}

/// What tells machines apart: the kernel's boot, or failing that the host name.
fn machine() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{}-{}", kw_sys::host::name(), boot.trim())
}
