//! Starting the ranks.

use std::io::{self, IsTerminal, Write};
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, epoll, eventfd};

use super::ending::Ending;
use super::hang::Hang;
use super::hosts::Hosts;
use super::identity::Identity;
use super::late::Late;
use super::printing::Printing;
use super::profile::Profile;
use super::streams::Streams;
use super::trace::Trace;
use super::{Common, GATHERING, Job};
use crate::bind;
use crate::claim;
use crate::output::Sink;
use crate::plan::Plan;
use crate::profile::memory::Recorded;
use crate::ranks::{Begin, Env, Source, common_env, mark, too_many, watch};
use crate::remote::{self, Remote};
use crate::sites::Sites;
use crate::stdin::{self, Relay};
use crate::verdict::Verdict;
use kw_base::sync::Arc;
use kw_start::helper::Order;
use kw_start::pmi::{Server, text};
use kw_sys::process::Guard;
use kw_sys::{clock, signals};

/// Signals that are passed on or handled.
const SIGNALS: &[i32] = &[
    signals::CHLD,
    signals::INT,
    signals::TERM,
    signals::HUP,
    signals::QUIT,
    crate::ask::QUESTION,
    signals::USR1,
    signals::USR2,
    signals::TSTP,
    signals::CONT,
];

fn sys<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> Verdict {
    move |e| Verdict::system(what, e)
}

/// Starts everything. After an error nothing is left running.
pub(super) fn launch(plan: Plan, usable: usize) -> Result<Job, Verdict> {
    let name = job_name().map_err(sys("name the job"))?;
    let machine = plan.machines.iter().position(|m| m.here).unwrap_or(0);
    let mark = mark(&name, machine as u32);
    let tag = format!("MPIEXEC_MARK={mark}");
    let guard = kw_sys::process::guard(&tag).map_err(sys("start the guard"))?;
    kw_sys::process::adopt_orphans();
    let signals = signals::take(SIGNALS).map_err(sys("take signals"))?;
    let mut job = empty(plan, &name, tag, guard, signals)?;
    watch(&job.common.hosts.epoll, &job.signals, Source::Signals).map_err(sys("watch signals"))?;
    let watched = job.common.identity.watch(&job.common.hosts.epoll);
    watched.map_err(sys("watch what the parent says"))?;
    let started = bind_here(&mut job.common.plan, &job.guard, usable)
        .and_then(|()| make_room(&mut job.common))
        .and_then(|()| gather(&mut job))
        .and_then(|()| start_all(&mut job.common, &name, &mark, usable));
    if let Err(verdict) = started {
        job.common.hosts.signal_all(signals::KILL);
        job.part(true);
        job.common.hosts.sweep();
        job.guard.dismiss();
        return Err(verdict);
    }
    Ok(job)
}

/// Chooses the processors of the ranks of this machine, and prints the map if requested.
fn bind_here(plan: &mut Plan, guard: &Guard, usable: usize) -> Result<(), Verdict> {
    let here = plan.here();
    let shares = claim::bind(guard, plan.bind, here.len(), usable)?;
    for (rank, cpus) in here.into_iter().zip(shares) {
        let r = &mut plan.ranks[rank];
        if plan.map {
            let (host, app) = (&plan.machines[r.machine].name, &plan.apps[r.app]);
            let line = bind::line(rank as u32, host, &cpus, &app.program, &app.libraries);
            let _ = io::stderr().write_all(line.as_bytes());
        }
        r.cpus = cpus;
    }
    Ok(())
}

/// Distributes the ranks of this machine to helpers on it if the limit of open files is too low for
/// all.
fn make_room(common: &mut Common) -> Result<(), Verdict> {
    let here = common.plan.here();
    let room = common.hosts.here.room();
    if here.len() <= room {
        return Ok(());
    }
    // A helper itself has no more files open than we have.
    if here.len() > room * room {
        return Err(too_many(here.len(), room * room));
    }
    common.plan.share_out(room);
    Ok(())
}

