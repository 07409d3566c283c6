//! Ranks of this host whose process ends without a goodbye.
//!
//! Shared memory does not show when a rank dies, and the launcher may not report it either. So a
//! rank that has waited for long opens a pidfd for every other rank of its host
//! ([`ShmPath::watch_processes`]) and sleeps on them, too ([`ShmPath::ends`]). When a process has
//! ended, its sent data is received first; if there is no shutdown message in it, and the rank has
//! not left in order ([`RankInfo::left`](super::segment::RankInfo)), the peer is down.
//!
//! A launcher that ends its job because a rank has died does so within a moment, and its message
//! says more than this rank could: it goes first, by [`GRACE`].
//!
//! On a host with many ranks it opens a few at first, then twice as many each [`PAUSE`]: in a job
//! that starts and ends at once, such as one that was spawned, hundreds of ranks would otherwise
//! each open hundreds, which costs more than all else that they do.
//!
//! If a process cannot be watched (no pidfd_open, no /proc, another pid namespace, too few open
//! files), only the launcher notices its end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kw_base::Tick;
use kw_sys::pidfd::{Ends, Identity, Watched};
use kw_sys::process::spare_files;
use std::os::fd::AsFd;

use super::ShmPath;
use super::segment::Segment;
use crate::{Down, Inbound};

/// How long the launcher has to end the job by itself.
const GRACE: Duration = Duration::from_millis(300);

/// Processes are watched if that takes no more than this part of the files that may still be
/// opened.
const PART_OF_FILES: usize = 4;

/// Number of processes that are watched when this rank has first waited for long.
const FIRST: usize = 8;
/// After this time twice as many additional ones are watched as the last time.
const PAUSE: Duration = Duration::from_millis(250);

/// Schedule of the number of watched processes.
#[derive(Debug)]
struct Steps {
    most: usize,
    at: Tick,
}

impl Steps {
    fn new() -> Steps {
        Steps {
            most: FIRST,
            at: Tick(0),
        }
    }

    /// Number of additional processes to watch now.
    fn take(&mut self, now: Tick) -> usize {
        if now < self.at {
            return 0;
        }
        self.at = now + PAUSE;
        let most = self.most;
        self.most *= 2;
        most
    }
}

/// State of the other processes.
#[derive(Debug)]
pub(super) struct Ended {
    ends: Ends,
    /// Ranks that are not watched yet, by their number on this host.
    unwatched: Vec<u32>,
    steps: Steps,
    /// Whether the next step has any processes to watch.
    more: bool,
    /// Ranks whose process was found to have ended, and when.
    unreported: Vec<(u32, Tick)>,
}

impl Ended {
    /// The state for `ranks` ranks on this host, of which this is `me`.
    pub fn new(ranks: usize, me: usize) -> std::io::Result<Ended> {
        let enough = spare_files() / PART_OF_FILES >= ranks;
        let others = (me + 1..ranks).chain(0..me).filter(|_| enough);
        Ok(Ended {
            ends: Ends::new()?,
            unwatched: others.map(|i| i as u32).collect(),
            steps: Steps::new(),
            more: false,
            unreported: Vec::new(),
        })
    }

    /// This process.
    pub fn own(&self) -> Option<Identity> {
        self.ends.own()
    }

    fn watch(&mut self, segment: &Segment, now: Tick) {
        let mut left = self.steps.take(now);
        if left == 0 {
            return;
        }
        let (ends, unreported) = (&mut self.ends, &mut self.unreported);
        self.unwatched.retain(|&i| match identity(segment, i) {
            None => true,
            Some(_) if left == 0 => true,
            Some(who) => {
                left -= 1;
                if ends.watch(i as u64, who) == Watched::Ended {
                    unreported.push((i, now));
                }
                false
            }
        });
        self.more = left == 0 && !self.unwatched.is_empty();
    }

