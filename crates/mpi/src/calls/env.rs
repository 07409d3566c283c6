//! Initialisation, thread levels, finalisation, abort, CPU name (MPI 5.0, 9.1 and 11).

use kw_base::settings::{self, Id, Settings};
use kw_base::{ContextId, Key, Peer};
use kw_engine::{Engine, ProgressLock, ReqId, SendMode, Started, WaitOn, Want};
use kw_hang::Frame;
use kw_objects::attributes::of_job;
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::CommH;
use kw_objects::info;
use kw_objects::left::never_received;
use kw_objects::life::{Kept, World};
use kw_objects::state::{Guard, Mpi, Tables};
use kw_objects::tool::cvar::Cvars;
use kw_sys::args::{Out, OutText};
use kw_sys::buf::Buf;
use kw_sys::huge_pages::{self, Policy};
use kw_sys::{crash, environment, log, terminated};
use std::fmt::Display;

/// MPI_THREAD_SINGLE
const THREAD_SINGLE: i32 = 0;
/// MPI_THREAD_MULTIPLE
const THREAD_MULTIPLE: i32 = 4096;
/// MPI_MAX_PROCESSOR_NAME
const MAX_PROCESSOR_NAME: usize = 256;
/// Tag of the library's own last synchronisation (negative: no receive of the user sees it).
const FAREWELL: i32 = -7;
/// Tag of the message that every rank sends to every other before it reports what is left
/// (KW_CHECK).
const MEETING: i32 = -9;
/// Largest number of ranks that do this.
const MOST_THAT_MEET: u32 = 512;
/// How long a thread that ends the job waits for the lock: its owner may never release it.
const LOCK_WAIT: std::time::Duration = std::time::Duration::from_millis(200);
/// Context of that synchronisation: the collective one of MPI_COMM_WORLD.
const WORLD_COLLECTIVE: ContextId = ContextId(1);

/// MPI_Init
pub fn init(mpi: &Mpi, argc: usize, argv: usize) -> Res {
    let _ = (argc, argv);
    open_world(mpi, THREAD_SINGLE).map(|_| ())
}

/// MPI_Init_thread
pub fn init_thread(mpi: &Mpi, argc: usize, argv: usize, required: i32, provided: Out<i32>) -> Res {
    let _ = (argc, argv);
    if !(THREAD_SINGLE..=THREAD_MULTIPLE).contains(&required) {
        return fail!(Arg: "required is {required}, which is not a thread level");
    }
    provided.set(open_world(mpi, required)?);
    Ok(())
}

fn open_world(mpi: &Mpi, level: i32) -> Res<i32> {
    let mut guard = mpi.lock();
    match guard.above.life.world {
        World::Before => {}
        World::Open => return fail(Class::Other, "MPI is initialised already"),
        World::Finalized => {
            return fail!(Other: "MPI was finalised and cannot be initialised again");
        }
    }
    enter(&mut guard)?;
    let (me, size) = whoami(&guard)?;
    guard.above.comms.open_world(me, size);
    guard.above.infos.env = info::of_start(Vec::new(), Some(size), Some(level));
    if let Some(engine) = &mut guard.engine {
        engine.departed.set_threads(level == THREAD_MULTIPLE);
    }
    let life = &mut guard.above.life;
    life.world = World::Open;
    life.level = level;
    life.main = Some(std::thread::current().id());
    let when_open = life.when_open;
    drop(guard);
    mpi.set_active(true);
    if let Some(act) = when_open {
        act(mpi)?;
    }
    Ok(level)
}

/// The predefined attributes of communicators, in the world model and in that of sessions (MPI 5.0,
/// 9.1.2).
fn predefine(guard: &mut Guard<'_>) {
    let Some(engine) = guard.engine.as_mut() else {
        return;
    };
    let info = engine.launcher().info();
    let (appnum, universe) = (info.appnum, info.universe_size);
    let values = of_job(engine.job.hosts(), appnum, universe);
    guard.above.attributes.predefine(values);
    let last = guard.above.codes.last();
    guard.above.attributes.set_last_used_code(last);
}

