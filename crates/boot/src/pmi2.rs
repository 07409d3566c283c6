//! A rank's conversation with a PMI-2 launcher (Slurm with `--mpi=pmi2`, Hydra) over an inherited
//! descriptor.
//!
//! Every call asks one question and blocks for its answer. Used at start and end only, by one
//! thread at a time.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use super::detect::{Env, Wire};
use super::launcher::{aborted, no_more};
use super::watch::Watch;
use super::words::{Words, adopt, hear, launcher_gone, say, strange};
use super::{BootError, JobInfo, Launcher, LauncherFault};
use kw_start::pmi::{
    Answer2, Client2, Frame, Frames, Lines, MAPPING_KEY, Request2, Spawn, mapping,
};

/// Longest key and longest value by the PMI-2 interface (`PMI2_MAX_KEYLEN`, `PMI2_MAX_VALLEN`),
/// ends excluded.
const ROOM: (usize, usize) = (63, 1000);
/// The attribute that is MPI_UNIVERSE_SIZE.
const UNIVERSE: &str = "universeSize";

/// An open conversation.
#[derive(Debug)]
pub struct Pmi2 {
    stream: File,
    frames: Frames,
    client: Client2,
    name: &'static str,
    info: JobInfo,
    /// Whether the launcher's map of hosts is correct. Slurm's PMI-2 (22.05) gives every rank a
    /// host of its own when the user has placed ranks node by node; then names of hosts are used
    /// instead.
    maps: bool,
    watch: Option<Watch>,
}

impl Pmi2 {
    /// Opens the conversation, and asks for what every rank needs. The environment knows the job's
    /// name.
    pub fn open(wire: Wire, env: Env, name: &'static str) -> Result<Pmi2, BootError> {
        let mut pmi = Pmi2 {
            stream: adopt(wire)?,
            frames: Frames::default(),
            client: Client2::new(),
            name,
            info: JobInfo {
                rank: wire.rank,
                size: wire.size,
                job: env("PMI_JOBID").unwrap_or_default(),
                ..JobInfo::default()
            },
            maps: env("SLURM_DISTRIBUTION").is_none_or(|d| !d.starts_with("arbitrary")),
            watch: None,
        };
        pmi.greet()?;
        Ok(pmi)
    }

    /// From now on this process ends when the launcher is gone.
    pub fn end_with_launcher(&mut self) -> Result<(), BootError> {
        self.watch = Some(Watch::start(
            self.stream.as_fd(),
            launcher_gone(self.info.rank),
        )?);
        Ok(())
    }

    fn greet(&mut self) -> Result<(), BootError> {
        let greeting = self.client.ask(&Request2::Greet).map_err(strange)?;
        say(&self.stream, &greeting)?;
        let line = self.line()?;
        self.client.handle_greeting(&line).map_err(strange)?;
        self.open_job()?;
        if let Answer2::Value(Some(name)) = self.ask(&Request2::Name)? {
            self.info.job = name;
        }
        let universe = self.attribute(UNIVERSE)?;
        self.info.universe_size = universe
            .and_then(|n| n.trim().parse().ok())
            .filter(|n| *n > 0);
        Ok(())
    }

    fn open_job(&mut self) -> Result<(), BootError> {
        let request = Request2::Open {
            job: self.info.job.clone(),
            rank: self.info.rank,
        };
        let Answer2::Opened { rank, size, appnum } = self.ask(&request)? else {
            return Ok(());
        };
        if (rank, size) != (self.info.rank, self.info.size) {
            return Err(LauncherFault::Contradiction {
                says: (rank, size),
                environment: (self.info.rank, self.info.size),
            }
            .into());
        }
        self.info.appnum = appnum.and_then(|n| i32::try_from(n).ok());
        Ok(())
    }

    /// The only line that comes: the answer to the greeting. Nothing follows it unasked.
    fn line(&mut self) -> Result<String, BootError> {
        let (mut lines, mut some) = (Lines::default(), [0; 512]);
        loop {
            lines.feed(hear(&self.stream, &mut some)?);
            if let Some(line) = lines.poll_line() {
                return line.map_err(strange);
            }
        }
    }

    fn frame(&mut self) -> Result<Frame, BootError> {
        let mut some = [0; 4096];
        loop {
            if let Some(frame) = self.frames.poll_frame() {
                return frame.map_err(strange);
            }
            let heard = hear(&self.stream, &mut some)?;
            self.frames.feed(heard);
        }
    }

    fn ask(&mut self, request: &Request2) -> Result<Answer2, BootError> {
        let text = self.client.ask(request).map_err(strange)?;
        say(&self.stream, &text)?;
        let frame = self.frame()?;
        self.client.handle(&frame).map_err(strange)
    }

    fn attribute(&mut self, key: &str) -> Result<Option<String>, BootError> {
        match self.ask(&Request2::Attribute(key.into()))? {
            Answer2::Value(v) => Ok(v),
            _ => Ok(None),
        }
    }
}

impl Words for Pmi2 {
    fn room(&self) -> (usize, usize) {
        ROOM
    }

    fn put_word(&mut self, key: String, value: String) -> Result<(), BootError> {
        self.ask(&Request2::Put { key, value }).map(|_| ())
    }

    fn word(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        let get = Request2::Get {
            job: self.info.job.clone(),
            from,
            key: key.to_string(),
        };
        match self.ask(&get)? {
            Answer2::Value(v) => Ok(v),
            _ => Ok(None),
        }
    }
}

impl Launcher for Pmi2 {
    fn info(&self) -> &JobInfo {
        &self.info
    }

    fn name(&self) -> &str {
        self.name
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        self.put_value(key, value)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.ask(&Request2::Fence).map(|_| ())
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        self.value(from, key)
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        if !self.maps {
            return None;
        }
        let text = self.attribute(MAPPING_KEY).ok()??;
        mapping::parse(&text, self.info.size)
    }

    fn spawn(&mut self, wanted: &Spawn) -> Result<(), BootError> {
        match self.ask(&Request2::Spawn(wanted.clone()))? {
            Answer2::Refused(why) => Err(no_more(self.name, wanted, &why)),
            _ => Ok(()),
        }
    }

    fn wire(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    /// PMI-2 has no word for the status, and not every launcher prints the message.
    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        let sentence = aborted(self.info.rank, status, message);
        eprintln!("{sentence}");
        let text = self
            .client
            .ask(&Request2::Abort(sentence))
            .map_err(strange)?;
        say(&self.stream, &text)
    }

    fn finalize(&mut self) -> Result<(), BootError> {
        if let Some(watch) = &self.watch {
            watch.over();
        }
        self.ask(&Request2::Finalize).map(|_| ())
    }
}
