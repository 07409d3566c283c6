//! A launcher that a process keeps talking to after it has left its job, because the launcher would
//! not take it back: for sessions that are opened later. The launcher learns that the process has
//! finished only when it ends.
//!
//! Values stored by ranks stay with the launcher, so each time they meet they use new keys.

use super::{BootError, JobInfo, Launcher, ProcessSet};
use kw_start::pmi::Spawn;
use std::os::fd::BorrowedFd;

/// A conversation that continues.
pub struct Again {
    inner: Box<dyn Launcher>,
    /// How often the ranks have met.
    round: u32,
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("round", &self.round).finish()
    }
}

impl Again {
    /// After the ranks have met once.
    pub fn new(inner: Box<dyn Launcher>) -> Again {
        Again { inner, round: 1 }
    }

    fn name_of(&self, key: &str) -> String {
        format!("{}_{key}", self.round)
    }
}

impl Launcher for Again {
    fn info(&self) -> &JobInfo {
        self.inner.info()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        self.inner.put(&self.name_of(key), value)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.inner.fence()
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        self.inner.get(from, &self.name_of(key))
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        self.inner.hosts()
    }

    fn process_sets(&mut self) -> Vec<ProcessSet> {
        self.inner.process_sets()
    }

    fn spawn(&mut self, wanted: &Spawn) -> Result<(), BootError> {
        self.inner.spawn(wanted)
    }

    fn key(&self) -> Option<[u8; 32]> {
        self.inner.key()
    }

    fn wire(&self) -> Option<BorrowedFd<'_>> {
        self.inner.wire()
    }

    fn tell(&mut self, line: &str) -> bool {
        self.inner.tell(line)
    }

    fn listens(&self) -> bool {
        self.inner.listens()
    }

    fn asked(&mut self) -> Option<u32> {
        self.inner.asked()
    }

    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        self.inner.abort(status, message)
    }

    fn next_round(&mut self) -> bool {
        self.round += 1;
        true
    }

    fn finalize(&mut self) -> Result<(), BootError> {
        self.inner.finalize()
    }
}
