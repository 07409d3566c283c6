//! A rank's conversation with a PMI-1 launcher (Kittiwake's mpiexec, Hydra) over an inherited descriptor.
//!
//! Every call asks one question and blocks for its answer. Used at start and end only, by one thread at a time.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use super::{BootError, Launcher};
use kw_core::pmi::{
    Answer, Ask, Client, JOB_KEY, Lines, MAPPING_KEY, Maxes, PmiError, mapping, text,
};

/// An open conversation.
#[derive(Debug)]
pub struct Pmi1 {
    stream: File,
    lines: Lines,
    client: Client,
    rank: u32,
    size: u32,
    kvs: String,
    appnum: Option<i32>,
    universe: Option<i32>,
    maxes: Maxes,
    /// The key, if this launcher is ours.
    job_key: Option<[u8; 32]>,
}

impl Pmi1 {
    /// Opens the conversation: greets, and asks for what every rank needs.
    pub fn open(fd: i32, rank: u32, size: u32) -> Result<Pmi1, BootError> {
        let stream = kw_sys::fd::adopt(fd).map_err(|e| {
            BootError(format!(
                "PMI_FD is {fd}, but nothing is open there ({e}): this process was started by rank {rank} of another \
                 job, not by its launcher; unset PMI_FD, PMI_RANK and PMI_SIZE to run it alone"
            ))
        })?;
        let mut pmi = Pmi1 {
            stream,
            lines: Lines::default(),
            client: Client::new(),
            rank,
            size,
            kvs: String::new(),
            appnum: None,
            universe: None,
            maxes: Maxes {
                name: 256,
                key: 64,
                value: 1024,
            },
            job_key: None,
        };
        pmi.greet()?;
        Ok(pmi)
    }

    fn greet(&mut self) -> Result<(), BootError> {
        self.ask(&Ask::Init)?;
        if let Answer::Maxes(m) = self.ask(&Ask::Maxes)? {
            self.maxes = m;
        }
        if let Answer::Name(name) = self.ask(&Ask::Name)? {
            self.kvs = name;
        }
        if let Answer::Number(n) = self.ask(&Ask::Appnum)? {
            self.appnum = n;
        }
        if let Answer::Number(n) = self.ask(&Ask::Universe)? {
            self.universe = n;
        }
        self.job_key = self.raw(JOB_KEY)?.as_deref().and_then(text::unhex);
        Ok(())
    }

    fn ask(&mut self, ask: &Ask) -> Result<Answer, BootError> {
        let line = self.client.ask(ask).map_err(strange)?;
        self.stream
            .write_all(line.as_bytes())
            .map_err(|e| BootError(format!("cannot reach the launcher: {e}")))?;
        let answer = self.read_line()?;
        self.client.handle(&answer).map_err(strange)
    }

    fn read_line(&mut self) -> Result<String, BootError> {
        let mut some = [0u8; 4096];
        loop {
            if let Some(line) = self.lines.poll_line() {
                return line.map_err(strange);
            }
            match self.stream.read(&mut some) {
                Ok(0) => return Err(BootError("the launcher is gone".into())),
                Ok(n) => self.lines.feed(&some[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(BootError(format!("cannot hear the launcher: {e}"))),
            }
        }
    }

    /// What stands under a key, as it stands there.
    fn raw(&mut self, key: &str) -> Result<Option<String>, BootError> {
        let get = Ask::Get {
            kvs: self.kvs.clone(),
            key: key.to_string(),
        };
        match self.ask(&get)? {
            Answer::Value(v) => Ok(v),
            _ => Ok(None),
        }
    }

    fn pieces(&mut self, key: &str, count: usize) -> Result<Vec<u8>, BootError> {
        let mut word = String::new();
        for i in 0..count {
            let name = format!("{key}.{i}");
            let piece = self.raw(&name)?;
            word += &piece.ok_or_else(|| {
                BootError(format!("the launcher lost '{name}', piece {i} of {count}"))
            })?;
        }
        text::decode(&word).map_err(strange)
    }

    /// Longest value this launcher surely takes: a few old ones count the whole line.
    fn value_room(&self) -> usize {
        self.maxes.value / 4 * 3
    }
}

fn strange(e: PmiError) -> BootError {
    BootError(format!("the launcher cannot be understood: {e}"))
}

impl Launcher for Pmi1 {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn name(&self) -> &str {
        match self.job_key {
            Some(_) => "Kittiwake's mpiexec",
            None => "a PMI-1 launcher",
        }
    }

    fn job(&self) -> &str {
        &self.kvs
    }

    fn appnum(&self) -> Option<i32> {
        self.appnum
    }

    fn universe_size(&self) -> Option<i32> {
        self.universe
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        for (key, value) in text::split(key, value.as_bytes(), self.value_room()) {
            if key.len() >= self.maxes.key {
                let most = self.maxes.key - 1;
                return Err(BootError(format!(
                    "the launcher takes keys of {most} bytes, but '{key}' has {}",
                    key.len()
                )));
            }
            let kvs = self.kvs.clone();
            self.ask(&Ask::Put { kvs, key, value })?;
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.ask(&Ask::Fence).map(|_| ())
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, BootError> {
        let key = text::encode(key.as_bytes());
        let Some(word) = self.raw(&key)? else {
            return Ok(None);
        };
        let bytes = match text::stored(&word).map_err(strange)? {
            text::Stored::Whole(v) => v,
            text::Stored::Pieces(n) => self.pieces(&key, n)?,
        };
        match String::from_utf8(bytes) {
            Ok(s) => Ok(Some(s)),
            Err(_) => Err(BootError(format!(
                "what is stored under '{key}' is no text"
            ))),
        }
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        let text = self.raw(MAPPING_KEY).ok()??;
        mapping::parse(&text, self.size)
    }

    fn key(&self) -> Option<[u8; 32]> {
        self.job_key
    }

    fn wire(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        let ask = Ask::Abort {
            status,
            message: message.into(),
        };
        let line = self.client.ask(&ask).map_err(strange)?;
        self.stream
            .write_all(line.as_bytes())
            .map_err(|e| BootError(format!("cannot reach the launcher: {e}")))
    }

    fn finalize(&mut self) -> Result<(), BootError> {
        self.ask(&Ask::Finalize).map(|_| ())
    }
}