/// Reason why no session can be opened any more.
const LOST: &str = "the launcher does not take this process back, which has left its job: open a session before MPI_Finalize is \
                    called, then further ones may follow";

/// Starts the engine for the world or for a session, if there is none. Pair with [`leave`].
/// Collective over the job when it starts the engine: all ranks exchange their locations.
pub(crate) fn enter(guard: &mut Guard<'_>) -> Res {
    if guard.engine.is_none() {
        let life = &mut guard.above.life;
        let engine = match life.ready.take() {
            Some(engine) => engine,
            None => {
                if life.lost {
                    return fail(Class::Other, LOST);
                }
                let kept = life.kept.take();
                start(kept, &guard.above.tool.cvars)?
            }
        };
        guard.above.checking = engine.job.agreed().checks();
        guard.above.buffers.types = guard.above.checking;
        guard.above.ops.strict = guard.above.checking;
        guard.engine = Some(engine);
        guard
            .open()
            .map_err(|e| Fault::new(Class::Other, format!("no way to sleep: {e}")))?;
        guard.hear_of_long_waits(kw_objects::hang::on_lasting);
        predefine(guard);
    }
    guard.above.life.users += 1;
    Ok(())
}

/// Values set by a tool override the environment.
fn start(kept: Option<Kept>, set: &Cvars) -> Res<Engine> {
    let other = |why: &dyn Display| Fault::new(Class::Other, why.to_string());
    let mut settings = Settings::read(environment::variable).map_err(|e| other(&e))?;
    set.lay_over(&mut settings);
    log::install(settings.choice(Id::Log));
    say_what_is_set(&settings);
    let mut launcher = match kept {
        Some(kept) => kept.launcher,
        None => kw_boot::connect(&environment::variable).map_err(|e| other(&e))?,
    };
    log::name(launcher.rank());
    let joined = kw_engine::join(launcher.as_mut(), &settings).map_err(|e| other(&e))?;
    let net =
        kw_networks::open(joined.network(launcher.as_ref(), &settings)).map_err(|e| other(&e))?;
    let (backtrace, huge_pages) = (settings.flag(Id::Backtrace), settings.flag(Id::HugePages));
    let engine = Engine::start(launcher, joined, net, settings).map_err(|e| other(&e))?;
    if backtrace {
        crash::install(who_hears(environment::variable), engine.job.me.0);
    }
    terminated::install();
    if engine.job.me == Peer(0) {
        warn_of_misspelt();
        if huge_pages && let Some(why) = lacks_huge_pages() {
            tracing::warn!("KW_HUGE_PAGES has no effect: {why}");
        }
    }
    Ok(engine)
}

/// The settings that are not at their defaults.
fn say_what_is_set(settings: &Settings) {
    for (setting, at) in settings::ALL.iter().zip(0..) {
        if settings.at(at) != setting.default {
            tracing::debug!("{} is {}", setting.name, settings.at(at));
        }
    }
}

/// Warns of unknown settings; rank 0 does it for all.
fn warn_of_misspelt() {
    for (name, _) in std::env::vars_os() {
        if let Some(sentence) = name.to_str().and_then(settings::misspelt) {
            tracing::warn!("{sentence}");
        }
    }
}

/// Reason why malloc of this process does not ask for huge pages, and gets none.
fn lacks_huge_pages() -> Option<&'static str> {
    let tunables = environment::variable(huge_pages::VARIABLE).unwrap_or_default();
    match Policy::here() {
        Policy::Always => None,
        Policy::Never => Some(
            "the kernel has huge pages turned off (/sys/kernel/mm/transparent_hugepage/enabled)",
        ),
        Policy::Madvise if tunables.contains(huge_pages::ASKED) => None,
        Policy::Madvise => Some(
            "malloc was not configured; mpiexec does so if one huge page per rank is a small part of the host's memory; under other launchers set GLIBC_TUNABLES=glibc.malloc.hugetlb=1",
        ),
    }
}

