//! The ranks of this host as processes.

use crate::paths::local;
use kw_boot::Job;
use kw_sys::siblings::Siblings;
use kw_waiting::constants::other_programs::MOST_RANKS;
use std::cell::OnceCell;
use std::time::Duration;

/// The ranks of this host, once they were searched; none if they cannot be told from others.
#[derive(Debug, Default)]
pub(crate) struct HostRanks(OnceCell<Option<Siblings>>);

impl HostRanks {
    /// Total CPU time of the ranks of this host, if there are few and it can be read.
    pub(crate) fn used(&self, job: &Job) -> Option<Duration> {
        let found = self.0.get_or_init(|| {
            let ranks = local(job.me, job.hosts()).peers.len();
            (ranks <= MOST_RANKS).then(|| Siblings::find(ranks))?
        });
        found.as_ref()?.used()
    }
}
