//! Active target synchronisation: fences, and post, start, complete, wait (MPI 5.0, 12.5.1 and
//! 12.5.2).

use super::quick;
use crate::window::{on, through, with};
use kw_engine::Started;
use kw_mpi::chapter::{barrier, sum_of_each};
use kw_objects::error::{Res, fail};
use kw_objects::handle::{GroupH, WinH};
use kw_objects::state::{Mpi, State};
use kw_objects::window::Reach;
use kw_sys::args::Out;

/// MPI_MODE_NOCHECK
pub const NOCHECK: i32 = 1024;
const NOPRECEDE: i32 = 2048;
const NOPUT: i32 = 4096;
const NOSTORE: i32 = 8192;
const NOSUCCEED: i32 = 16384;

/// Refuses assertions that this call does not know.
pub fn check_assert(assert: i32, known: i32, names: &str) -> Res {
    if assert & !known != 0 {
        return fail!(Assert: "assert is {assert:#x}, but this call accepts only {names}");
    }
    Ok(())
}

/// MPI_Win_fence
#[inline]
pub fn win_fence(mpi: &Mpi, assert: i32, win: WinH) -> Res {
    if assert & !(NOPRECEDE | NOPUT | NOSTORE) == 0
        && let Some(comm) = quick::fence(mpi, win)
    {
        return together(mpi, win, barrier(mpi, comm));
    }
    ordinary_fence(mpi, assert, win)
}

fn ordinary_fence(mpi: &Mpi, assert: i32, win: WinH) -> Res {
    let (guard, (counts, comm, reach)) = on(mpi, win, |on| {
        check_assert(
            assert,
            NOPRECEDE | NOPUT | NOSTORE | NOSUCCEED,
            "MPI_MODE_NOPRECEDE, MPI_MODE_NOPUT, MPI_MODE_NOSTORE and MPI_MODE_NOSUCCEED",
        )?;
        let id = on.id();
        let succeeds = assert & NOSUCCEED == 0;
        let counts = on.windows.fence(on.messages, id, succeeds)?;
        Ok((counts, on.window.comm, on.window.reach))
    })?;
    drop(guard);
    let expected = match reach {
        Reach::All => 0,
        _ if assert & NOPRECEDE != 0 => 0,
        _ => together(mpi, win, sum_of_each(mpi, comm, &counts))?,
    };
    through(mpi, win, None, |on| {
        let id = on.id();
        Ok(on.windows.fence_end(on.messages, id, expected)?)
    })?;
    match reach {
        Reach::Own => Ok(()),
        // Operations on directly accessible memory are not counted.
        Reach::Some | Reach::All => together(mpi, win, barrier(mpi, comm)),
    }
}

/// Assigns the fault of a collective step to the window.
fn together<T>(mpi: &Mpi, win: WinH, done: Res<T>) -> Res<T> {
    done.map_err(|fault| mpi.lock().above.window_fault(win, fault))
}

/// The ranks of a group in the window.
fn ranks(on: &crate::window::WindowCall<'_>, group: GroupH) -> Res<Vec<u32>> {
    let group = on.tables.groups.get(group)?;
    let all = &on.window.group;
    let rank = |peer| {
        all.rank_of(peer).map_or_else(
            || {
                fail!(Group: "group has process {peer} of the job, which is not in the window's group")
            },
            Ok,
        )
    };
    group.iter().map(rank).collect()
}

/// MPI_Win_post
pub fn win_post(mpi: &Mpi, group: GroupH, assert: i32, win: WinH) -> Res {
    on(mpi, win, |on| {
        check_assert(
            assert,
            NOCHECK | NOSTORE | NOPUT,
            "MPI_MODE_NOCHECK, MPI_MODE_NOSTORE and MPI_MODE_NOPUT",
        )?;
        let ranks = ranks(&on, group)?;
        let id = on.id();
        Ok(on.windows.post(on.messages, id, &ranks)?)
    })
    .map(drop)
}

/// MPI_Win_start
pub fn win_start(mpi: &Mpi, group: GroupH, assert: i32, win: WinH) -> Res {
    through(mpi, win, None, |on| {
        check_assert(assert, NOCHECK, "MPI_MODE_NOCHECK")?;
        let ranks = ranks(&on, group)?;
        let id = on.id();
        Ok(on.windows.start(on.messages, id, &ranks)?)
    })
}

/// MPI_Win_complete
pub fn win_complete(mpi: &Mpi, win: WinH) -> Res {
    through(mpi, win, None, |on| {
        let id = on.id();
        Ok(on.windows.complete(on.messages, id)?)
    })
}

/// MPI_Win_wait
pub fn win_wait(mpi: &Mpi, win: WinH) -> Res {
    through(mpi, win, None, |on| {
        let id = on.id();
        Ok(on.windows.wait(on.messages, id)?)
    })
}

/// MPI_Win_test
pub fn win_test(mpi: &Mpi, win: WinH, flag: Out<i32>) -> Res {
    let over = |state: &mut State| {
        let asked = with(state, win, |on| {
            let id = on.id();
            Ok(on.windows.test(on.messages, id)?)
        });
        match asked {
            Ok(false) => None,
            other => Some(other),
        }
    };
    let found = mpi.lock().poll(over, |_| ());
    let ended = found.transpose()?.is_some();
    flag.set(i32::from(ended));
    match ended {
        true => through(mpi, win, None, |_| Ok(Started::Done)),
        false => Ok(()),
    }
}