/// Only our own mpiexec understands a crash report on the rank's socket.
fn who_hears(env: impl Fn(&str) -> Option<String>) -> crash::Tell {
    let socket = env("PMI_FD").and_then(|n| n.parse().ok());
    match (env("MPIEXEC_JOB"), socket) {
        (Some(_), Some(socket)) => crash::Tell::Launcher(socket),
        _ => crash::Tell::People,
    }
}

fn whoami(guard: &Guard<'_>) -> Res<(Peer, u32)> {
    let engine = guard.engine.as_ref();
    let engine = engine.ok_or_else(|| Fault::new(Class::Intern, "no engine after its start"))?;
    Ok((engine.job.me, engine.job.size()))
}

/// Removes a user of the engine; the last one leaves the job. Collective over the job when it is
/// the last.
pub(crate) fn leave(mpi: &Mpi) -> Res {
    let mut guard = mpi.lock();
    guard.above.life.users = guard.above.life.users.saturating_sub(1);
    if guard.above.life.users > 0 {
        return Ok(());
    }
    guard.above.life.left = true;
    mpi.set_active(false);
    guard = farewell(mpi, guard)?;
    guard.stop_event_thread();
    kw_objects::tool::pvar::leave(&mut guard);
    let Some(mut engine) = guard.engine.take() else {
        return Ok(());
    };
    forget(&mut guard.above);
    let sessions = guard.above.life.sessions;
    drop(guard);
    crash::remove();
    terminated::remove();
    if engine.settings().flag(Id::Stats) {
        print_counters(&engine);
    }
    engine.close();
    let keeps = sessions && !engine.launcher().takes_back();
    let mut launcher = engine.into_launcher();
    if keeps {
        mpi.lock().above.life.kept = Some(Kept::new(launcher));
        return Ok(());
    }
    mpi.lock().above.life.lost = !launcher.takes_back();
    launcher
        .finalize()
        .map_err(|e| Fault::new(Class::Other, e.to_string()))
}

/// Handles the end of the process: what was kept for later sessions ends as well.
pub fn end_process(mpi: &Mpi) {
    // no lock is kept while MPI is up; a thread that calls exit then may hold it
    if mpi.is_active() {
        return;
    }
    let kept = mpi.lock().above.life.kept.take();
    if let Some(kept) = kept {
        kept.finish();
    }
}

/// Drops the objects of an engine that is gone: a later session starts another one.
fn forget(tables: &mut Tables) {
    let comms: Vec<Key> = tables.comms.made.iter().map(|(key, _)| key).collect();
    for key in comms {
        // Each is in the table.
        let _ = tables.remove_comm(CommH::from_key(key));
    }
    tables.comms.contexts = None;
    tables.parent = None;
    tables.requests.clear();
    tables.files.retain(|_| false);
    tables.messages.retain(|_| false);
    tables.buffers.clear();
}

fn print_counters(engine: &Engine) {
    let all = engine.counters().into_iter().filter(|c| c.1 != 0);
    let words: Vec<String> = all.map(|(name, value)| format!("{name} {value}")).collect();
    eprintln!("rank {}: {}", engine.job.me, words.join(", "));
}

