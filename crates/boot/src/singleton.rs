//! A process without a launcher: rank 0 of 1, with its own store.

use std::collections::HashMap;

use super::launcher::{aborted, no_more};
use super::{BootError, JobInfo, Launcher};
use kw_start::pmi::{Spawn, text};

/// The launcher of a process started by hand.
#[derive(Debug)]
pub struct Singleton {
    info: JobInfo,
    store: HashMap<String, String>,
}

impl Singleton {
    /// A job of one, with a unique name.
    pub fn new() -> Result<Singleton, BootError> {
        let mut tail = [0; 8];
        kw_sys::random::fill(&mut tail).map_err(BootError::system("get random bytes"))?;
        Ok(Singleton {
            info: JobInfo {
                size: 1,
                job: format!("kw-{}-{}", std::process::id(), text::hex(&tail)),
                ..JobInfo::default()
            },
            store: HashMap::new(),
        })
    }
}

impl Launcher for Singleton {
    fn info(&self) -> &JobInfo {
        &self.info
    }

    fn name(&self) -> &str {
        "no launcher"
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        self.store.insert(key.into(), value.into());
        Ok(())
    }

    fn fence(&mut self) -> Result<(), BootError> {
        Ok(())
    }

    fn get(&mut self, _from: u32, key: &str) -> Result<Option<String>, BootError> {
        Ok(self.store.get(key).cloned())
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        Some(vec![0])
    }

    fn spawn(&mut self, wanted: &Spawn) -> Result<(), BootError> {
        let why = "it was started without a launcher";
        Err(no_more("this process", wanted, why))
    }

    /// No other process reports it.
    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        eprintln!("{}", aborted(0, status, message));
        Ok(())
    }

    fn takes_back(&self) -> bool {
        true
    }

    fn finalize(&mut self) -> Result<(), BootError> {
        Ok(())
    }
}
