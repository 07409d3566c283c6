//! The helper on another host: mpiexec starts it there through ssh. It starts the ranks of that
//! host, forwards their messages and output, and ends with the connection, together with its ranks.
//!
//! It reads [`Order`]s from its standard input and writes [`Report`]s to its standard output, in
//! one thread. If the helper is killed, a guard ends the ranks (see [`kw_sys::process::guard`]).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::java;
use crate::libraries::Libraries;
use crate::profile::memory::Recorded;
use crate::ranks::{Begin, Env, Heard, Ranks, Source, common_env, hear, mark, watch};
use crate::verdict::{self, Ended, Verdict};
use crate::wrap::Wrap;
use crate::{args, bind, claim, libraries, plan, stdin};
use kw_base::Tick;
use kw_start::helper::{MAGIC, Message, Messages, Order, Program, Report, Start, VERSION};
use kw_sys::process::Guard;
use kw_sys::signals::{self, Signals};
use kw_sys::{clock, process};

/// How long mpiexec may be silent (it asks every few seconds whether we are there).
const SILENT: Duration = Duration::from_secs(60);
/// Reports that may queue for a slow connection before the ranks' output has to wait.
const BACKLOG: usize = 4 << 20;

/// Reason for the end of the helper.
enum Over {
    /// mpiexec requested it.
    Asked,
    /// The connection to mpiexec is gone.
    Alone,
}

struct Helper {
    epoll: OwnedFd,
    signals: Signals,
    ranks: Ranks,
    orders: Messages,
    unsent: VecDeque<u8>,
    /// Rank 0's standard input, and the data that waits for room there.
    input: Option<OwnedFd>,
    input_waits: Vec<u8>,
    started: Option<Started>,
    heard: Tick,
    held: bool,
    wanted: bool,
    flowing: bool,
    /// Whether a rank has died with a crash report: the first report is enough.
    crashed: bool,
    /// Time when ranks are next asked for their records.
    trace_at: Tick,
}

/// State after the order to start ranks.
struct Started {
    tag: String,
    /// This host, as the user wrote it.
    host: String,
    guard: Guard,
}

/// Runs until mpiexec ends it or is gone.
pub fn run() -> Result<(), Verdict> {
    let system = |what: &'static str| move |e: Errno| Verdict::system(what, e);
    let signals = signals::take(&[signals::CHLD, signals::HUP, signals::TERM, signals::INT])
        .map_err(|e| Verdict::system("take signals", e))?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("make an epoll"))?;
    for fd in [rustix::stdio::stdin(), rustix::stdio::stdout()] {
        rustix::io::ioctl_fionbio(fd, true).map_err(system("use the connection to mpiexec"))?;
    }
    watch(&epoll, &signals, Source::Signals).map_err(system("watch signals"))?;
    watch(&epoll, rustix::stdio::stdin(), Source::Helper(0))
        .map_err(system("watch the connection to mpiexec"))?;
    let mut helper = Helper {
        epoll,
        signals,
        ranks: Ranks::new(),
        orders: Messages::new(),
        unsent: MAGIC.iter().copied().collect(),
        input: None,
        input_waits: Vec::new(),
        started: None,
        heard: clock::now(),
        held: false,
        wanted: true,
        flowing: true,
        crashed: false,
        trace_at: Tick(0),
    };
    helper.say(&Report::Ready(VERSION, env!("CARGO_PKG_VERSION").into()));
    loop {
        if let Err(over) = helper.turn() {
            helper.end(over);
            return Ok(());
        }
    }
}

