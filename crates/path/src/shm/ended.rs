//! Ranks of this host whose process ends without a goodbye.
//!
//! Shared memory does not show when a rank dies, and the launcher may not report it either. So a
//! rank that has waited for long opens a pidfd for every other rank of its host
//! ([`ShmPath::watch_processes`]) and sleeps on them, too ([`ShmPath::ends`]). When a process has
//! ended, its sent data is received first; if there is no shutdown message in it, and the rank has
//! not left in order ([`RankInfo::left`](super::segment::RankInfo)), the peer is down.
//!
//! A launcher that ends its job because a rank has died does so within a moment, and says more than
//! this rank could: it goes first, by [`GRACE`].
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

/// Processes are watched where that takes no more than this part of the files that may still be
/// opened.
const PART_OF_FILES: usize = 4;

/// State of the other processes.
#[derive(Debug)]
pub(super) struct Ended {
    ends: Ends,
    /// Ranks that are not watched yet, by their number on this host.
    unwatched: Vec<u32>,
    /// Ranks whose process was found to have ended, and when.
    untold: Vec<(u32, Tick)>,
}

impl Ended {
    /// Of `ranks` ranks on this host, of which this is `me`.
    pub fn new(ranks: usize, me: usize) -> std::io::Result<Ended> {
        let enough = spare_files() / PART_OF_FILES >= ranks;
        let others = (0..ranks as u32).filter(|&i| enough && i as usize != me);
        Ok(Ended {
            ends: Ends::new()?,
            unwatched: others.collect(),
            untold: Vec::new(),
        })
    }

    /// This process.
    pub fn own(&self) -> Option<Identity> {
        self.ends.own()
    }

    fn watch(&mut self, segment: &Segment, now: Tick) {
        let (ends, untold) = (&mut self.ends, &mut self.untold);
        self.unwatched.retain(|&i| match identity(segment, i) {
            None => true,
            Some(who) => {
                if ends.watch(i as u64, who) == Watched::Ended {
                    untold.push((i, now));
                }
                false
            }
        });
    }

    /// One whose end is to be told now.
    fn next(&mut self, segment: &Segment, now: Tick) -> Option<u32> {
        while let Some(i) = self.ends.take_ended() {
            self.untold.push((i as u32, now));
        }
        let due = |&(i, at): &(u32, Tick)| has_left(segment, i) || now.since(at) >= GRACE;
        let k = self.untold.iter().position(due)?;
        Some(self.untold.swap_remove(k).0)
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

fn has_left(segment: &Segment, i: u32) -> bool {
    // SYNC: left.
    segment.rank_info(i as usize).left.load(Ordering::Acquire) != 0
}

impl ShmPath {
    /// Can be read when a process that is watched has ended: then [`ShmPath::poll_ended`] is to be
    /// called.
    pub fn ends(&self) -> impl AsFd + '_ {
        self.ended.ends.as_fd()
    }

    /// Watches the processes of this host that are not watched yet. For a rank that has waited for
    /// long.
    pub fn watch_processes(&mut self, now: Tick) {
        if !self.ended.unwatched.is_empty() {
            self.ended.watch(&self.segment, now);
        }
    }

    /// Says of every peer whose process has ended that it is down. Returns whether there was one.
    pub fn poll_ended<I: Inbound + ?Sized>(&mut self, now: Tick, inbound: &mut I) -> bool {
        let mut any = false;
        while let Some(i) = self.ended.next(&self.segment, now) {
            any = true;
            self.bury(i as usize, inbound);
        }
        any
    }

    /// How long until [`ShmPath::poll_ended`] is to be called, though nothing wakes this rank for
    /// it.
    pub fn until_told(&self, now: Tick) -> Option<Duration> {
        let first = self.ended.untold.iter().map(|u| u.1).min()?;
        Some(GRACE.saturating_sub(now.since(first)))
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