/// Connects to all other hosts at once, before anything is started anywhere.
fn gather(job: &mut Job) -> Result<(), Verdict> {
    let Common { plan, hosts, .. } = &mut job.common;
    for machine in 0..plan.machines.len() {
        if !plan.machines[machine].here && plan.on(machine).next().is_some() {
            let remote = Remote::start(plan, machine, &hosts.epoll, hosts.here.files())?;
            hosts.away.push(remote);
        }
    }
    let until = clock::now() + GATHERING;
    job.common.ending.phases.gather(until);
    while !job.common.hosts.away.iter().all(Remote::is_ready) {
        job.turn()?;
        if let Some(verdict) = job.common.ending.phases.take_verdict() {
            return Err(verdict);
        }
        let mut away = job.common.hosts.away.iter();
        if let Some(late) = away.find(|r| !r.is_ready() && clock::now() >= until) {
            return Err(late.unreached(format_args!("no answer in {} s", GATHERING.as_secs())));
        }
    }
    job.common.ending.phases.run();
    Ok(())
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
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let written = eventfd(0, flags).map_err(sys("make an eventfd"))?;
    let written = Arc::new(written);
    let key = kw_sys::random::key().map_err(sys("make the job's key"))?;
    let appnums: Vec<i32> = plan.ranks.iter().map(|r| r.app as i32).collect();
    let server = Server::new(
        name,
        Some(&key),
        &appnums,
        &plan.hosts,
        plan.ranks.len() as i32,
    );
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(sys("make an epoll"))?;
    let sinks = [
        Sink::new(own(1)?, written.clone()),
        Sink::new(own(2)?, written.clone()),
    ];
    let ranks = plan.ranks.len();
    let until = plan.timeout.map(|t| clock::now() + t);
    Ok(Job {
        effects: Vec::new(),
        signals,
        hang: Hang::new(ranks, plan.end_hung, until),
        profile: Profile::new(plan.profile),
        trace: Trace::new(&plan)?,
        late: Late::new(kw_sys::environment::variable("KW_RENDEZVOUS_WAIT").as_deref()),
        guard,
        common: Common {
            identity: Identity::new(name.into()),
            server,
            ending: Ending::new(ranks),
            hosts: Hosts::new(epoll, tag),
            streams: Streams {
                printing: Printing::new(ranks, plan.label, sinks),
                written,
                relay: Relay::none(),
            },
            sites: Sites::default(),
            plan,
        },
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

fn start_all(common: &mut Common, name: &str, mark: &str, usable: usize) -> Result<(), Verdict> {
    let here = common.plan.here();
    common.hosts.here.check_files(here.len())?;
    common.hosts.here.wrap(common.plan.wraps.clone());
    let recorded = Recorded {
        counted: common.plan.profile,
        traced: common.plan.trace.is_some(),
    };
    if (recorded.counted || recorded.traced) && !here.is_empty() {
        common.hosts.here.record(here.len(), recorded)?;
    }
    let reader = common.plan.reader;
    let has_terminal = common.plan.debug && std::io::stdin().is_terminal();
    let (mine, relay) = match here.contains(&reader) {
        _ if common.identity.has_parent() => (nothing()?, Relay::none()),
        true if has_terminal => (
            stdin::own().map_err(sys("use the terminal"))?,
            Relay::none(),
        ),
        true => stdin::for_rank().map_err(sys("pass standard input on"))?,
        false => (nothing()?, Relay::away()),
    };
    common.streams.relay = relay;
    let mut mine = Some(mine);
    let size = common.plan.ranks.len();
    let apps = common.plan.apps.iter();
    let envs: Vec<Env> = apps
        .map(|a| common_env(&a.env, size, here.len(), name, mark, usable))
        .collect();
    for rank in here {
        let input = match mine.take_if(|_| rank == reader) {
            Some(input) => input,
            None => nothing()?,
        };
        start_one(common, rank, input, has_terminal && rank == reader, &envs)?;
    }
    for remote in &mut common.hosts.away {
        let orders = remote::orders(&common.plan, remote.machine as usize, name)?;
        let has_rank_0 = orders.tasks.iter().any(|t| t.rank == 0);
        remote.say(&common.hosts.epoll, &Order::Start(orders));
        if has_rank_0 && reader != 0 {
            remote.say(&common.hosts.epoll, &Order::Input(Vec::new()));
        }
    }
    Ok(())
}

fn nothing() -> Result<OwnedFd, Verdict> {
    stdin::nothing().map_err(sys("open /dev/null"))
}

fn start_one(
    common: &mut Common,
    rank: usize,
    input: OwnedFd,
    has_terminal: bool,
    envs: &[Env],
) -> Result<(), Verdict> {
    let plan = &common.plan.ranks[rank];
    let app = &common.plan.apps[plan.app];
    let begin = Begin {
        rank: rank as u32,
        program: &app.program,
        words: &app.words,
        env: &envs[plan.app],
        local: common.plan.local(rank),
        dir: app.dir.as_deref(),
        cpus: &plan.cpus,
        input,
        has_terminal,
        host: &common.plan.machines[plan.machine].name,
    };
    common.hosts.here.start(&common.hosts.epoll, begin)
}