impl Helper {
    /// Sends what is due (at first: that we are there), then waits for events.
    fn turn(&mut self) -> Result<(), Over> {
        self.pass_input();
        self.push()?;
        self.steer();
        let mut events = Vec::with_capacity(64);
        let most = self.patience();
        let wait = Timespec {
            tv_sec: most.as_secs() as _,
            tv_nsec: most.subsec_nanos() as _,
        };
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&wait),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Err(Over::Alone),
        }
        self.take_signals()?;
        for event in &events {
            match Source::of(event.data.u64()) {
                Source::Helper(_) => self.on_orders()?,
                Source::Wire(rank) => self.on_wire(rank),
                Source::Output(rank, which) => drop(self.on_output(rank, which)),
                _ => {}
            }
        }
        self.tell_traces();
        match self.held || clock::now().since(self.heard) < SILENT {
            true => Ok(()),
            false => Err(Over::Alone),
        }
    }

    /// How long the helper may sleep without an event: only briefly when rank 0's pipe is full,
    /// because that pipe is not watched.
    fn patience(&self) -> Duration {
        let look = match self.input_waits.is_empty() {
            true => Duration::from_secs(1),
            false => Duration::from_millis(5),
        };
        let traced = self.ranks.trace_every().filter(|_| self.ranks.alive());
        traced.map_or(look, |every| every.min(look))
    }

    /// Reads the ranks' records for the trace. While the connection is slow they stay in the rings.
    fn tell_traces(&mut self) {
        let now = clock::now();
        let Some(every) = self.ranks.trace_every() else {
            return;
        };
        if now >= self.trace_at && self.unsent.len() < BACKLOG {
            self.trace_at = now + every;
            let living = self.ranks.living();
            self.tell_trace(&living, false);
        }
    }

    fn tell_trace(&mut self, ranks: &[u32], over: bool) {
        for (rank, batch) in self.ranks.trace(ranks, over) {
            self.say(&Report::Trace(rank, batch.encode()));
        }
    }

    fn say(&mut self, report: &Report) {
        self.unsent.extend(report.encode());
    }

    /// Sends queued data.
    fn push(&mut self) -> Result<(), Over> {
        let stdout = rustix::stdio::stdout();
        while !self.unsent.is_empty() {
            match rustix::io::write(stdout, self.unsent.as_slices().0) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Err(Over::Alone),
            }
        }
        let data = epoll::EventData::new_u64(Source::ToHelper(0).number());
        let _ = match self.unsent.is_empty() {
            true => epoll::delete(&self.epoll, stdout),
            false => epoll::add(&self.epoll, stdout, data, epoll::EventFlags::OUT),
        };
        Ok(())
    }

    /// Reads output from the ranks, or leaves it in their pipes while mpiexec or the connection is
    /// slow.
    fn steer(&mut self) {
        let most = if self.flowing { BACKLOG } else { BACKLOG / 2 };
        let on = self.wanted && self.unsent.len() < most;
        if on != self.flowing {
            self.flowing = on;
            self.ranks.want_output(&self.epoll, on);
        }
    }

    fn take_signals(&mut self) -> Result<(), Over> {
        while let Some(came) = self.signals.poll_signal() {
            if came.number != signals::CHLD {
                return Err(Over::Alone);
            }
        }
        while let Some((_, rank, ended)) = self.ranks.reap() {
            if let Some(rank) = rank {
                self.on_ended(rank, ended);
            }
        }
        Ok(())
    }

    /// Sends everything that a rank reported and printed before its end.
    fn on_ended(&mut self, rank: u32, ended: Ended) {
        self.on_wire(rank);
        for which in 0..2 {
            while self.ranks.has_output(rank, which) && self.on_output(rank, which) {}
        }
        self.tell_calls(rank, true);
        self.tell_trace(&[rank], true);
        if let Some(crash) = self.ranks.crash(rank).filter(|_| !self.crashed) {
            let text = crash.text(rank).into_bytes();
            self.crashed = true;
            self.say(&Report::Output(rank, 1, text));
        }
        let (status, signal, core) = match ended {
            Ended::Exit(status) => (status as u32, 0, false),
            Ended::Signal(signal, core) => (0, signal as u32, core),
            Ended::Lost => (1, 0, false),
        };
        self.say(&Report::Ended {
            rank,
            status,
            signal,
            core,
        });
    }

    /// Calls of a rank that records them.
    fn tell_calls(&mut self, rank: u32, over: bool) {
        if let Some(calls) = self.ranks.calls(rank) {
            let calls = calls.encode();
            self.say(&Report::Calls { rank, over, calls });
        }
    }

    fn tell_all_calls(&mut self) {
        for rank in self.ranks.living() {
            self.tell_calls(rank, false);
        }
        self.say(&Report::AllCalls);
    }

    fn on_wire(&mut self, rank: u32) {
        while let Heard::Bytes(bytes) = self.ranks.hear_wire(rank) {
            self.say(&Report::Wire(rank, bytes));
        }
        self.ranks.say(&self.epoll, rank, &[]);
    }

    /// Whether something was read.
    fn on_output(&mut self, rank: u32, which: usize) -> bool {
        let Heard::Bytes(bytes) = self.ranks.hear_output(rank, which) else {
            return false;
        };
        self.say(&Report::Output(rank, which as u32, bytes));
        true
    }

    fn on_orders(&mut self) -> Result<(), Over> {
        match hear(rustix::stdio::stdin()) {
            Heard::Bytes(bytes) => self.orders.feed(&bytes),
            Heard::Nothing => return Ok(()),
            Heard::End => return Err(Over::Alone),
        }
        self.heard = clock::now();
        self.held = false;
        while let Some(order) = self.orders.poll::<Order>() {
            self.obey(order.map_err(|_| Over::Alone)?)?;
        }
        Ok(())
    }

    fn obey(&mut self, order: Order) -> Result<(), Over> {
        match order {
            Order::Start(start) => self.start(start),
            Order::Wire(rank, bytes) => self.ranks.say(&self.epoll, rank, &bytes),
            Order::Input(bytes) if bytes.is_empty() => self.input = None,
            Order::Input(bytes) => self.input_waits = bytes,
            Order::Signal(number) => self.ranks.signal_all(number as i32),
            Order::Flow(on) => self.wanted = on,
            Order::Ping => self.say(&Report::Pong),
            Order::Pause => self.held = true,
            Order::Calls => self.tell_all_calls(),
            Order::Clock(asked) => {
                self.say(&Report::Clock(asked, clock::now().0));
                self.push()?; // time spent waiting is not included
            }
            Order::End(kill) => {
                match kill {
                    true => self.kill(),
                    false => self.name_those_who_stay(),
                }
                return Err(Over::Asked);
            }
        }
        Ok(())
    }

    /// Starts all ranks of this host; if one cannot be started, none remains.
    fn start(&mut self, start: Start) {
        if let Err(verdict) = self.start_all(&start) {
            self.kill();
            let status = verdict.status.into();
            self.say(&Report::Failed(status, verdict.sentence));
        }
    }

    fn start_all(&mut self, start: &Start) -> Result<(), Verdict> {
        let mark = mark(&start.job, start.number);
        let tag = format!("MPIEXEC_MARK={mark}");
        let guard = process::guard(&tag).map_err(|e| Verdict::system("start the guard", e))?;
        let started = Started {
            tag,
            host: start.host.clone(),
            guard,
        };
        let guard = &self.started.insert(started).guard;
        process::adopt_orphans();
        let usable = kw_sys::cpus::usable();
        let how = args::binding("--bind", &start.bind)?;
        let shares = claim::bind(guard, how, start.tasks.len(), usable)?;
        let ready = |p: &Program| Ready::new(p, start, &mark, usable);
        let programs = start.programs.iter().map(ready).collect::<Vec<_>>();
        self.ranks.check_files(start.tasks.len())?;
        let wraps: Result<_, _> = start.wraps.iter().map(|w| Wrap::parse(w)).collect();
        self.ranks.wrap(wraps?);
        if start.profile || start.trace {
            let what = Recorded {
                counted: start.profile,
                traced: start.trace,
            };
            self.ranks.record(start.tasks.len(), what)?;
        }
        for (task, share) in start.tasks.iter().zip(shares) {
            let chosen = task.cpus.iter().map(|c| *c as usize).collect();
            let cpus: Vec<usize> = if task.cpus.is_empty() { share } else { chosen };
            let program = match programs.get(task.program as usize) {
                Some(Ok(program)) => program,
                Some(Err(verdict)) => return Err(verdict.clone()),
                None => {
                    return Err(Verdict::misuse(format!(
                        "rank {} has no program",
                        task.rank
                    )));
                }
            };
            if start.map {
                let line = bind::line(
                    task.rank,
                    &start.host,
                    &cpus,
                    &program.path,
                    &program.libraries,
                );
                self.say(&Report::Say(line));
            }
            let input = self.input_of(task.rank)?;
            let begin = Begin {
                rank: task.rank,
                program: &program.path,
                words: &program.words,
                env: &program.env,
                local: (task.local as usize, task.before as usize),
                dir: Some(&program.dir),
                cpus: &cpus,
                input,
                has_terminal: false,
                host: &start.host,
            };
            self.ranks.start(&self.epoll, begin)?;
        }
        Ok(())
    }

    fn input_of(&mut self, rank: u32) -> Result<OwnedFd, Verdict> {
        if rank != 0 {
            return stdin::nothing().map_err(|e| Verdict::system("open /dev/null", e));
        }
        let failed = |e: Errno| Verdict::system("pass standard input on", e);
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        rustix::io::ioctl_fionbio(&ours, true).map_err(failed)?;
        self.input = Some(ours);
        Ok(theirs)
    }

    /// Writes pending input to rank 0; reports when it is written (or rank 0 no longer reads).
    fn pass_input(&mut self) {
        if self.input_waits.is_empty() {
            return;
        }
        let written = match &self.input {
            Some(to) => rustix::io::write(to, &self.input_waits),
            None => Err(Errno::PIPE),
        };
        match written {
            Ok(n) => drop(self.input_waits.drain(..n)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                self.input = None;
                self.input_waits.clear();
            }
        }
        if self.input_waits.is_empty() {
            self.say(&Report::Taken);
        }
    }

    fn kill(&mut self) {
        self.ranks.signal_all(signals::KILL);
        if let Some(started) = &self.started {
            process::sweep(&started.tag);
        }
    }

    /// The job has succeeded: processes that its ranks have started may continue, and are named.
    fn name_those_who_stay(&mut self) {
        let Some(started) = &self.started else { return };
        let stay = process::left_behind(&started.tag, Some(started.guard.pid()));
        if self.ranks.alive() || stay.is_empty() {
            return;
        }
        self.say(&Report::Say(verdict::who_stays(&started.host, &stay)));
        // the last reports: they wait for room
        let _ = rustix::io::ioctl_fionbio(rustix::stdio::stdout(), false);
        let _ = self.push();
    }

    /// The job is over on this host. Its remaining processes are ended, unless mpiexec said that
    /// all was well.
    fn end(mut self, over: Over) {
        if matches!(over, Over::Alone) || self.ranks.alive() {
            self.kill();
        }
        if let Some(started) = self.started {
            started.guard.dismiss();
        }
    }
}

