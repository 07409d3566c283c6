//! The ranks of this host: their numbers here, and the information that each publishes in the
//! segment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use kw_base::Peer;
use kw_sys::pidfd::Identity;
use kw_sys::process_vm;

use super::join::Local;
use super::segment::{RankInfo, Segment};

/// Not a rank of this host.
const STRANGER: u32 = u32::MAX;

/// See the module.
#[derive(Debug)]
pub struct Ranks {
    segment: Arc<Segment>,
    me: usize,
    /// This host's number of every rank of the job, [`STRANGER`] for those of other hosts.
    index: Box<[u32]>,
    /// The word other ranks fetch to see whether they may.
    secret: Box<u64>,
}

impl Ranks {
    /// The ranks of a host; publishes the information of this one, of whose process `own` tells.
    pub(super) fn new(
        local: &Local,
        segment: Arc<Segment>,
        own: Option<Identity>,
    ) -> std::io::Result<Ranks> {
        let last = local.peers.last().map_or(0, |p| p.idx());
        let mut index = vec![STRANGER; last + 1].into_boxed_slice();
        for (i, p) in local.peers.iter().enumerate() {
            index[p.idx()] = i as u32;
        }
        let ranks = Ranks {
            segment,
            me: local.index(),
            index,
            secret: Box::new(u64::from_ne_bytes(kw_sys::unix::random()?)),
        };
        ranks.publish(own);
        Ok(ranks)
    }

    fn publish(&self, own: Option<Identity>) {
        let info = self.info(self.me);
        info.secret.store(*self.secret, Ordering::Relaxed);
        let cpu = kw_sys::cpus::allowed().first().map_or(0, |c| c + 1);
        info.cpu.store(cpu as u32, Ordering::Relaxed);
        if let Some(own) = own {
            info.started.store(own.started, Ordering::Relaxed);
            info.namespace.store(own.namespace, Ordering::Relaxed);
        }
        let probe = &*self.secret as *const u64 as u64;
        info.probe.store(probe, Ordering::Relaxed);
        // SYNC: rank_info.
        info.pid.store(process_vm::pid() as u32, Ordering::Release);
    }

    /// Information of the rank with this number on the host.
    pub(super) fn info(&self, i: usize) -> &RankInfo {
        self.segment.rank_info(i)
    }

    /// The number on this host of a rank; one too large for any if it is on another host.
    #[inline]
    pub(super) fn local(&self, peer: Peer) -> u32 {
        self.index.get(peer.idx()).copied().unwrap_or(STRANGER)
    }

    /// The number on this host of a rank, if it is on this host.
    #[inline]
    pub fn place(&self, peer: Peer) -> Option<u32> {
        Some(self.local(peer)).filter(|&i| i != STRANGER)
    }

    /// Whether a rank is on this host.
    #[inline]
    pub fn has(&self, peer: Peer) -> bool {
        self.local(peer) != STRANGER
    }

    /// Whether a rank of this host has not joined yet, and so has published nothing.
    pub fn has_yet_to_join(&self, peer: Peer) -> bool {
        let place = self.place(peer);
        // SYNC: rank_info.
        place.is_some_and(|i| self.info(i as usize).pid.load(Ordering::Acquire) == 0)
    }

    /// The first CPU that a rank of this host may use; `None` before that rank has joined.
    pub fn cpu(&self, peer: Peer) -> Option<usize> {
        let info = self.info(self.place(peer)? as usize);
        // SYNC: rank_info.
        if info.pid.load(Ordering::Acquire) == 0 {
            return None;
        }
        (info.cpu.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// This rank has said goodbye to all.
    pub(super) fn leave(&self) {
        // SYNC: left.
        self.info(self.me).left.store(1, Ordering::Release);
    }
}
