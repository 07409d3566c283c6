//! A rank's conversation with a PMI-1 launcher (Kittiwake's mpiexec, Hydra) over an inherited
//! descriptor.
//!
//! Every call asks one question and blocks for its answer. Used at start and end only, by one
//! thread at a time.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use super::detect::Wire;
use super::launcher::no_more;
use super::watch::Watch;
use super::words::{Words, adopt, hear, launcher_gone, say, strange};
use super::{BootError, JobInfo, Launcher, LauncherFault};
use kw_proto::handshake::{Signer, Verifier};
use kw_start::pmi::{
    Answer, Client, JOB_KEY, Lines, MAPPING_KEY, Maxes, PmiError, Request, Spawn, mapping,
    question, text,
};

/// An open conversation.
#[derive(Debug)]
pub struct Pmi1 {
    stream: File,
    lines: Lines,
    client: Client,
    /// The job's name is that of its space of keys.
    info: JobInfo,
    maxes: Maxes,
    /// The key, if this launcher is ours.
    job_key: Option<[u8; 32]>,
    /// Whether the launcher may leave this process behind.
    watch: Option<Watch>,
    /// A question of the launcher that has no answer.
    asked: Option<u32>,
    /// Authentication of every line, sent and received, on an untrusted network.
    proofs: Option<(Signer, Verifier)>,
}

impl Pmi1 {
    /// Opens the conversation over an inherited descriptor, which stays open: a process that has
    /// left its job may come back.
    pub fn open(wire: Wire) -> Result<Pmi1, BootError> {
        Pmi1::over(adopt(wire)?, (wire.rank, wire.size), None)
    }

    /// Opens the conversation: greets, and asks for what every rank needs. With `proofs` every line
    /// is authenticated.
    pub fn over(
        stream: File,
        (rank, size): (u32, u32),
        proofs: Option<(Signer, Verifier)>,
    ) -> Result<Pmi1, BootError> {
        let mut pmi = Pmi1 {
            stream,
            lines: Lines::default(),
            client: Client::new(),
            info: JobInfo {
                rank,
                size,
                ..JobInfo::default()
            },
            maxes: Maxes {
                name: 256,
                key: 64,
                value: 1024,
            },
            job_key: None,
            watch: None,
            asked: None,
            proofs,
        };
        pmi.greet()?;
        Ok(pmi)
    }

    fn greet(&mut self) -> Result<(), BootError> {
        self.ask(&Request::Init)?;
        if let Answer::Maxes(m) = self.ask(&Request::Maxes)? {
            self.maxes = m;
        }
        if let Answer::Name(name) = self.ask(&Request::Name)? {
            self.info.job = name;
        }
        if let Answer::Number(n) = self.ask(&Request::Appnum)? {
            // Slurm's answer for "unknown" is -1
            self.info.appnum = n.filter(|n| *n >= 0);
        }
        if let Answer::Number(n) = self.ask(&Request::Universe)? {
            self.info.universe_size = n;
        }
        self.job_key = self.word(0, JOB_KEY)?.as_deref().and_then(text::unhex);
        Ok(())
    }