/// Waits until everything this rank has sent is out, and every rank has called this: up a binomial
/// tree to rank 0, and down again.
fn farewell<'a>(mpi: &'a Mpi, guard: Guard<'a>) -> Res<Guard<'a>> {
    let mut guard = last_words(mpi, guard);
    if let Some(engine) = &mut guard.engine {
        engine.messages.leave_job();
    }
    let (me, size) = whoami(&guard)?;
    let (me, parent) = (me.0, me.0 & me.0.wrapping_sub(1));
    let mut step = 1;
    let mut children = Vec::new();
    while me & step == 0 && step < size {
        if me + step < size {
            children.push(me + step);
        }
        step <<= 1;
    }
    for &c in &children {
        guard = hear(mpi, guard, c, FAREWELL);
    }
    if me != 0 {
        say(&mut guard, parent, FAREWELL);
        guard = hear(mpi, guard, parent, FAREWELL);
    }
    for &c in children.iter().rev() {
        say(&mut guard, c, FAREWELL);
    }
    Ok(last_words(mpi, guard))
}

/// Waits until all sent messages have left.
fn last_words<'a>(mpi: &'a Mpi, guard: Guard<'a>) -> Guard<'a> {
    let idle = |e: Option<&mut Engine>| e.is_none_or(|e| !e.messages.pending());
    mpi.lock
        .wait(guard, WaitOn::default(), |s| idle(s.engine.as_mut()))
}

fn say(guard: &mut Guard<'_>, to: u32, tag: i32) {
    let Some(engine) = guard.engine.as_mut() else {
        return;
    };
    let me = engine.job.me.0;
    if let Started::Request(r) = engine.messages.send(
        Peer(to),
        (WORLD_COLLECTIVE, me, tag),
        SendMode::Standard,
        &Buf::EMPTY,
    ) {
        engine.messages.requests_mut().release(r);
    }
}

/// Waits for a rank's message; a rank that is gone sends nothing more.
fn hear<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, from: u32, tag: i32) -> Guard<'a> {
    let Some(engine) = guard.engine.as_mut() else {
        return guard;
    };
    let source = Some((from, Peer(from)));
    let want = Want {
        context: WORLD_COLLECTIVE,
        source,
        tag: Some(tag),
    };
    let req: ReqId = engine.messages.recv(want, Buf::EMPTY);
    let on = WaitOn {
        requests: &[req],
        from: Some(Peer(from)),
        ..WaitOn::default()
    };
    let mut guard = mpi.lock.wait(guard, on, |s| {
        s.engine
            .as_ref()
            .is_none_or(|e| e.messages.requests().is_done(req))
    });
    if let Some(e) = guard.engine.as_mut() {
        e.messages.requests_mut().take(req);
    }
    guard
}

/// MPI_Finalize
pub fn finalize(mpi: &Mpi) -> Res {
    if mpi.lock().above.life.world != World::Open {
        return fail(Class::Other, "MPI is not initialised, or finalised already");
    }
    all_finished(mpi)?;
    super::attr::close_world(mpi)?;
    tell_what_is_left(mpi);
    let mut guard = mpi.lock();
    guard.above.life.world = World::Finalized;
    guard.above.comms.shut_world();
    guard.above.spawned.part_all();
    drop(guard);
    leave(mpi)
}

/// With KW_CHECK: reports which objects the program has not freed and which messages it has not
/// received. Without a launcher that understands the report, the rank prints it itself.
fn tell_what_is_left(mpi: &Mpi) {
    let guard = mpi.lock();
    if !guard.above.checking {
        return;
    }
    let mut guard = meet(mpi, guard);
    let mut left = guard.above.never_freed();
    left.extend(never_received(&guard));
    let Some(engine) = guard.engine.as_mut() else {
        return;
    };
    for one in left {
        if !engine.launcher().tell(&one.encode()) {
            let place = |f: &Frame| format!("{}+{:#x}", f.file, f.offset);
            let site = one.frames.first().map_or(String::new(), place);
            tracing::warn!("at MPI_Finalize {}", one.sentence(&site));
        }
    }
}

