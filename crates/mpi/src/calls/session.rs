//! Sessions and process sets (MPI 5.0, 11.3).

use crate::error::{Class, Res, fail};
use crate::handle::{ErrhandlerH, InfoH, SessionH};
use crate::objects::errhandler::Kind;
use crate::objects::info::Info;
use crate::objects::session::{PSETS, Session, pset};
use crate::state::Mpi;
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
    guard.above.session(session)?;
    guard.above.info_or_null(info)?;
    npset_names.set(PSETS.len() as i32);
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
    guard.above.session(session)?;
    guard.above.info_or_null(info)?;
    let Some(name) = usize::try_from(n).ok().and_then(|n| PSETS.get(n)) else {
        return fail(
            Class::Arg,
            format!("n is {n}, but there are {} process sets", PSETS.len()),
        );
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
    guard.above.session(session)?;
    let Some(name) = pset_name.to_text() else {
        return fail(Class::Arg, "pset_name is null");
    };
    let Some(engine) = &guard.engine else {
        return fail(Class::Session, "the session has no engine");
    };
    let group = pset(&name, engine.me(), engine.size())?;
    let mut about = Info::default();
    about.set("mpi_size", &group.size().to_string());
    info.set(guard.above.add_info(about));
    Ok(())
}

/// MPI_Session_get_info
pub fn session_get_info(mpi: &Mpi, session: SessionH, info_used: Out<InfoH>) -> Res {
    let mut guard = mpi.lock();
    let info = guard.above.session(session)?.info.clone();
    info_used.set(guard.above.add_info(info));
    Ok(())
}

/// Opens a session, once the engine runs.
pub(crate) fn open(mpi: &Mpi, info: InfoH, errhandler: ErrhandlerH) -> Res<SessionH> {
    let mut guard = mpi.lock();
    let given = guard.above.info_or_null(info)?.cloned().unwrap_or_default();
    guard.above.check_errhandler(errhandler, Kind::Session)?;
    guard.above.hold_errhandler(errhandler);
    let mut info = Info::default();
    info.set("thread_level", "MPI_THREAD_MULTIPLE");
    info.set("mpi_memory_alloc_kinds", "mpi,system");
    if let Some(level) = given.get("thread_level") {
        info.set("thread_level", level);
    }
    let key = guard.above.sessions.insert(Session { errhandler, info });
    Ok(SessionH::from_key(key))
}

/// Closes a session.
pub(crate) fn close(mpi: &Mpi, session: SessionH) -> Res {
    let mut guard = mpi.lock();
    guard.above.session(session)?;
    let gone = session.key().and_then(|k| guard.above.sessions.remove(k));
    if let Some(gone) = gone {
        guard.above.drop_errhandler(gone.errhandler);
    }
    Ok(())
}
