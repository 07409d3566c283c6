//! The processes of ranks on this machine: starting them, reading from them, ending them. `mpiexec`
//! has one of these for its own machine, and its helper on another host has one for that host.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use rustix::process::{WaitOptions, wait};

use crate::crash::{self, Crash};
use crate::huge_pages;
use crate::profile::memory::{Memory, Recorded};
use crate::trace::drain::Drain;
use crate::verdict::{CANNOT_EXECUTE, Ended, NOT_FOUND, Verdict};
use crate::wrap::{self, Wrap};
use kw_start::profile::Calls;
use kw_start::trace::Batch;
use kw_sys::process::Start;

/// Descriptors that each rank needs in this process: its control socket, and a pipe for each of its
/// outputs.
pub const RANK_FILES: usize = 3;
/// Additional descriptors during the start of a rank: its ends of the three, its input, and a pipe
/// that reports whether it could be executed.
const START_FILES: usize = 6;

/// An environment.
pub type Env = Vec<(OsString, OsString)>;

/// Source of an event of the poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Signals of this process.
    Signals,
    /// Our own standard input.
    Input,
    /// PMI messages of a rank.
    Wire(u32),
    /// Output of a rank.
    Output(u32, usize),
    /// The connection to a host's helper, readable or writable.
    Helper(u32),
    /// The other direction, if it has a descriptor of its own.
    ToHelper(u32),
    /// Standard error of the command that reaches a host.
    Complaint(u32),
    /// Messages of the process that has spawned this job.
    Parent,
}

impl Source {
    /// The number for the poller.
    pub fn number(self) -> u64 {
        let (kind, which) = match self {
            Source::Signals => (0, 0),
            Source::Input => (1, 0),
            Source::Wire(r) => (2, r),
            Source::Output(r, which) => (3 + which as u64, r),
            Source::Helper(h) => (5, h),
            Source::ToHelper(h) => (6, h),
            Source::Complaint(h) => (7, h),
            Source::Parent => (8, 0),
        };
        kind | u64::from(which) << 8
    }

    /// The source for a number of the poller.
    pub fn of(number: u64) -> Source {
        let which = (number >> 8) as u32;
        match number & 255 {
            0 => Source::Signals,
            1 => Source::Input,
            2 => Source::Wire(which),
            5 => Source::Helper(which),
            6 => Source::ToHelper(which),
            7 => Source::Complaint(which),
            8 => Source::Parent,
            n => Source::Output(which, n as usize - 3),
        }
    }
}

/// Watches a descriptor for input.
pub fn watch(epoll: &OwnedFd, fd: impl AsFd, source: Source) -> rustix::io::Result<()> {
    let data = epoll::EventData::new_u64(source.number());
    epoll::add(epoll, fd, data, epoll::EventFlags::IN)
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// These bytes.
    Bytes(Vec<u8>),
    /// No data now.
    Nothing,
    /// The other side has closed.
    End,
}

/// Reads once.
pub fn hear(fd: impl AsFd) -> Heard {
    let mut some = vec![0u8; 65536];
    match rustix::io::read(fd, &mut some) {
        Ok(n @ 1..) => {
            some.truncate(n);
            Heard::Bytes(some)
        }
        Err(Errno::AGAIN | Errno::INTR) => Heard::Nothing,
        Ok(0) | Err(_) => Heard::End,
    }
}

/// A rank to start.
#[derive(Debug)]
pub struct Begin<'a> {
    /// Its number.
    pub rank: u32,
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Program as named, and arguments.
    pub words: &'a [OsString],
    /// Environment without the rank's own variables.
    pub env: &'a Env,
    /// Ranks of its host, and how many of them come before it.
    pub local: (usize, usize),
    /// Working directory, if it is not ours.
    pub dir: Option<&'a Path>,
    /// Processors.
    pub cpus: &'a [usize],
    /// Standard input.
    pub input: OwnedFd,
    /// Whether it has our terminal: its output goes there, too, and it is in the foreground.
    pub has_terminal: bool,
    /// Name of this host, for sentences.
    pub host: &'a str,
}