    /// A rank whose end has to be reported now.
    fn next(&mut self, segment: &Segment, now: Tick) -> Option<u32> {
        while let Some(i) = self.ends.take_ended() {
            self.unreported.push((i as u32, now));
        }
        let due = |&(i, at): &(u32, Tick)| has_left(segment, i) || now.since(at) >= GRACE;
        let k = self.unreported.iter().position(due)?;
        Some(self.unreported.swap_remove(k).0)
    }
}

/// A rank's process; `None` before it has joined.
fn identity(segment: &Segment, i: u32) -> Option<Identity> {
    let info = segment.rank_info(i as usize);
    // SYNC: rank_info.
    let pid = info.pid.load(Ordering::Acquire);
    (pid != 0).then(|| Identity {
        pid,
        started: info.started.load(Ordering::Relaxed),
        namespace: info.namespace.load(Ordering::Relaxed),
    })
}

/// Whether the process of a rank that has joined still runs, as far as can be known.
pub(super) fn still_runs(segment: &Segment, i: usize) -> bool {
    let (Some(who), Ok(mut ends)) = (identity(segment, i as u32), Ends::new()) else {
        return true;
    };
    ends.watch(0, who) != Watched::Ended && ends.take_ended().is_none()
}

fn has_left(segment: &Segment, i: u32) -> bool {
    // SYNC: left.
    segment.rank_info(i as usize).left.load(Ordering::Acquire) != 0
}

impl ShmPath {
    /// Descriptor that can be read when a watched process has ended: then call
    /// [`ShmPath::poll_ended`].
    pub fn ends(&self) -> impl AsFd + '_ {
        self.ended.ends.as_fd()
    }

    /// Watches more of the processes of this host. For a rank that has waited for long.
    pub fn watch_processes(&mut self, now: Tick) {
        if !self.ended.unwatched.is_empty() {
            self.ended.watch(&self.segment, now);
        }
    }

    /// Reports every peer whose process has ended as down. Returns whether there was one.
    pub fn poll_ended<I: Inbound + ?Sized>(&mut self, now: Tick, inbound: &mut I) -> bool {
        let mut any = false;
        while let Some(i) = self.ended.next(&self.segment, now) {
            any = true;
            self.bury(i as usize, inbound);
        }
        any
    }

    /// How long until [`ShmPath::watch_processes`] and [`ShmPath::poll_ended`] have to be called,
    /// though nothing wakes this rank for it.
    pub fn until_report(&self, now: Tick) -> Option<Duration> {
        let first = self.ended.unreported.iter().map(|u| u.1).min();
        let report = first.map(|at| GRACE.saturating_sub(now.since(at)));
        let step = self.ended.more.then(|| self.ended.steps.at.since(now));
        report.into_iter().chain(step).min()
    }

    fn bury<I: Inbound + ?Sized>(&mut self, i: usize, inbound: &mut I) {
        self.look();
        while self.links[i].active && self.receive(i, inbound) {}
        if self.links[i].gone {
            return;
        }
        self.links[i].end_with_process();
        tracing::debug!("shared memory: rank {} is gone", self.links[i].peer);
        self.waiting.retain(|&w| w as usize != i);
        let pid = self.ranks.info(i).pid.load(Ordering::Relaxed);
        let down = Down {
            path: "shm",
            peer: self.links[i].peer,
            reason: format!("its process ({pid}) has ended without MPI_Finalize"),
        };
        inbound.on_down(down, has_left(&self.segment, i as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundreds_of_ranks_that_wait_for_a_moment_do_not_each_watch_all_others() {
        let mut steps = Steps::new();
        let at = |ms: u64| Tick(0) + Duration::from_millis(1000 + ms);
        assert_eq!(steps.take(at(0)), FIRST);
        assert_eq!(steps.take(at(249)), 0);
        let more: Vec<usize> = (1..6).map(|i| steps.take(at(250 * i))).collect();
        assert_eq!(more, [16, 32, 64, 128, 256]);
    }
}
