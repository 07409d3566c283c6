//! A rank's conversation with a PMIx server (PRRTE, Open MPI's mpirun, Slurm with `--mpi=pmix`),
//! through the system's library.

use super::launcher::{aborted, as_text, no_more};
use super::traces::Launched;
use super::{BootError, JobInfo, Launcher, LauncherFault, ProcessSet};
use kw_start::pmi::{Spawn, mapping, text};
use kw_sys::pmix::{self, Closed, Fact};

/// An open conversation.
#[derive(Debug)]
pub struct Pmix {
    inner: pmix::Pmix,
    info: JobInfo,
    name: &'static str,
}

impl Pmix {
    /// Opens it, through the library that `named` says or the one that fits the launcher.
    pub fn open(launched: &Launched, named: Option<String>) -> Result<Pmix, BootError> {
        let named = named.filter(|n| n != "auto");
        let inner = pmix::Pmix::open(named.as_deref()).map_err(|why| match why {
            Closed::NoLibrary(why) => launched.refuse(&format!(
                "only through libpmix.so.2, and it cannot be loaded ({why}): install it (Debian package libpmix2) or set KW_PMIX to its path, or"
            )),
            Closed::NoServer(why) => launched.refuse(&format!("its PMIx server does not answer ({why}):")),
        })?;
        let size = inner
            .fact(Fact::JobSize)
            .and_then(|n| u32::try_from(n).ok());
        let (name, rank) = (launched.name(), inner.rank());
        let strange_size = LauncherFault::Size { name, rank, size };
        let size = size.filter(|n| rank < *n).ok_or(strange_size)?;
        inner.end_with_server().map_err(strange)?;
        let rank = inner.rank();
        let small = |fact| i32::try_from(inner.fact(fact)?).ok();
        let info = JobInfo {
            rank,
            size,
            job: inner.space(),
            appnum: small(Fact::Appnum(rank)),
            universe_size: small(Fact::UniverseSize).filter(|n| *n > 0),
        };
        Ok(Pmix {
            inner,
            info,
            name: launched.name(),
        })
    }
}

fn strange(why: String) -> BootError {
    LauncherFault::Pmix(why).into()
}

/// The host of each rank, when every rank is on one host.
fn placed(hosts: &[Vec<u32>], size: u32) -> Option<Vec<u64>> {
    let mut of = vec![None; size as usize];
    for (ranks, host) in hosts.iter().zip(0..) {
        for &rank in ranks {
            let place = of.get_mut(rank as usize)?;
            if place.replace(host).is_some() {
                return None;
            }
        }
    }
    of.into_iter().collect()
}

impl Launcher for Pmix {
    fn info(&self) -> &JobInfo {
        &self.info
    }

    fn name(&self) -> &str {
        self.name
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        let key = text::encode(key.as_bytes());
        self.inner.put(&key, value.as_bytes()).map_err(strange)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.inner.fence().map_err(strange)
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        let word = text::encode(key.as_bytes());
        let stored = self.inner.get(from, &word).map_err(strange)?;
        stored.map(|bytes| as_text(key, bytes)).transpose()
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        if self.inner.fact(Fact::LocalSize) == Some(self.info.size.into()) {
            return Some(vec![0; self.info.size as usize]);
        }
        let listed = self.inner.hosts().and_then(|h| placed(&h, self.info.size));
        let one_by_one = || {
            let host = |r| self.inner.fact(Fact::NodeId(r));
            (0..self.info.size).map(host).collect::<Option<Vec<u64>>>()
        };
        let hosts = match listed {
            Some(hosts) => hosts,
            None => one_by_one()?,
        };
        // numbered by their first rank, whichever rank was asked: all ranks have the same numbers
        Some(mapping::number(&hosts))
    }

    fn process_sets(&mut self) -> Vec<ProcessSet> {
        let sets = self.inner.sets().into_iter();
        sets.map(|s| ProcessSet {
            name: s.name,
            ranks: s.ranks,
        })
        .collect()
    }

    fn spawn(&mut self, wanted: &Spawn) -> Result<(), BootError> {
        let Spawn {
            program,
            args,
            count,
        } = wanted;
        let started = self.inner.spawn(program, args, *count);
        started.map_err(|why| no_more(self.name, wanted, &why))
    }

    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        let sentence = aborted(self.info.rank, status, message);
        // not every launcher prints the message
        eprintln!("{sentence}");
        self.inner.abort(status, &sentence).map_err(strange)
    }

    fn finalize(&mut self) -> Result<(), BootError> {
        self.inner.finalize().map_err(strange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_does_not_place_each_rank_once_is_no_map() {
        assert_eq!(placed(&[vec![0, 2], vec![1]], 3), Some(vec![0, 1, 0]));
        assert_eq!(placed(&[vec![0], vec![1]], 3), None, "one is nowhere");
        assert_eq!(placed(&[vec![0, 1], vec![1, 2]], 3), None, "one is twice");
        assert_eq!(placed(&[vec![0, 1, 2, 3]], 3), None, "one is too many");
    }
}
