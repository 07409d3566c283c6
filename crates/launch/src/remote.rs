//! Another host, as mpiexec sees it: the command that reaches it (ssh), and the conversation with
//! our helper there, over that command's standard input and output ([`kw_start::helper`]).
//!
//! ```text
//! Starting --Ready--> Ready --End is said--> Parting --the connection ends--> Gone
//!    \-------the connection ends: lost-/------------------------------------->
//! ```
//! A helper that has not answered for [`SILENT`] is taken for lost: a host that vanishes sends
//! nothing.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::args::Binding;
use crate::plan::{Machine, Plan};
use crate::ranks::{Env, Heard, Source, hear, watch};

use crate::verdict::Verdict;
use kw_base::Tick;
use kw_start::helper::{
    Malformed, Message, Messages, Order, Program, Report, Start, Task, VERSION,
};
use kw_sys::process;

/// Interval of the questions whether a helper is there.
const ASK: Duration = Duration::from_secs(3);
/// Time limit for the answer.
const SILENT: Duration = Duration::from_secs(9);
/// Bytes of the command's complaints that are kept.
const COMPLAINT_BYTES: usize = 8192;

/// Why a host was given up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HelperFailure {
    /// The command that reaches it has ended with these words.
    #[error("{0}")]
    Complained(String),
    /// The command has ended without a message.
    #[error("the connection ended before the helper was there")]
    NeverThere,
    /// The connection has ended later.
    #[error("the connection to it ended")]
    Ended,
    /// Its helper does not answer.
    #[error("it has not answered for {} s", SILENT.as_secs())]
    Silent,
    /// Its helper has another version.
    #[error("its Kittiwake is {0}, this one is {own}; install the same on all hosts", own = env!("CARGO_PKG_VERSION"))]
    Version(String),
    /// The received data is not a message of a helper.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Parting,
    Gone,
}

/// A host and its helper.
#[derive(Debug)]
pub struct Remote {
    /// Its name as the user wrote it.
    pub name: String,
    /// Which machine of the plan; also its number in the poller.
    pub machine: u32,
    /// The command's process.
    pub pid: u32,
    state: State,
    to: Option<OwnedFd>,
    from: Option<OwnedFd>,
    complaint: Option<OwnedFd>,
    complained: Vec<u8>,
    unsent: Vec<u8>,
    messages: Messages,
    ask_at: Tick,
    /// Time of the unanswered question.
    asked: Option<Tick>,
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:@%,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The words of the command that reaches a host and starts the helper there.
fn reaching(plan: &Plan, name: &str) -> Vec<String> {
    let helper = plan.reach.helper.to_string_lossy();
    let helper = match plan.reach.shell {
        true => quoted(&helper),
        false => helper.into_owned(),
    };
    let words = plan.reach.command.iter().cloned();
    words
        .chain([name.to_string(), helper, "--helper".to_string()])
        .collect()
}

/// The path of this program.
fn own_path() -> Result<String, Verdict> {
    let path =
        crate::libraries::own_file().map_err(|e| Verdict::system("find mpiexec itself", e))?;
    Ok(path.to_string_lossy().into_owned())
}

fn cannot_start(host: &str, command: &[String], why: &dyn std::fmt::Display) -> Verdict {
    let command = command.join(" ");
    Verdict::new(
        1,
        format!("host {host} cannot be reached: '{command}' cannot be started: {why}"),
    )
}

impl Remote {
    /// Starts the command that reaches a host; on this machine that is the helper itself, with our
    /// own limit of open `files`.
    pub fn start(
        plan: &Plan,
        machine: usize,
        epoll: &OwnedFd,
        files: Option<u64>,
    ) -> Result<Remote, Verdict> {
        let Machine {
            name, shared_out, ..
        } = &plan.machines[machine];
        let words = match shared_out {
            true => vec![own_path()?, "--helper".to_string()],
            false => reaching(plan, name),
        };
        let command = match shared_out {
            true => &words,
            false => &plan.reach.command,
        };
        let failed = |e: &dyn std::fmt::Display| cannot_start(name, command, e);
        let pipes = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| failed(&e));
        let [(in_r, in_w), (out_r, out_w), (err_r, err_w)] = [pipes()?, pipes()?, pipes()?];
        for fd in [&in_w, &out_r, &err_r] {
            rustix::io::ioctl_fionbio(fd, true).map_err(|e| failed(&e))?;
        }
        let [first, rest @ ..] = &words[..] else {
            return Err(failed(&"it is empty"));
        };
        let args: Vec<_> = rest.iter().map(Into::into).collect();
        let here = crate::plan::current_dir()?;
        let program = crate::plan::find(first.as_ref(), None, &here, std::env::var_os("PATH"))
            .map_err(|v| failed(&v.sentence))?;
        let pid = process::start(process::Start {
            program: &program,
            arg0: first.as_ref(),
            args: &args,
            env: &std::env::vars_os().collect::<Env>(),
            dir: None,
            stdio: [in_r, out_w, err_w],
            keep: &[],
            cpus: &[],
            files: files.filter(|_| *shared_out),
            foreground: false,
        })
        .map_err(|e| failed(&e))?;
        let number = machine as u32;
        watch(epoll, &out_r, Source::Helper(number)).map_err(|e| failed(&e))?;
        watch(epoll, &err_r, Source::Complaint(number)).map_err(|e| failed(&e))?;
        Ok(Remote {
            name: name.clone(),
            machine: number,
            pid,
            state: State::Starting,
            to: Some(in_w),
            from: Some(out_r),
            complaint: Some(err_r),
            complained: Vec::new(),
            unsent: Vec::new(),
            messages: Messages::after_magic(),
            ask_at: Tick::NEVER,
            asked: None,
        })
    }

