//! Reports of long waits to this rank's launcher ([`kw_hang`]): unasked once a wait has lasted for
//! `KW_HANG` seconds, and whenever the launcher asks.
//!
//! Called in the waiting thread, with the lock held, a few times a second at most
//! ([`kw_engine::Lasting`]). Without a launcher that understands the report, the rank writes it to
//! its log (`KW_LOG=info`).

use crate::comm::Comm;
use crate::handle::CommH;
use crate::purpose::Purpose;
use crate::state::{State, Tables};
use kw_base::settings::Id;
use kw_base::{ContextId, Peer, Tick};
use kw_engine::{ChannelId, Engine, Lasting};
use kw_hang::{Kind, Other, Report, Wait, communicator};
use kw_sys::callers::{self, Caller};
use kw_types::comm::Group;
use std::time::Duration;

/// How soon the waiting thread looks for a question after it has sent a report: the launcher asks
/// again before it prints anything.
const SOON: Duration = Duration::from_millis(50);
/// How long it does so.
const ATTENTIVE: Duration = Duration::from_secs(3);
/// Largest interval between unsuccessful polls of the same series.
const PAUSE: Duration = Duration::from_millis(500);
/// Most communicators and most calls of the program in a report.
const MOST_COMMS: usize = 64;
const MOST_FRAMES: usize = 8;

/// The reports.
#[derive(Debug, Default)]
pub struct Teller {
    /// The wait that was reported unasked, identified by its start.
    reported: Option<Tick>,
    /// Time of the last report.
    last: Option<Tick>,
    /// Start and last time of the program's series of unsuccessful polls.
    looks: Option<(Tick, Tick)>,
    /// What the thread waits for when no message can end the wait.
    waits_for: Option<String>,
}

/// Handles a thread that has waited for long; returns how long it may sleep until it calls this
/// again.
#[cold]
pub fn on_lasting(state: &mut State, mut lasting: Lasting<'_>) -> Duration {
    let Some(engine) = &mut state.engine else {
        return Duration::MAX;
    };
    let limit = engine.settings().seconds(Id::Hang);
    let asked = engine.launcher().asked();
    let teller = &mut state.above.teller;
    if lasting.polls {
        lasting.since = teller.looks_since(lasting.now);
    }
    let waited = lasting.now.since(lasting.since);
    let late = limit.is_some_and(|limit| waited >= limit) && teller.reported != Some(lasting.since);
    if asked.is_some() || late {
        if asked.is_none() {
            teller.reported = Some(lasting.since);
        }
        teller.last = Some(lasting.now);
        tell(state, &lasting, asked.unwrap_or(0));
    }
    let teller = &state.above.teller;
    match (teller.last, limit) {
        (Some(last), _) if lasting.now.since(last) < ATTENTIVE => SOON,
        (_, Some(limit)) if waited < limit => limit - waited,
        _ => Duration::MAX,
    }
}

impl Teller {
    /// Notes that a thread waits for something that no message brings, or no longer does.
    pub fn waits_for(&mut self, what: Option<String>) {
        self.waits_for = what;
    }

    fn looks_since(&mut self, now: Tick) -> Tick {
        let since = match self.looks {
            Some((since, last)) if now.since(last) < PAUSE => since,
            _ => now,
        };
        self.looks = Some((since, now));
        since
    }
}

/// Reports the wait.
fn tell(state: &mut State, lasting: &Lasting<'_>, round: u32) {
    let mut report = Report {
        round,
        ..Report::default()
    };
    let Some(engine) = &mut state.engine else {
        return;
    };
    lasting.report(engine, &mut report);
    (report.call, report.frames) = program(callers::callers());
    let channel = lasting.on.shm_region.map(|w| w.channel());
    number(&mut report, &state.above, channel);
    report.comms = comms(&report, &state.above);
    report.others = others(&report, state);
    report.waits_for = state.above.teller.waits_for.clone().unwrap_or_default();
    report.mark = state.mark();
    let Some(engine) = &mut state.engine else {
        return;
    };
    if !engine.launcher().tell(&report.encode()) && round == 0 {
        say(engine, &report);
    }
}

