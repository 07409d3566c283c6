//! How a rank learns its job from its launcher.

use super::agreed::{Agreed, is_one_host, record};
use super::{Allowed, BootError, Job, Launcher, LauncherFault, Worlds, talk};
use kw_base::Peer;
use kw_base::settings::{Id, Settings};
use kw_start::{Agree, Hosts, Word};

/// A rank that knows its job.
#[derive(Debug)]
pub struct Joined {
    /// The job.
    pub job: Job,
    /// Location of the shared memory of a host's ranks, as known to all.
    pub memory: Memory,
}

/// Location of the shared memory of a host's ranks, as known to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Nothing yet.
    Unpublished,
    /// The first rank of each host has published the location.
    Published {
        /// Nothing more to publish: no rank fences again.
        here: bool,
    },
}

/// Learns the whole job. Collective over all ranks (it fences).
///
/// If the launcher made no key, rank 0 makes it. Hosts are told apart by name when rank 0's
/// `KW_HOST` is set or when the launcher does not map ranks; our own launchers always do.
///
/// If the launcher reports the hosts, `lead` is called with this rank and the hosts of all ranks.
/// It creates the memory of this host, if this rank is the first of several here, and returns where
/// the others find it.
pub fn join(
    launcher: &mut dyn Launcher,
    settings: &Settings,
    lead: impl FnOnce(Peer, &[u32]) -> Result<Option<String>, BootError>,
) -> Result<Joined, BootError> {
    let me = (launcher.rank(), launcher.size());
    let (key, from_launcher) = (launcher.key(), launcher.hosts());
    if key.is_some() && from_launcher.is_none() {
        return Err(LauncherFault::NoHosts(launcher.name().into()).into());
    }
    let own = record(host(from_launcher.is_some(), settings), settings)?;
    let word = match me.0 {
        0 => Some(word(key, from_launcher.clone(), settings)?),
        _ => None,
    };
    let at = match &from_launcher {
        Some(hosts) => lead(Peer(me.0), hosts)?,
        None => None,
    };
    let agreed = match word {
        Some(word) if me.1 == 1 => kw_start::alone(&own, &word)?,
        word => talk::hold(launcher, Agree::new(me, &own, word, at))?,
    };
    let key = agreed.key.or(key);
    let (hosts, memory) = match (agreed.hosts, from_launcher) {
        (Hosts::Named(hosts), _) => (hosts, Memory::Unpublished),
        (Hosts::FromLauncher, Some(hosts)) => {
            let here = agreed.here;
            (hosts, Memory::Published { here })
        }
        (Hosts::FromLauncher, None) => return Err(unequal(launcher)),
    };
    let key = key.ok_or_else(|| unequal(launcher))?;
    let agreed = Agreed::new(hosts, agreed.load, settings)?
        .priced(agreed.calibration)
        .bound(&agreed.bound, settings)?;
    let job = Job {
        me: Peer(me.0),
        worlds: Worlds::new(key, launcher.job(), agreed),
    };
    Ok(Joined { job, memory })
}

fn unequal(launcher: &dyn Launcher) -> BootError {
    let (name, rank) = (launcher.name().into(), launcher.rank());
    LauncherFault::Unequal { name, rank }.into()
}

/// Identity of this rank's host, unless it is the one that the launcher reported.
fn host(from_launcher: bool, settings: &Settings) -> Option<String> {
    match settings.text(Id::Host) {
        "auto" if from_launcher => None,
        "auto" => Some(machine()),
        own => Some(own.to_string()),
    }
}

fn fresh_key() -> Result<[u8; 32], BootError> {
    kw_sys::random::key().map_err(BootError::system("get random bytes"))
}

/// Rank 0's decision.
fn word(
    key: Option<[u8; 32]>,
    from_launcher: Option<Vec<u32>>,
    settings: &Settings,
) -> Result<Word, BootError> {
    Ok(Word {
        here: from_launcher.as_deref().is_some_and(is_one_host) && Allowed::read(settings)?.shm,
        named: key.is_none() && settings.text(Id::Host) != "auto",
        key: match key {
            Some(_) => None,
            None => Some(fresh_key()?),
        },
        from_launcher,
        calibration: kw_sys::calibration::known(settings),
    })
}

/// Identity of a machine: the kernel's boot id, or failing that the host name.
pub(super) fn machine() -> String {
    format!("{}-{}", kw_sys::host::name(), kw_sys::host::boot_id())
}
