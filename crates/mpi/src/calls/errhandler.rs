//! Error handlers: creating, attaching and calling them (MPI 5.0, 9.3).

use kw_objects::errhandler::Kind;
use kw_objects::error::{Fault, Handler, Res, Scope, fail};
use kw_objects::handle::{CommH, ErrhandlerH, FileH, SessionH, WinH};
use kw_objects::state::{Mpi, Tables};
use kw_sys::args::Out;
use kw_sys::callback::ErrorHandler;

/// MPI_Comm_create_errhandler
pub fn comm_create_errhandler(
    mpi: &Mpi,
    comm_errhandler_fn: Option<ErrorHandler>,
    errhandler: Out<ErrhandlerH>,
) -> Res {
    create(mpi, Kind::Comm, comm_errhandler_fn, errhandler)
}

/// MPI_Win_create_errhandler
pub fn win_create_errhandler(
    mpi: &Mpi,
    win_errhandler_fn: Option<ErrorHandler>,
    errhandler: Out<ErrhandlerH>,
) -> Res {
    create(mpi, Kind::Win, win_errhandler_fn, errhandler)
}

/// MPI_File_create_errhandler
pub fn file_create_errhandler(
    mpi: &Mpi,
    file_errhandler_fn: Option<ErrorHandler>,
    errhandler: Out<ErrhandlerH>,
) -> Res {
    create(mpi, Kind::File, file_errhandler_fn, errhandler)
}

/// MPI_Session_create_errhandler
pub fn session_create_errhandler(
    mpi: &Mpi,
    session_errhandler_fn: Option<ErrorHandler>,
    errhandler: Out<ErrhandlerH>,
) -> Res {
    create(mpi, Kind::Session, session_errhandler_fn, errhandler)
}

fn create(
    mpi: &Mpi,
    kind: Kind,
    function: Option<ErrorHandler>,
    errhandler: Out<ErrhandlerH>,
) -> Res {
    errhandler.set(mpi.lock().above.errhandlers.add(kind, function)?);
    Ok(())
}

/// MPI_Errhandler_free
pub fn errhandler_free(mpi: &Mpi, errhandler: Out<ErrhandlerH>) -> Res {
    mpi.lock().above.errhandlers.free(errhandler.get())?;
    errhandler.set(ErrhandlerH::NULL);
    Ok(())
}

/// Attaches `new` in place of `old`.
fn replace(tables: &mut Tables, old: ErrhandlerH, new: ErrhandlerH) {
    tables.errhandlers.hold(new);
    tables.errhandlers.release(old);
}

/// MPI_Comm_set_errhandler
pub fn comm_set_errhandler(mpi: &Mpi, comm: CommH, errhandler: ErrhandlerH) -> Res {
    let mut guard = mpi.lock();
    let old = guard.above.comms.get(comm)?.errhandler;
    guard.above.errhandlers.check(errhandler, Kind::Comm)?;
    guard.above.comms.get_mut(comm)?.errhandler = errhandler;
    replace(&mut guard.above, old, errhandler);
    Ok(())
}

/// MPI_Comm_get_errhandler
pub fn comm_get_errhandler(mpi: &Mpi, comm: CommH, errhandler: Out<ErrhandlerH>) -> Res {
    let mut guard = mpi.lock();
    let found = guard.above.comms.get(comm)?.errhandler;
    guard.above.errhandlers.hold(found);
    errhandler.set(found);
    Ok(())
}

/// MPI_Session_set_errhandler
pub fn session_set_errhandler(mpi: &Mpi, session: SessionH, errhandler: ErrhandlerH) -> Res {
    let mut guard = mpi.lock();
    let old = guard.above.sessions.get(session)?.errhandler;
    guard.above.errhandlers.check(errhandler, Kind::Session)?;
    guard.above.sessions.get_mut(session)?.errhandler = errhandler;
    replace(&mut guard.above, old, errhandler);
    Ok(())
}

