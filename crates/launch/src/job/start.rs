//! Starting the ranks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::events::{Source, watch};
use super::{Job, Phase, Pipe, Rank};
use crate::output::{Sink, Splitter};
use crate::plan::{self, Plan};
use crate::stdin;
use crate::verdict::{CANNOT_EXECUTE, NOT_FOUND, Verdict};
use kw_core::pmi::{Server, text};
use kw_sys::process::{Guard, Start};
use kw_sys::signals;

/// Signals that are passed on or handled.
const SIGNALS: &[i32] = &[
    signals::CHLD,
    signals::INT,
    signals::TERM,
    signals::HUP,
    signals::QUIT,
    signals::USR1,
    signals::USR2,
    signals::TSTP,
    signals::CONT,
];

fn sys<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Verdict {
    move |e| Verdict::system(what, e)
}

/// Starts everything. On an error nothing is left running.
pub(super) fn launch(plan: Plan, usable: usize) -> Result<Job, Verdict> {
    let name = job_name().map_err(sys("name the job"))?;
    let tag = format!("MPIEXEC_JOB={name}");
    let guard = kw_sys::process::guard(&tag).map_err(sys("start the guard"))?;
    kw_sys::process::adopt_orphans();
    let signals = signals::take(SIGNALS).map_err(sys("take signals"))?;
    let mut job = empty(plan, &name, tag, guard, signals)?;
    watch(&job.epoll, &job.signals, Source::Signals).map_err(sys("watch signals"))?;
    let files = raise_files();
    let started = start_all(&mut job, &name, usable, files);
    if let Err(verdict) = started {
        job.kill_all();
        kw_sys::process::sweep(&job.tag);
        return Err(verdict);
    }
    Ok(job)
}

fn job_name() -> io::Result<String> {
    let mut tail = [0; 8];
    kw_sys::random::fill(&mut tail)?;
    Ok(format!("kw-{}-{}", std::process::id(), text::hex(&tail)))
}

fn empty(
    plan: Plan,
    name: &str,
    tag: String,
    guard: Guard,
    signals: signals::Signals,
) -> Result<Job, Verdict> {
    let key = kw_sys::random::key().map_err(sys("make the job's key"))?;
    let appnums: Vec<i32> = plan.ranks.iter().map(|r| r.app as i32).collect();
    let server = Server::new(name, &key, &appnums, &plan.hosts, plan.ranks.len() as i32);
    Ok(Job {
        host: kw_sys::host::name(),
        server,
        tag,
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(sys("make an epoll"))?,
        signals,
        ranks: Vec::with_capacity(plan.ranks.len()),
        pids: HashMap::new(),
        sinks: [Sink::new(own(1)?), Sink::new(own(2)?)],
        relay: None,
        relay_watched: false,
        phase: Phase::Running,
        verdict: None,
        asked: None,
        guard,
        effects: Vec::new(),
        out_blocked: false,
        flush_at: None,
        plan,
    })
}

/// A descriptor of our own standard output or error; `/dev/null` when it was closed.
fn own(number: i32) -> Result<std::fs::File, Verdict> {
    let fd = match number {
        1 => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3),
        _ => rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3),
    };
    match fd {
        Ok(fd) => Ok(fd.into()),
        Err(_) => std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .map_err(sys("open /dev/null")),
    }
}

/// Raises our limit of open files as far as it goes; the old one, which ranks get back.
fn raise_files() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let high = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    setrlimit(Resource::Nofile, high).ok()?;
    now.current
}

fn start_all(job: &mut Job, name: &str, usable: usize, files: Option<u64>) -> Result<(), Verdict> {
    let (input, relay) = stdin::for_rank_0().map_err(sys("pass standard input on"))?;
    job.relay = relay;
    let mut input = Some(input);
    let envs = environments(job, name, usable);
    for rank in 0..job.plan.ranks.len() {
        let input = match input.take() {
            Some(i) => i,
            None => stdin::nothing().map_err(sys("open /dev/null"))?,
        };
        start_one(job, rank, input, &envs, files)?;
    }
    Ok(())
}