/// One process.
#[derive(Debug)]
struct Process {
    pid: u32,
    wire: Option<OwnedFd>,
    unsent: Vec<u8>,
    pipes: [Option<OwnedFd>; 2],
    lives: bool,
    crash: Option<Crash>,
}

/// Ranks on this machine.
#[derive(Debug, Default)]
pub struct Ranks {
    all: BTreeMap<u32, Process>,
    pids: HashMap<u32, u32>,
    /// Limit of open files that ranks get.
    files: Option<u64>,
    /// The memory of their recorders, if they have any.
    recorded: Option<Memory>,
    /// Reader of their trace records.
    drain: Option<Drain>,
    /// Commands under which they are started.
    wraps: Vec<Wrap>,
}

impl Ranks {
    /// Creates the state without ranks. Raises our limit of open files as far as possible; ranks
    /// get the old one.
    pub fn new() -> Ranks {
        Ranks {
            files: raise_files(),
            ..Ranks::default()
        }
    }

    /// The limit of open files that we were started with.
    pub fn files(&self) -> Option<u64> {
        self.files
    }

    /// How many ranks can be started with the files that we may still open. A helper needs as many
    /// files as a rank.
    pub fn room(&self) -> usize {
        kw_sys::process::spare_files().saturating_sub(START_FILES) / RANK_FILES
    }

    /// Whether this many ranks can be started with the files that mpiexec may still open.
    pub fn check_files(&self, ranks: usize) -> Result<(), Verdict> {
        match self.room() {
            room if ranks <= room => Ok(()),
            room => Err(too_many(ranks, room)),
        }
    }

    /// Makes the next `ranks` ranks to be started record their calls.
    pub fn record(&mut self, ranks: usize, what: Recorded) -> Result<(), Verdict> {
        let memory = Memory::new(ranks, what)?;
        self.drain = what.traced.then(|| Drain::new(memory.has_counter()));
        self.recorded = Some(memory);
        Ok(())
    }

    /// Records that ranks have written since the last call. `over`: they have ended.
    pub fn trace(&mut self, ranks: &[u32], over: bool) -> Vec<(u32, Batch)> {
        match (&mut self.drain, &self.recorded) {
            (Some(drain), Some(memory)) => drain.take(memory, ranks, over),
            _ => Vec::new(),
        }
    }

    /// Time until the next read of the trace, if one is recorded.
    pub fn trace_every(&self) -> Option<Duration> {
        Some(self.drain.as_ref()?.every())
    }

    /// Makes the ranks that are started from now on start under commands.
    pub fn wrap(&mut self, wraps: Vec<Wrap>) {
        self.wraps = wraps;
    }

    /// Calls of a recording rank so far.
    pub fn calls(&self, rank: u32) -> Option<Calls> {
        self.recorded.as_ref()?.calls(rank)
    }

    /// The ranks that were started and still run.
    pub fn living(&self) -> Vec<u32> {
        let living = self.all.iter().filter(|(_, p)| p.lives);
        living.map(|(rank, _)| *rank).collect()
    }