    /// Kittiwake's launcher leaves no process behind, others may.
    pub fn end_with_launcher(&mut self) -> Result<(), BootError> {
        if self.job_key.is_none() {
            self.watch = Some(Watch::start(
                self.stream.as_fd(),
                launcher_gone(self.info.rank),
            )?);
        }
        Ok(())
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, BootError> {
        self.say(request)?;
        let answer = self.read_line()?;
        self.client.handle(&answer).map_err(strange)
    }

    fn say(&mut self, request: &Request) -> Result<(), BootError> {
        let line = self.client.ask(request).map_err(strange)?;
        match &mut self.proofs {
            Some((says, _)) => say(&self.stream, &says.sign(&line)),
            None => say(&self.stream, &line),
        }
    }

    /// A line without its proof.
    fn proven(&mut self, line: String) -> Result<String, BootError> {
        let Some((_, hears)) = &mut self.proofs else {
            return Ok(line);
        };
        let line = hears.check(&line).map(str::to_string);
        let rank = self.info.rank;
        Ok(line.ok_or(LauncherFault::Forged { rank })?)
    }

    fn read_line(&mut self) -> Result<String, BootError> {
        let mut some = [0u8; 4096];
        loop {
            if let Some(line) = self.next_line() {
                return self.proven(line.map_err(strange)?);
            }
            let heard = hear(&self.stream, &mut some)?;
            self.lines.feed(heard);
        }
    }
}

impl Pmi1 {
    /// The next line that is an answer. Questions may stand between them.
    fn next_line(&mut self) -> Option<Result<String, PmiError>> {
        loop {
            let line = self.lines.poll_line()?;
            match line.as_deref().ok().and_then(question) {
                Some(round) => self.asked = Some(round),
                None => return Some(line),
            }
        }
    }
}

impl Words for Pmi1 {
    /// Handles launchers that count the whole line against the longest value, as a few old ones do.
    fn room(&self) -> (usize, usize) {
        (self.maxes.key - 1, self.maxes.value / 4 * 3)
    }

    fn put_word(&mut self, key: String, value: String) -> Result<(), BootError> {
        let kvs = self.info.job.clone();
        self.ask(&Request::Put { kvs, key, value }).map(|_| ())
    }

    fn word(&mut self, _from: u32, key: &str) -> Result<Option<String>, BootError> {
        let get = Request::Get {
            kvs: self.info.job.clone(),
            key: key.to_string(),
        };
        match self.ask(&get)? {
            Answer::Value(v) => Ok(v),
            _ => Ok(None),
        }
    }
}

impl Launcher for Pmi1 {
    fn info(&self) -> &JobInfo {
        &self.info
    }

    fn name(&self) -> &str {
        match self.job_key {
            Some(_) => "Kittiwake's mpiexec",
            None => "a PMI-1 launcher",
        }
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        self.put_value(key, value)
    }

    fn fence(&mut self) -> Result<(), BootError> {
        self.ask(&Request::Fence).map(|_| ())
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Option<String>, BootError> {
        self.value(from, key)
    }

    fn hosts(&mut self) -> Option<Vec<u32>> {
        let text = self.word(0, MAPPING_KEY).ok()??;
        mapping::parse(&text, self.info.size)
    }

    fn spawn(&mut self, wanted: &Spawn) -> Result<(), BootError> {
        let request = Request::Spawn {
            kvs: self.info.job.clone(),
            wanted: wanted.clone(),
        };
        match self.ask(&request)? {
            Answer::Refused(why) => Err(no_more(self.name(), wanted, &why)),
            _ => Ok(()),
        }
    }

    fn key(&self) -> Option<[u8; 32]> {
        self.job_key
    }

    fn wire(&self) -> Option<BorrowedFd<'_>> {
        Some(self.stream.as_fd())
    }

    fn tell(&mut self, line: &str) -> bool {
        self.listens() && kw_sys::fd::send_now(&self.stream, line.as_bytes())
    }

    /// Kittiwake's launcher supports it, but not on an untrusted network.
    fn listens(&self) -> bool {
        self.job_key.is_some() && self.proofs.is_none()
    }

    fn asked(&mut self) -> Option<u32> {
        let mut some = [0u8; 512];
        while self.listens() {
            match kw_sys::fd::recv_now(&self.stream, &mut some) {
                0 => break,
                n => self.lines.feed(&some[..n]),
            }
        }
        // The launcher sends nothing else to a rank that asks nothing.
        while let Some(Ok(_)) = self.next_line() {}
        self.asked.take()
    }

    fn abort(&mut self, status: i32, message: &str) -> Result<(), BootError> {
        let request = Request::Abort {
            status,
            message: message.into(),
        };
        self.say(&request)
    }

    /// Ours does; Hydra hangs up.
    fn takes_back(&self) -> bool {
        self.job_key.is_some()
    }

    fn finalize(&mut self) -> Result<(), BootError> {
        if let Some(watch) = &self.watch {
            watch.over();
        }
        self.ask(&Request::Finalize).map(|_| ())
    }
}