    /// Whether the helper has reported that it is there.
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Whether the conversation is over.
    pub fn is_gone(&self) -> bool {
        self.state == State::Gone
    }

    /// Whether we wait for its end.
    pub fn is_parting(&self) -> bool {
        self.state == State::Parting
    }

    /// Ends the helper, or the attempt to reach it. `kill`: also all remaining processes of the job
    /// there.
    pub fn part(&mut self, kill: bool, epoll: &OwnedFd) {
        match self.state {
            State::Ready => {
                self.state = State::Parting;
                self.asked = None;
                self.say(epoll, &Order::End(kill));
            }
            State::Starting => self.close(),
            State::Parting | State::Gone => {}
        }
    }

    /// Sends an order to the helper, as soon as the pipe has room.
    pub fn say(&mut self, epoll: &OwnedFd, order: &Order) {
        if self.to.is_some() {
            self.unsent.extend(order.encode());
            self.push(epoll);
        }
    }

    /// Sends queued data; watches for room when there is none.
    pub fn push(&mut self, epoll: &OwnedFd) {
        let Some(to) = &self.to else { return };
        while !self.unsent.is_empty() {
            match rustix::io::write(to, &self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // the reading side finds the cause
                Err(_) => {
                    self.to = None;
                    return self.unsent.clear();
                }
            }
        }
        let data = epoll::EventData::new_u64(Source::ToHelper(self.machine).number());
        let _ = match self.unsent.is_empty() {
            true => epoll::delete(epoll, to),
            false => epoll::add(epoll, to, data, epoll::EventFlags::OUT),
        };
    }

    /// Reads once; returns the reports of the helper.
    pub fn hear(&mut self, now: Tick) -> Result<Vec<Report>, HelperFailure> {
        let Some(from) = &self.from else {
            return Ok(Vec::new());
        };
        match hear(from) {
            Heard::Bytes(bytes) => self.messages.feed(&bytes),
            Heard::Nothing => return Ok(Vec::new()),
            Heard::End => return Err(self.why_ended()),
        }
        self.asked = None;
        let mut reports = Vec::new();
        while let Some(report) = self.messages.poll::<Report>() {
            match report? {
                Report::Ready(version, library) => self.ready(version, &library, now)?,
                Report::Pong => {}
                other => reports.push(other),
            }
        }
        Ok(reports)
    }

    fn ready(&mut self, version: u32, library: &str, now: Tick) -> Result<(), HelperFailure> {
        if version != VERSION || library != env!("CARGO_PKG_VERSION") {
            return Err(HelperFailure::Version(library.into()));
        }
        self.hear_all_complaints();
        self.state = State::Ready;
        self.ask_at = now + ASK;
        self.complained.clear();
        Ok(())
    }