/// MPI_Session_get_errhandler
pub fn session_get_errhandler(mpi: &Mpi, session: SessionH, errhandler: Out<ErrhandlerH>) -> Res {
    let mut guard = mpi.lock();
    let found = guard.above.sessions.get(session)?.errhandler;
    guard.above.errhandlers.hold(found);
    errhandler.set(found);
    Ok(())
}

/// MPI_File_set_errhandler; for MPI_FILE_NULL the handler of files opened later.
pub fn file_set_errhandler(mpi: &Mpi, file: FileH, errhandler: ErrhandlerH) -> Res {
    let mut guard = mpi.lock();
    guard.above.file_errhandler(file)?;
    guard.above.errhandlers.check(errhandler, Kind::File)?;
    let old = std::mem::replace(guard.above.file_errhandler(file)?, errhandler);
    replace(&mut guard.above, old, errhandler);
    Ok(())
}

/// MPI_File_get_errhandler
pub fn file_get_errhandler(mpi: &Mpi, file: FileH, errhandler: Out<ErrhandlerH>) -> Res {
    let mut guard = mpi.lock();
    let found = *guard.above.file_errhandler(file)?;
    guard.above.errhandlers.hold(found);
    errhandler.set(found);
    Ok(())
}

/// MPI_Win_set_errhandler
pub fn win_set_errhandler(mpi: &Mpi, win: WinH, errhandler: ErrhandlerH) -> Res {
    let mut guard = mpi.lock();
    let old = guard.above.window(win)?.errhandler;
    guard.above.errhandlers.check(errhandler, Kind::Win)?;
    guard.above.window_mut(win)?.errhandler = errhandler;
    replace(&mut guard.above, old, errhandler);
    Ok(())
}

/// MPI_Win_get_errhandler
pub fn win_get_errhandler(mpi: &Mpi, win: WinH, errhandler: Out<ErrhandlerH>) -> Res {
    let mut guard = mpi.lock();
    let found = guard.above.window(win)?.errhandler;
    guard.above.errhandlers.hold(found);
    errhandler.set(found);
    Ok(())
}

/// MPI_Comm_call_errhandler
pub fn comm_call_errhandler(mpi: &Mpi, comm: CommH, errorcode: i32) -> Res {
    mpi.lock().above.comms.get(comm)?;
    invoke(mpi, Scope::Comm(comm), errorcode)
}

/// MPI_Session_call_errhandler
pub fn session_call_errhandler(mpi: &Mpi, session: SessionH, errorcode: i32) -> Res {
    mpi.lock().above.sessions.get(session)?;
    invoke(mpi, Scope::Session(session), errorcode)
}

/// MPI_File_call_errhandler
pub fn file_call_errhandler(mpi: &Mpi, fh: FileH, errorcode: i32) -> Res {
    mpi.lock().above.file_errhandler(fh)?;
    invoke(mpi, Scope::File(fh), errorcode)
}

/// MPI_Win_call_errhandler
pub fn win_call_errhandler(mpi: &Mpi, win: WinH, errorcode: i32) -> Res {
    mpi.lock().above.window(win)?;
    invoke(mpi, Scope::Win(win), errorcode)
}

/// Leaves the call to the shell: a handler may end the job, or throw an exception.
fn invoke(mpi: &Mpi, scope: Scope, code: i32) -> Res {
    let guard = mpi.lock();
    let (text, strict) = (guard.above.codes.text(code), guard.above.checking);
    drop(guard);
    let text = match text {
        Some(text) => text,
        // Programs pass codes of their own; MPICH and Open MPI allow that.
        None if !strict => format!("error code {code} of the program"),
        None => {
            return fail!(Arg: "errorcode is {code}, which is not an error code of MPI");
        }
    };
    match mpi.handler(scope) {
        Handler::Return => Ok(()),
        Handler::User { .. } | Handler::Fatal | Handler::Abort => {
            let mut fault = Fault::of_code(code, text);
            (fault.scope, fault.asked_for) = (scope, true);
            Err(fault)
        }
    }
}