    /// Starts a rank and watches its descriptors.
    pub fn start(&mut self, epoll: &OwnedFd, b: Begin) -> Result<(), Verdict> {
        let rank = b.rank;
        let many = |e: Errno| Verdict::system(&format!("open the pipes of rank {rank}"), e);
        let flags = SocketFlags::CLOEXEC;
        let (wire, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(many)?;
        let (out_r, out_w) = pipe_with(PipeFlags::CLOEXEC).map_err(many)?;
        let (err_r, err_w) = pipe_with(PipeFlags::CLOEXEC).map_err(many)?;
        for fd in [&wire, &out_r, &err_r] {
            rustix::io::ioctl_fionbio(fd, true).map_err(many)?;
        }
        let mut env = rank_env(&b, theirs.as_raw_fd());
        let mut keep = vec![theirs.as_fd()];
        if let Some(recorded) = &mut self.recorded {
            let failed = |e| Verdict::system("use the memory of the recorder", e);
            recorded.give(rank, &mut env).map_err(failed)?;
            keep.push(recorded.fd());
        }
        let words = wrap::wrapped(&self.wraps, &b, &mut env);
        let found = words.as_ref().map(|words| wrap::find(&words[0], b.dir));
        let found = found.transpose()?;
        let words = words.as_deref().unwrap_or(b.words);
        let outputs = match b.has_terminal {
            true => {
                [rustix::stdio::stdout(), rustix::stdio::stderr()].map(|fd| fd.try_clone_to_owned())
            }
            false => [Ok(out_w), Ok(err_w)],
        };
        let [out_w, err_w] =
            outputs.map(|fd| fd.map_err(|e| Verdict::system("use the terminal", e)));
        let pid = kw_sys::process::start(Start {
            program: found.as_deref().unwrap_or(b.program),
            arg0: &words[0],
            args: &words[1..],
            env: &env,
            dir: b.dir,
            stdio: [b.input, out_w?, err_w?],
            keep: &keep,
            cpus: b.cpus,
            files: self.files,
            foreground: b.has_terminal,
        })
        .map_err(|e| cannot_start(rank, b.host, &words[0], &e))?;
        watch(epoll, &wire, Source::Wire(rank)).map_err(many)?;
        watch(epoll, &out_r, Source::Output(rank, 0)).map_err(many)?;
        watch(epoll, &err_r, Source::Output(rank, 1)).map_err(many)?;
        self.pids.insert(pid, rank);
        let process = Process {
            pid,
            wire: Some(wire),
            unsent: Vec::new(),
            pipes: [Some(out_r), Some(err_r)],
            lives: true,
            crash: None,
        };
        self.all.insert(rank, process);
        Ok(())
    }

    /// Reads PMI messages of a rank.
    pub fn hear_wire(&mut self, rank: u32) -> Heard {
        let Some(process) = self.all.get_mut(&rank) else {
            return Heard::End;
        };
        let Some(wire) = &process.wire else {
            return Heard::End;
        };
        let mut heard = hear(wire);
        match &mut heard {
            Heard::Bytes(bytes) => {
                process.crash = crash::take(bytes).or(process.crash.take());
            }
            Heard::Nothing => {}
            Heard::End => process.wire = None,
        }
        heard
    }

    /// Crash report of a rank.
    pub fn crash(&self, rank: u32) -> Option<&Crash> {
        self.all.get(&rank)?.crash.as_ref()
    }

    /// Sends PMI bytes to a rank, and what is still queued; watches for room when the socket is
    /// full.
    pub fn say(&mut self, epoll: &OwnedFd, rank: u32, bytes: &[u8]) {
        let Some(process) = self.all.get_mut(&rank) else {
            return;
        };
        let Some(wire) = &process.wire else { return };
        process.unsent.extend_from_slice(bytes);
        let unsent = &mut process.unsent;
        if unsent.is_empty() {
            return;
        }
        let before = unsent.len();
        while !unsent.is_empty() {
            match rustix::net::send(wire, &unsent[..], rustix::net::SendFlags::NOSIGNAL) {
                Ok(n) => drop(unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return unsent.clear(),
            }
        }
        let mut flags = epoll::EventFlags::IN;
        if !unsent.is_empty() {
            flags |= epoll::EventFlags::OUT;
        } else if before < 4096 {
            return;
        }
        let data = epoll::EventData::new_u64(Source::Wire(rank).number());
        let _ = epoll::modify(epoll, wire, data, flags);
    }

    /// Reads output of a rank.
    pub fn hear_output(&mut self, rank: u32, which: usize) -> Heard {
        let Some(process) = self.all.get_mut(&rank) else {
            return Heard::End;
        };
        let Some(pipe) = &process.pipes[which] else {
            return Heard::End;
        };
        let heard = hear(pipe);
        if heard == Heard::End {
            process.pipes[which] = None;
        }
        heard
    }

    /// Whether unread output of a rank is in its pipes.
    pub fn has_output(&self, rank: u32, which: usize) -> bool {
        let pipe = self.all.get(&rank).and_then(|p| p.pipes[which].as_ref());
        pipe.is_some_and(|p| rustix::io::ioctl_fionread(p).is_ok_and(|n| n > 0))
    }

    /// Reads output from now on, or leaves it in the pipes.
    pub fn want_output(&self, epoll: &OwnedFd, on: bool) {
        let flags = match on {
            true => epoll::EventFlags::IN,
            false => epoll::EventFlags::empty(),
        };
        for (rank, process) in &self.all {
            for (which, pipe) in process.pipes.iter().enumerate() {
                if let Some(pipe) = pipe {
                    let data = epoll::EventData::new_u64(Source::Output(*rank, which).number());
                    let _ = epoll::modify(epoll, pipe, data, flags);
                }
            }
        }
    }

    /// Sends a signal to the process groups of all living ranks.
    pub fn signal_all(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        for process in self.all.values().filter(|p| p.lives) {
            if let Some(pid) = Pid::from_raw(process.pid as i32) {
                let _ = kill_process_group(pid, signal);
            }
        }
    }

    /// The next child that has ended: its process id, its rank if it is one, how it ended.
    pub fn reap(&mut self) -> Option<(u32, Option<u32>, Ended)> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let ended = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ended::Exit(code),
                (_, Some(signal)) => Ended::Signal(signal, status.as_raw() & 0x80 != 0),
                _ => continue,
            };
            let pid = pid.as_raw_nonzero().get() as u32;
            let rank = self.pids.remove(&pid);
            if let Some(process) = rank.and_then(|r| self.all.get_mut(&r)) {
                process.lives = false;
            }
            return Some((pid, rank, ended));
        }
        None
    }

    /// The process of a rank that still runs.
    pub fn pid(&self, rank: u32) -> Option<u32> {
        self.all.get(&rank).filter(|p| p.lives).map(|p| p.pid)
    }

    /// Whether one of them still runs.
    pub fn alive(&self) -> bool {
        !self.pids.is_empty()
    }
}

