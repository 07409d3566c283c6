//! Sessions and process sets (MPI 5.0, 11.3).

use crate::calls::buffer::let_go;
use crate::calls::env::{enter, leave};
use kw_objects::buffered::Owner;
use kw_objects::errhandler::Kind;
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::{ErrhandlerH, InfoH, SessionH};
use kw_objects::info::Info;
use kw_objects::session::Session;
use kw_objects::state::Mpi;
use kw_sys::args::{Out, OutText, Text};

/// MPI_MAX_PSET_NAME_LEN, final zero included.
const MAX_PSET: usize = 1024;

/// MPI_Session_get_num_psets
pub fn session_get_num_psets(
    mpi: &Mpi,
    session: SessionH,
    info: InfoH,
    npset_names: Out<i32>,
) -> Res {
    let guard = mpi.lock();
    let count = guard.above.sessions.get(session)?.psets().len();
    guard.above.infos.get_or_null(info)?;
    npset_names.set(count as i32);
    Ok(())
}

/// MPI_Session_get_nth_pset: `pset_len` counts the final zero, in both directions.
pub fn session_get_nth_pset(
    mpi: &Mpi,
    session: SessionH,
    info: InfoH,
    n: i32,
    pset_len: Out<i32>,
    pset_name: OutText,
) -> Res {
    let guard = mpi.lock();
    let names = guard.above.sessions.get(session)?.psets();
    guard.above.infos.get_or_null(info)?;
    let Some(name) = usize::try_from(n).ok().and_then(|n| names.get(n)) else {
        return fail!(Arg: "n is {n}, but there are {} process sets", names.len());
    };
    let room = pset_len.get();
    if room > 0 {
        pset_name.set(name.as_bytes(), (room as usize).min(MAX_PSET));
    }
    pset_len.set(name.len() as i32 + 1);
    Ok(())
}

/// MPI_Session_get_pset_info
pub fn session_get_pset_info(
    mpi: &Mpi,
    session: SessionH,
    pset_name: Text,
    info: Out<InfoH>,
) -> Res {
    let mut guard = mpi.lock();
    guard.above.sessions.get(session)?;
    let Some(name) = pset_name.to_text() else {
        return fail(Class::Arg, "pset_name is null");
    };
    let Some(engine) = &guard.engine else {
        return fail(Class::Session, "the session has no engine");
    };
    let found = guard.above.sessions.get(session)?;
    let group = found.pset(&name, engine.job.me, engine.job.size())?;
    let mut about = Info::default();
    about.set("mpi_size", &group.size().to_string());
    info.set(guard.above.infos.add(about));
    Ok(())
}

/// MPI_Session_get_info
pub fn session_get_info(mpi: &Mpi, session: SessionH, info_used: Out<InfoH>) -> Res {
    let mut guard = mpi.lock();
    let info = guard.above.sessions.get(session)?.info.clone();
    info_used.set(guard.above.infos.add(info));
    Ok(())
}

/// MPI_Session_init
pub fn session_init(
    mpi: &Mpi,
    info: InfoH,
    errhandler: ErrhandlerH,
    session: Out<SessionH>,
) -> Res {
    let mut guard = mpi.lock();
    let given = guard
        .above
        .infos
        .get_or_null(info)?
        .cloned()
        .unwrap_or_default();
    guard.above.errhandlers.check(errhandler, Kind::Session)?;
    enter(&mut guard)?;
    if let Some((me, size)) = guard.engine.as_ref().map(|e| (e.job.me, e.job.size())) {
        guard.above.comms.open_contexts(me, size);
    }
    guard.above.life.sessions = true;
    guard.above.errhandlers.hold(errhandler);
    let (sets, me) = match guard.engine.as_mut() {
        Some(engine) => (engine.launcher().process_sets(), engine.job.me),
        None => return fail(Class::Session, "the session has no engine"),
    };
    let new = Session::new(errhandler, about(&given), sets, me);
    let key = guard.above.sessions.open.insert(new);
    drop(guard);
    mpi.set_active(true);
    session.set(SessionH::from_key(key));
    Ok(())
}

/// Thread levels that can be requested; calls may come from any thread at each of them.
const LEVELS: [&str; 4] = [
    "MPI_THREAD_SINGLE",
    "MPI_THREAD_FUNNELED",
    "MPI_THREAD_SERIALIZED",
    "MPI_THREAD_MULTIPLE",
];

/// Info of a session, given the requested hints.
fn about(given: &Info) -> Info {
    let mut info = Info::default();
    let level = given.get("thread_level").filter(|l| LEVELS.contains(l));
    info.set("thread_level", level.unwrap_or("MPI_THREAD_MULTIPLE"));
    info.set("mpi_memory_alloc_kinds", "mpi,system");
    info
}

/// MPI_Session_finalize. A buffer that is attached to the session is emptied and detached.
pub fn session_finalize(mpi: &Mpi, session: Out<SessionH>) -> Res {
    let handle = session.get();
    mpi.lock().above.sessions.get(handle)?;
    let_go(mpi, Owner::Session(handle))?;
    let mut guard = mpi.lock();
    let gone = handle
        .key()
        .and_then(|k| guard.above.sessions.open.remove(k));
    if let Some(gone) = gone {
        guard.above.errhandlers.release(gone.errhandler);
    }
    drop(guard);
    session.set(SessionH::NULL);
    leave(mpi)
}