/// Waits until every rank has called this, and all that others have sent to this one before has
/// arrived. Large jobs skip this.
fn meet<'a>(mpi: &'a Mpi, mut guard: Guard<'a>) -> Guard<'a> {
    let Ok((me, size)) = whoami(&guard) else {
        return guard;
    };
    if size > MOST_THAT_MEET {
        return guard;
    }
    guard = last_words(mpi, guard);
    // A rank that waits for this rank by mistake gets an error, as in a job without checks.
    if let Some(engine) = &mut guard.engine {
        engine.messages.leave_job();
    }
    let others = || (0..size).filter(|&r| r != me.0);
    others().for_each(|r| say(&mut guard, r, MEETING));
    for r in others() {
        guard = hear(mpi, guard, r, MEETING);
    }
    guard
}

/// Checks that every operation has ended before (MPI 5.0, 11.2.2). MPI stays up if one has not: the
/// caller may still complete it.
fn all_finished(mpi: &Mpi) -> Res {
    let mut guard = mpi.lock();
    let state = &mut *guard;
    let Some(engine) = state.engine.as_mut() else {
        return Ok(());
    };
    engine.progress();
    match state.above.requests.unfinished(engine) {
        0 => Ok(()),
        n => {
            fail!(Request: "{n} operation(s) of this rank have not ended; complete, cancel or free their requests first")
        }
    }
}

/// MPI_Initialized
pub fn initialized(mpi: &Mpi, flag: Out<i32>) -> Res {
    let is = mpi.is_forked() || mpi.lock().above.life.world != World::Before;
    flag.set(is as i32);
    Ok(())
}

/// MPI_Finalized
pub fn finalized(mpi: &Mpi, flag: Out<i32>) -> Res {
    let is = mpi.is_forked() || mpi.lock().above.life.world == World::Finalized;
    flag.set(is as i32);
    Ok(())
}

/// MPI_Query_thread
pub fn query_thread(mpi: &Mpi, provided: Out<i32>) -> Res {
    provided.set(mpi.lock().above.life.level);
    Ok(())
}

/// MPI_Is_thread_main
pub fn is_thread_main(mpi: &Mpi, flag: Out<i32>) -> Res {
    flag.set((mpi.lock().above.life.main == Some(std::thread::current().id())) as i32);
    Ok(())
}

/// MPI_Abort
pub fn abort(mpi: &Mpi, comm: CommH, errorcode: i32) -> Res {
    // the thread that a signal has interrupted here may itself hold the lock
    if let Some(guard) = mpi.lock.lock_within(LOCK_WAIT) {
        guard.above.comms.get(comm)?;
    }
    end_job(
        mpi,
        errorcode,
        &format!("MPI_Abort was called with error code {errorcode}"),
    )
}

/// Ends the whole job, this process included; the launcher prints the sentence.
pub fn end_job(mpi: &Mpi, code: i32, sentence: &str) -> ! {
    let status = if (1..256).contains(&code) { code } else { 1 };
    end_job_by(&mpi.lock, status, sentence)
}

/// Ends the job from a thread of the library, which holds the lock.
pub fn end_job_by(lock: &ProgressLock<Tables>, status: i32, sentence: &str) -> ! {
    kw_sys::host::leave_after(status, || tell(lock, status, sentence))
}

/// Makes the launcher report why the job ends; prints it here if there is no launcher.
fn tell(lock: &ProgressLock<Tables>, status: i32, sentence: &str) {
    let mut guard = lock.lock_within(LOCK_WAIT);
    let engine = guard.as_mut().and_then(|g| g.engine.as_mut());
    let aborted = engine.map(|e| e.launcher().abort(status, sentence));
    if !matches!(aborted, Some(Ok(()))) {
        let (id, host) = (std::process::id(), kw_sys::host::name());
        eprintln!("process {id} on {host}: {sentence}");
    }
}

/// MPI_Get_processor_name
pub fn get_processor_name(_mpi: &Mpi, name: OutText, resultlen: Out<i32>) -> Res {
    resultlen.set(name.set(kw_sys::host::name().as_bytes(), MAX_PROCESSOR_NAME) as i32);
    Ok(())
}