/// The mark of a job's processes on one machine: a job may have several helpers on it, under
/// several names.
pub fn mark(job: &str, machine: u32) -> String {
    format!("{job}.{machine}")
}

/// Variables that all ranks of a program on one machine share; it has `ranks` of the job's `size`.
pub fn common_env(
    env: &Env,
    size: usize,
    ranks: usize,
    job: &str,
    mark: &str,
    usable: usize,
) -> Env {
    let mut env = env.clone();
    env.push(("PMI_SIZE".into(), size.to_string().into()));
    env.push(("MPIEXEC_JOB".into(), job.into()));
    env.push(("MPIEXEC_MARK".into(), mark.into()));
    if !env.iter().any(|(k, _)| k == "KW_CPUS") {
        env.push(("KW_CPUS".into(), usable.to_string().into()));
    }
    huge_pages::ask(&mut env, ranks);
    env
}

fn rank_env(b: &Begin, fd: i32) -> Env {
    let mut env = b.env.clone();
    for (name, value) in [
        ("PMI_RANK", b.rank.to_string()),
        ("PMI_ID", b.rank.to_string()),
        ("PMI_FD", fd.to_string()),
        ("MPI_LOCALNRANKS", b.local.0.to_string()),
        ("MPI_LOCALRANKID", b.local.1.to_string()),
    ] {
        env.push((name.into(), value.into()));
    }
    env
}

/// The sentence when the limit of open files allows only `room` ranks.
pub fn too_many(ranks: usize, room: usize) -> Verdict {
    Verdict::misuse(format!(
        "{ranks} ranks on one host need {RANK_FILES} open files each, and the limit leaves room for {room} ranks; raise it \
         (ulimit -n), or use more hosts"
    ))
}

fn raise_files() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let high = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    setrlimit(Resource::Nofile, high).ok()?;
    now.current
}

fn cannot_start(rank: u32, host: &str, word: &OsString, error: &io::Error) -> Verdict {
    let word = word.to_string_lossy();
    let (status, hint) = match error.kind() {
        io::ErrorKind::NotFound => (NOT_FOUND, " (is its interpreter there?)"),
        _ => (CANNOT_EXECUTE, ""),
    };
    Verdict::new(
        status,
        format!("cannot start rank {rank} on {host}: '{word}': {error}{hint}"),
    )
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn sources_survive_the_poller() {
        for source in [
            Source::Signals,
            Source::Input,
            Source::Wire(7),
            Source::Output(99_999, 0),
            Source::Output(3, 1),
            Source::Helper(12),
            Source::ToHelper(12),
            Source::Complaint(0),
        ] {
            assert_eq!(Source::of(source.number()), source);
        }
    }
}