/// A program that was found here.
struct Ready {
    path: PathBuf,
    /// The libraries of other ABIs that it finds first.
    libraries: Libraries,
    words: Vec<OsString>,
    env: Env,
    dir: PathBuf,
}

impl Ready {
    fn new(p: &Program, start: &Start, mark: &str, usable: usize) -> Result<Ready, Verdict> {
        let os = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        let mut words: Vec<OsString> = p.words.iter().map(os).collect();
        let mut base: Env = p.env.iter().map(|(k, v)| (os(k), os(v))).collect();
        let dir = PathBuf::from(os(&p.dir));
        let path = base
            .iter()
            .find(|(k, _)| k == "PATH")
            .map(|(_, v)| v.clone());
        let path = path.or_else(|| std::env::var_os("PATH"));
        let word = words.first().map_or(OsStr::new(""), |w| w.as_os_str());
        let path = match dir.is_dir() {
            true => plan::find(word, None, &dir, path),
            false => Err(plan::no_directory(&dir)),
        };
        let here =
            |v: Verdict| Verdict::new(v.status, format!("on host {}: {}", start.host, v.sentence));
        let path = path.map_err(here)?;
        let arguments = words.get(1..).unwrap_or(&[]);
        libraries::check_architecture(&path, arguments).map_err(here)?;
        let libraries = libraries::serve(&path, arguments, &mut base).map_err(here)?;
        java::serve(&path, &mut words, &mut base);
        Ok(Ready {
            path,
            libraries,
            words,
            env: common_env(
                &base,
                start.size as usize,
                start.tasks.len(),
                &start.job,
                mark,
                usable,
            ),
            dir,
        })
    }
}
