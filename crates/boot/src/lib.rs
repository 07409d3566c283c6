//! The launcher and identity of this rank, and the settings agreed on by the job.
//!
//! [`connect`] finds the launcher from the environment, [`join`] learns the whole job from it. A
//! rank that [`connect`] refuses must stop with the sentence it was given. The sockets of the
//! rendezvous and the descriptors to launchers live here; paths between ranks are above, in
//! `kw-path` and `kw-engine`.
#![forbid(unsafe_code)]

mod again;
mod agreed;
mod allowed;
pub mod conformance;
mod detect;
mod error;
mod join;
mod launcher;
mod pmi1;
mod pmi2;
mod pmix;
pub mod port;
mod rendezvous;
mod singleton;
mod talk;
mod traces;
mod watch;
mod words;
mod world;

#[cfg(test)]
mod server2;
#[cfg(test)]
mod tests;

use kw_base::Peer;
use kw_base::settings::Settings;

pub use again::Again;
pub use agreed::Agreed;
pub use allowed::Allowed;
pub use detect::Env;
pub use error::{BootError, LauncherFault, Misuse, NoMeeting};
pub use join::{Joined, Memory, join};
pub use kw_start::pmi::Spawn;
pub use launcher::{JobInfo, Launcher, ProcessSet};
pub use talk::hold;
pub use world::{ProcessName, World, Worlds};

/// The whole job, as a rank sees it, and the jobs that it has joined since.
#[derive(Clone, Debug)]
pub struct Job {
    /// This rank.
    pub me: Peer,
    /// Its own job and those that it has joined.
    pub worlds: Worlds,
}

impl Job {
    /// Information about this rank's own job, known to all its ranks alike.
    #[inline]
    pub fn agreed(&self) -> &Agreed {
        &self.worlds.own().agreed
    }

    /// The key of this rank's own job: proof of belonging.
    pub fn key(&self) -> &[u8; 32] {
        &self.worlds.own().key
    }

    /// Ranks of this rank's own job.
    pub fn size(&self) -> u32 {
        self.agreed().size()
    }

    /// Host number of every rank of this rank's own job.
    pub fn hosts(&self) -> &[u32] {
        self.agreed().hosts()
    }

    /// Whether this host has more ranks than CPUs for them, so that spinning takes time from
    /// others.
    pub fn oversubscribed(&self) -> bool {
        self.agreed().is_oversubscribed(self.me)
    }
}

/// How many processes the job has, as far as the environment tells before [`connect`].
pub fn expected_size(env: Env) -> Option<u32> {
    if env("PMI_FD").is_none() && env("KW_RENDEZVOUS").is_some() {
        return env("KW_SIZE")?.trim().parse().ok();
    }
    match detect::detect(env).ok()? {
        detect::Found::Pmi1(wire) | detect::Found::Pmi2(wire, _) => Some(wire.size),
        detect::Found::Pmix(_) => None,
        detect::Found::Alone => Some(1),
    }
}

/// Finds the launcher that started this process: one that speaks over a descriptor has precedence
/// over a rendezvous. An error is a sentence for the user; the process must then stop.
pub fn connect(env: Env) -> Result<Box<dyn Launcher>, BootError> {
    let launcher = find(env)?;
    let (rank, size) = (launcher.rank(), launcher.size());
    tracing::debug!("rank {rank} of {size}, started by {}", launcher.name());
    Ok(launcher)
}

fn find(env: Env) -> Result<Box<dyn Launcher>, BootError> {
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

/// Whether ranks could meet with these settings, as far as one process can tell.
pub fn check_settings(settings: &Settings) -> Result<(), Misuse> {
    agreed::check_settings(settings)?;
    Allowed::read(settings).map(drop)
}