    /// Handles a complaint of the command: kept until the helper is there, passed on afterwards.
    pub fn hear_complaint(&mut self) -> Vec<u8> {
        let Some(fd) = &self.complaint else {
            return Vec::new();
        };
        match hear(fd) {
            Heard::Bytes(bytes) if self.is_ready() => return bytes,
            Heard::Bytes(bytes) => {
                self.complained.extend(bytes);
                let more = self.complained.len().saturating_sub(COMPLAINT_BYTES);
                self.complained.drain(..more);
            }
            Heard::Nothing => {}
            Heard::End => self.complaint = None,
        }
        Vec::new()
    }

    /// Reads this pipe after data has arrived on the other one; earlier data is in it by now.
    fn hear_all_complaints(&mut self) {
        while self.complaint.as_ref().is_some_and(readable) {
            let late = self.hear_complaint();
            self.complained.extend(late);
        }
    }

    /// Why the connection ended, in the command's last words if it printed any.
    pub fn why_ended(&mut self) -> HelperFailure {
        self.hear_all_complaints();
        let text = String::from_utf8_lossy(&self.complained).into_owned();
        let last = text.lines().map(str::trim).rfind(|l| !l.is_empty());
        match (last, self.state) {
            (Some(words), _) => HelperFailure::Complained(words.trim_end_matches('.').into()),
            (None, State::Starting) => HelperFailure::NeverThere,
            (None, _) => HelperFailure::Ended,
        }
    }

    /// Asks whether the helper is there, when it is time to. `Err` if it has not answered for too
    /// long.
    pub fn on_time(&mut self, now: Tick, epoll: &OwnedFd) -> Result<(), HelperFailure> {
        if self.asked.is_some_and(|at| now.since(at) >= SILENT) {
            return Err(HelperFailure::Silent);
        }
        if self.is_ready() && now >= self.ask_at {
            self.ask_at = now + ASK;
            self.asked.get_or_insert(now);
            self.say(epoll, &Order::Ping);
        }
        Ok(())
    }

    /// Notes the end of the conversation.
    pub fn close(&mut self) {
        self.state = State::Gone;
        self.to = None;
        self.from = None;
        self.complaint = None;
        self.unsent.clear();
        self.asked = None;
    }

    /// Whether an unread report of the helper is in the pipe.
    pub fn has_words(&self) -> bool {
        self.from.as_ref().is_some_and(readable)
    }

    /// The verdict when it cannot be reached.
    pub fn unreached(&self, why: impl std::fmt::Display) -> Verdict {
        Verdict::new(1, format!("host {} cannot be reached: {why}", self.name))
    }
}

fn readable(fd: &OwnedFd) -> bool {
    rustix::io::ioctl_fionread(fd).is_ok_and(|n| n > 0)
}

/// Ranks that the helper of a machine must start.
pub fn orders(plan: &Plan, machine: usize, job: &str) -> Result<Start, Verdict> {
    use std::os::unix::ffi::OsStrExt;
    let here = crate::plan::current_dir()?;
    let bytes = |s: &std::ffi::OsString| s.as_bytes().to_vec();
    // The binding of ranks that a helper on this machine starts was chosen and shown here.
    let shared_out = plan.machines[machine].shared_out;
    let bind = match shared_out {
        true => Binding::None,
        false => plan.bind,
    };
    let programs = plan.apps.iter().map(|a| Program {
        words: a.words.iter().map(bytes).collect(),
        env: if shared_out { &a.env } else { &a.env_away }
            .iter()
            .map(|(k, v)| (bytes(k), bytes(v)))
            .collect(),
        dir: here
            .join(a.dir.as_deref().unwrap_or(Path::new("")))
            .as_os_str()
            .as_bytes()
            .to_vec(),
    });
    let tasks = plan.on(machine).map(|rank| {
        let (local, before) = plan.local(rank);
        Task {
            rank: rank as u32,
            program: plan.ranks[rank].app as u32,
            local: local as u32,
            before: before as u32,
            cpus: plan.ranks[rank].cpus.iter().map(|c| *c as u32).collect(),
        }
    });
    Ok(Start {
        job: job.to_string(),
        number: machine as u32,
        host: plan.machines[machine].name.clone(),
        size: plan.ranks.len() as u32,
        bind: bind.word().to_string(),
        map: plan.map && !shared_out,
        profile: plan.profile,
        trace: plan.trace.is_some(),
        wraps: plan.wraps.iter().map(|w| w.text().to_string()).collect(),
        programs: programs.collect(),
        tasks: tasks.collect(),
    })
}
