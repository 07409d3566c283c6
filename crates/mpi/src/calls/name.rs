//! Names of communicators and windows (MPI 5.0, 7.8).

use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::{CommH, WinH};
use kw_objects::state::Mpi;
use kw_sys::args::{Out, OutText, Text};

/// MPI_MAX_OBJECT_NAME, final zero included.
pub(crate) const MAX_NAME: usize = 128;

/// MPI_Comm_set_name
pub fn comm_set_name(mpi: &Mpi, comm: CommH, comm_name: Text) -> Res {
    let mut guard = mpi.lock();
    let comm = guard.above.comms.get_mut(comm)?;
    let Some(name) = comm_name.bytes() else {
        return fail(Class::Arg, "comm_name is null");
    };
    comm.name = shortened(name);
    Ok(())
}

/// The prefix of a name that fits MPI_MAX_OBJECT_NAME.
pub(crate) fn shortened(name: &[u8]) -> String {
    let mut name = String::from_utf8_lossy(name).into_owned();
    let mut end = name.len().min(MAX_NAME - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name
}

/// MPI_Comm_get_name
pub fn comm_get_name(mpi: &Mpi, comm: CommH, comm_name: OutText, resultlen: Out<i32>) -> Res {
    let guard = mpi.lock();
    let name = match comm.is_null() {
        true => "MPI_COMM_NULL",
        false => guard.above.comms.get(comm)?.name.as_str(),
    };
    resultlen.set(comm_name.set(name.as_bytes(), MAX_NAME) as i32);
    Ok(())
}

/// MPI_Win_set_name
pub fn win_set_name(mpi: &Mpi, win: WinH, win_name: Text) -> Res {
    let mut guard = mpi.lock();
    let window = guard.above.window_mut(win)?;
    let Some(name) = win_name.bytes() else {
        return fail(Class::Arg, "win_name is null");
    };
    window.name = shortened(name);
    Ok(())
}

/// MPI_Win_get_name
pub fn win_get_name(mpi: &Mpi, win: WinH, win_name: OutText, resultlen: Out<i32>) -> Res {
    let guard = mpi.lock();
    let name = match win.is_null() {
        true => "MPI_WIN_NULL",
        false => guard.above.window(win)?.name.as_str(),
    };
    resultlen.set(win_name.set(name.as_bytes(), MAX_NAME) as i32);
    Ok(())
}