/// The processes of other jobs that a report names.
fn others(report: &Report, state: &State) -> Vec<Other> {
    let Some(engine) = &state.engine else {
        return Vec::new();
    };
    let runs = report.runs.iter().flat_map(|r| &r.waits);
    let waits = report.waits.iter().chain(runs).filter_map(|w| w.peer);
    let members = report.comms.iter().flat_map(|c| c.members.iter().copied());
    let named = waits
        .chain(report.early.iter().map(|e| e.from))
        .chain(members);
    let mut others: Vec<u32> = named.filter(|&p| p >= engine.job.size()).collect();
    others.sort_unstable();
    others.dedup();
    let other = |number: u32| {
        let world = engine.job.worlds.of(Peer(number))?;
        Some(Other {
            number,
            rank: world.rank_of(Peer(number))?,
            job: world.name.to_string(),
        })
    };
    others
        .into_iter()
        .filter_map(other)
        .take(MOST_COMMS)
        .collect()
}

/// Writes the report to the log, because there is no launcher to send it to.
fn say(engine: &mut Engine, report: &Report) {
    if !engine.launcher().listens() {
        let text = kw_hang::line(engine.job.me.0, report);
        tracing::info!("{text}");
    }
}

/// The function of MPI that the program has called, and where it did. A function that leaves all
/// work to another one is not among the callers: then the name is empty, and the library's last
/// frame comes first.
pub(crate) fn program(callers: Vec<Caller>) -> (String, Vec<kw_hang::Frame>) {
    // Calls of the recorder of `mpiexec --profile` do not count.
    let recorder = |c: &Caller| c.file.ends_with("/libkw_profile.so");
    let callers: Vec<Caller> = callers.into_iter().filter(|c| !recorder(c)).collect();
    let name = |c: &Caller| c.function.as_deref().and_then(function);
    let named = callers.iter().rposition(|c| name(c).is_some());
    let here = callers.first().map_or("", |c| &c.file);
    let inside = callers.iter().rposition(|c| c.file == here);
    let call = named.or(inside.and_then(|at| at.checked_sub(1)));
    let named = named.and_then(|at| name(&callers[at]));
    let layers = ["/libmpifort", "/libmpi_java"];
    let bindings = |c: &&Caller| !layers.iter().any(|l| c.file.contains(l));
    let rest = callers.iter().skip(call.map_or(0, |at| at + 1));
    let frames = rest.filter(bindings).take(MOST_FRAMES);
    let frames = frames.map(|c| kw_hang::Frame {
        file: c.file.clone(),
        offset: c.offset,
    });
    (named.unwrap_or_default(), frames.collect())
}

/// The name of a function of MPI, without the letters for tools and for large counts.
fn function(name: &str) -> Option<String> {
    let name = name.strip_prefix('P').unwrap_or(name);
    let rest = name.strip_prefix("MPI_")?;
    Some(format!("MPI_{}", rest.strip_suffix("_c").unwrap_or(rest)))
}

/// Adds the number of a blocking collective among its communicator's calls, from which the launcher
/// finds out which ranks have arrived.
fn number(report: &mut Report, tables: &Tables, channel: Option<ChannelId>) {
    for wait in report
        .waits
        .iter_mut()
        .filter(|w| w.kind == Kind::Collective)
    {
        if let Some(channel) = channel {
            match all(tables).find(|c| c.shm_region.id() == Some(channel)) {
                Some(comm) => {
                    (wait.context, wait.tag) = (comm.context.collective().0, Some(comm.collectives))
                }
                None => *wait = Wait::OTHER,
            }
            continue;
        }
        let comm = of_context(tables, wait.context);
        wait.tag = match wait.tag {
            // The first collective agrees on a shm region before it begins.
            tag if tag == Some(Purpose::ShmRegion.tag()) => comm.map(|c| c.collectives),
            tag if is_of_calls(wait.context) => tag.filter(|&t| t >= 0),
            _ => None,
        };
    }
}

/// Whether collective calls, which are numbered, use this context, rather than the creation of
/// communicators.
fn is_of_calls(context: u32) -> bool {
    ContextId(communicator(context)).collective().0 == context
}

fn all(tables: &Tables) -> impl Iterator<Item = &Comm> {
    let own = tables.comms.world.iter().chain(&tables.comms.itself);
    own.chain(tables.comms.made.iter().map(|(_, c)| c))
}

fn of_context(tables: &Tables, context: u32) -> Option<&Comm> {
    all(tables).find(|c| c.context.0 == communicator(context))
}

/// The communicators: those of the wait and the messages with all that is known.
fn comms(report: &Report, tables: &Tables) -> Vec<kw_hang::Comm> {
    let waits = report.waits.iter().map(|w| w.context);
    let runs = report.runs.iter().map(|r| r.context);
    let early = report.early.iter().map(|e| e.context);
    let locks = report.locks.iter().map(|l| l.context);
    let concerned: Vec<u32> = waits
        .chain(runs)
        .chain(early)
        .chain(locks)
        .map(communicator)
        .collect();
    let is = |c: &&Comm| concerned.contains(&c.context.0);
    let first = all(tables).filter(is).map(|c| in_full(tables, c));
    let rest = all(tables).filter(|c| !is(c)).map(in_short);
    first.chain(rest).take(MOST_COMMS).collect()
}

