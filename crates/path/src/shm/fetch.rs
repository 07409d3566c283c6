//! Direct copies from the memory of another process: one attempt shows whether they work.

use std::sync::atomic::Ordering;

use kw_sys::buf::Buf;
use kw_sys::process_vm;

use super::segment::RankInfo;
use crate::Refused;

/// Copies from one peer's memory.
#[derive(Debug, Default)]
pub struct Fetcher {
    /// `None`: not tried.
    works: Option<bool>,
}

impl Fetcher {
    /// Whether they work, as far as is known.
    pub fn may_work(&self) -> bool {
        self.works != Some(false)
    }

    /// Finds out whether they work, if that is not known yet.
    pub fn check(&mut self, peer: &RankInfo) -> Result<(), Refused> {
        match self.works {
            Some(true) => Ok(()),
            Some(false) => Err(Refused::Unsupported),
            None => self.try_word(peer),
        }
    }

    /// The kernel has refused one.
    pub fn refused(&mut self, errno: i32) -> Refused {
        self.works = Some(false);
        Refused::Denied(errno)
    }

    /// Copies `len` bytes at `address` of the peer's memory to packed byte `at` of `buf`. Once
    /// refused it is always refused.
    pub fn fetch(
        &mut self,
        peer: &RankInfo,
        address: u64,
        (buf, at): (&Buf, u64),
        len: u64,
    ) -> Result<(), Refused> {
        self.check(peer)?;
        let pid = peer.pid.load(Ordering::Relaxed) as i32;
        process_vm::fetch(pid, address, buf, at, len).map_err(|errno| self.refused(errno))
    }

    #[cold]
    fn try_word(&mut self, peer: &RankInfo) -> Result<(), Refused> {
        // SYNC: rank_info.
        let pid = peer.pid.load(Ordering::Acquire);
        if pid == 0 {
            return Err(Refused::Denied(0));
        }
        let word = process_vm::read_word(pid as i32, peer.probe.load(Ordering::Relaxed));
        // In a container of its own, a number may name another process: the word tells.
        let right = word == Ok(peer.secret.load(Ordering::Relaxed));
        self.works = Some(right);
        match word {
            Err(errno) => Err(Refused::Denied(errno)),
            Ok(_) if !right => Err(Refused::Denied(0)),
            Ok(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::Segment;
    use super::*;

    /// This process, as it would describe itself if this word were in its memory.
    fn of_this_process(segment: &Segment, word: &u64, secret: u64) {
        let info = segment.rank_info(0);
        info.secret.store(secret, Ordering::Relaxed);
        info.probe
            .store(word as *const u64 as u64, Ordering::Relaxed);
        info.pid.store(process_vm::pid() as u32, Ordering::Release);
    }

    #[test]
    fn a_process_that_has_not_joined_is_asked_again() {
        let (segment, _fd) = Segment::create(1).unwrap();
        let mut fetcher = Fetcher::default();
        let nothing = (&Buf::EMPTY, 0);
        let refused = fetcher.fetch(segment.rank_info(0), 0, nothing, 0);
        assert_eq!(refused, Err(Refused::Denied(0)));
        assert!(fetcher.may_work());
        let word = 77;
        of_this_process(&segment, &word, 77);
        let address = &word as *const u64 as u64;
        let fetched = fetcher.fetch(segment.rank_info(0), address, nothing, 0);
        assert_eq!(fetched, Ok(()));
    }

    #[test]
    fn a_number_that_names_another_process_is_refused_for_good() {
        let (segment, _fd) = Segment::create(1).unwrap();
        let word = 77;
        of_this_process(&segment, &word, 78);
        let mut fetcher = Fetcher::default();
        let nothing = (&Buf::EMPTY, 0);
        let refused = fetcher.fetch(segment.rank_info(0), 0, nothing, 0);
        assert_eq!(refused, Err(Refused::Denied(0)));
        let again = fetcher.fetch(segment.rank_info(0), 0, nothing, 0);
        assert_eq!(
            (again, fetcher.may_work()),
            (Err(Refused::Unsupported), false)
        );
    }
}