type Env = Vec<(OsString, OsString)>;

/// The environment of each program, without what differs by rank.
fn environments(job: &Job, name: &str, usable: usize) -> Vec<Env> {
    let one = |app: &plan::AppPlan| {
        let mut env = app.env.clone();
        let size = job.plan.ranks.len().to_string();
        for (k, v) in [("PMI_SIZE", size.as_str()), ("MPIEXEC_JOB", name)] {
            env.push((k.into(), v.into()));
        }
        if !env.iter().any(|(k, _)| k == "KW_CPUS") {
            env.push(("KW_CPUS".into(), usable.to_string().into()));
        }
        env
    };
    job.plan.apps.iter().map(one).collect()
}

fn rank_env(job: &Job, rank: usize, fd: i32, base: &Env) -> Env {
    let (all, before) = job.plan.local(rank);
    let mut env = base.clone();
    for (name, value) in [
        ("PMI_RANK", rank.to_string()),
        ("PMI_ID", rank.to_string()),
        ("PMI_FD", fd.to_string()),
        ("MPI_LOCALNRANKS", all.to_string()),
        ("MPI_LOCALRANKID", before.to_string()),
    ] {
        env.push((name.into(), value.into()));
    }
    env
}

fn start_one(
    job: &mut Job,
    rank: usize,
    input: OwnedFd,
    envs: &[Env],
    files: Option<u64>,
) -> Result<(), Verdict> {
    let many = |e: rustix::io::Errno| Verdict::system(&format!("open the pipes of rank {rank}"), e);
    let (wire, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(many)?;
    let (out_r, out_w) = pipe_with(PipeFlags::CLOEXEC).map_err(many)?;
    let (err_r, err_w) = pipe_with(PipeFlags::CLOEXEC).map_err(many)?;
    for fd in [&wire, &out_r, &err_r] {
        rustix::io::ioctl_fionbio(fd, true).map_err(many)?;
    }
    let plan = &job.plan.ranks[rank];
    let app = &job.plan.apps[plan.app];
    let number = std::os::fd::AsRawFd::as_raw_fd(&theirs);
    let env = rank_env(job, rank, number, &envs[plan.app]);
    let pid = kw_sys::process::start(Start {
        program: &app.program,
        arg0: &app.words[0],
        args: &app.words[1..],
        env: &env,
        dir: app.dir.as_deref(),
        stdio: [input, out_w, err_w],
        keep: theirs.as_fd(),
        cpus: &plan.cpus,
        files,
    })
    .map_err(|e| cannot_start(job, rank, &e))?;
    let label = job.plan.label.then(|| format!("[{rank}] "));
    let pipe = |fd| {
        Some(Pipe {
            fd,
            splitter: Splitter::new(label.clone()),
        })
    };
    job.pids.insert(pid, rank as u32);
    job.ranks.push(Rank {
        pid,
        wire: Some(wire),
        unsent: Vec::new(),
        pipes: [pipe(out_r), pipe(err_r)],
        ended: None,
    });
    watch_rank(job, rank).map_err(many)
}

fn watch_rank(job: &Job, rank: usize) -> rustix::io::Result<()> {
    let r = &job.ranks[rank];
    if let Some(wire) = &r.wire {
        watch(&job.epoll, wire, Source::Wire(rank as u32))?;
    }
    for (which, pipe) in r.pipes.iter().enumerate() {
        if let Some(pipe) = pipe {
            watch(&job.epoll, &pipe.fd, Source::Output(rank as u32, which))?;
        }
    }
    Ok(())
}

fn cannot_start(job: &Job, rank: usize, error: &io::Error) -> Verdict {
    let app = &job.plan.apps[job.plan.ranks[rank].app];
    let word = app.words[0].to_string_lossy();
    let status = match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_EXECUTE,
    };
    let hint = match error.kind() {
        io::ErrorKind::NotFound => " (is its interpreter there?)",
        _ => "",
    };
    Verdict::new(
        status,
        format!(
            "cannot start rank {rank} on {}: '{word}': {error}{hint}",
            job.host
        ),
    )
}