fn in_short(comm: &Comm) -> kw_hang::Comm {
    kw_hang::Comm {
        context: comm.context.0,
        calls: comm.collectives,
        ..kw_hang::Comm::default()
    }
}

fn in_full(tables: &Tables, comm: &Comm) -> kw_hang::Comm {
    let ranks = |group: &Group| group.iter().map(|Peer(p)| p).collect::<Vec<u32>>();
    let mut members = ranks(&comm.local);
    members.extend(comm.remote.iter().flat_map(|r| ranks(r)));
    kw_hang::Comm {
        name: name(tables, comm, &members),
        senders: ranks(comm.target()),
        members,
        ..in_short(comm)
    }
}

/// Name of the communicator with this context.
pub(crate) fn comm_name(tables: &Tables, context: u32) -> String {
    match of_context(tables, context) {
        Some(comm) => in_full(tables, comm).name,
        None => "a communicator that was freed".into(),
    }
}

fn name(tables: &Tables, comm: &Comm, members: &[u32]) -> String {
    let mut windows = tables.windows.iter();
    if let Some((_, window)) = windows.find(|(_, w)| w.comm == comm.handle) {
        return match window.name.as_str() {
            "" => format!(
                "a window of {}",
                kw_hang::Ranges::new(members.iter().copied()).named()
            ),
            name => format!("window '{name}'"),
        };
    }
    if !comm.name.is_empty() {
        return comm.name.clone();
    }
    match comm.handle {
        CommH::WORLD => "MPI_COMM_WORLD".into(),
        CommH::SELF => "MPI_COMM_SELF".into(),
        _ => {
            let kind = if comm.is_inter() {
                "an intercommunicator"
            } else {
                "a communicator"
            };
            let ranks = kw_hang::Ranges::new(members.iter().copied());
            format!("{kind} of {}", ranks.named())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(function: Option<&str>, file: &str) -> Caller {
        Caller {
            function: function.map(str::to_string),
            file: file.into(),
            offset: 16,
        }
    }

    #[test]
    fn the_outermost_function_of_mpi_is_what_the_program_called() {
        let all = vec![
            caller(None, "/lib/libmpi_abi.so.1"),
            caller(Some("MPI_Recv"), "/lib/libmpi_abi.so.1"),
            caller(Some("PMPI_Recv_c"), "/lib/libmpi_abi.so.1"),
            caller(Some("mpi_recv_"), "/lib/libmpifort_abi.so.1"),
            caller(None, "/home/me/a.out"),
        ];
        let (call, frames) = program(all);
        assert_eq!(call, "MPI_Recv");
        let files: Vec<_> = frames.iter().map(|f| &f.file[..]).collect();
        assert_eq!(files, ["/home/me/a.out"]);
        let last = vec![
            caller(None, "/lib/libmpi_abi.so.1"),
            caller(None, "/lib/libmpi_abi.so.1"),
            caller(None, "/home/me/a.out"),
        ];
        let (call, frames) = program(last);
        assert!(call.is_empty() && frames[0].file.ends_with("abi.so.1"));
        assert_eq!(frames.len(), 2);
        assert_eq!(function("main"), None);
    }

    #[test]
    fn what_java_called_is_no_function_of_its_layer() {
        let all = vec![
            caller(None, "/lib/libmpi_abi.so.1"),
            caller(Some("MPI_Recv"), "/lib/libmpi_abi.so.1"),
            caller(
                Some("Java_mpi_internal_Jni_MPI_1Recv"),
                "/lib/libmpi_java.so",
            ),
            caller(None, "java:Ring.java:Ring.main"),
        ];
        let (call, frames) = program(all);
        assert_eq!((&call[..], frames.len()), ("MPI_Recv", 1));
        assert_eq!(
            (&frames[0].file[..], frames[0].offset),
            ("java:Ring.java:Ring.main", 16)
        );
    }

    #[test]
    fn looks_that_follow_each_other_are_one_row() {
        let mut teller = Teller::default();
        let at = |ms| Tick(1) + Duration::from_millis(ms);
        assert_eq!(teller.looks_since(at(0)), at(0));
        assert_eq!(teller.looks_since(at(400)), at(0));
        assert_eq!(teller.looks_since(at(1000)), at(1000));
    }
}
