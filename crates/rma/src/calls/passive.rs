//! Passive target synchronisation: locks, flushes, sync (MPI 5.0, 12.5.3 to 12.5.5).

use super::epoch::{NOCHECK, check_assert};
use super::quick;
use crate::window::{WindowCall, through};
use kw_engine::Started;
use kw_engine::windows::LockMode;
use kw_objects::error::{Res, fail};
use kw_objects::handle::WinH;
use kw_objects::state::Mpi;

const LOCK_EXCLUSIVE: i32 = 301;
const LOCK_SHARED: i32 = 302;

/// Makes a call about the memory of one rank; does nothing for MPI_PROC_NULL.
#[inline]
fn of_rank(
    mpi: &Mpi,
    win: WinH,
    rank: i32,
    act: impl FnOnce(WindowCall<'_>, u32) -> Res<Started>,
) -> Res {
    let target = u32::try_from(rank).ok();
    through(mpi, win, target, |on| match on.rank(rank)? {
        Some(rank) => act(on, rank),
        None => Ok(Started::Done),
    })
}

/// Refuses to lock a window that was created with the promise (`no_locks`) not to lock it.
fn check_lockable(on: &WindowCall<'_>) -> Res {
    if on.window.info.get("no_locks") == Some("true") {
        return fail!(RmaSync: "the window was made with the hint no_locks, which promises that it is never locked");
    }
    Ok(())
}

/// MPI_Win_lock
#[inline]
pub fn win_lock(mpi: &Mpi, lock_type: i32, rank: i32, assert: i32, win: WinH) -> Res {
    if let Some(mode) = mode(lock_type).filter(|_| assert == 0)
        && quick::lock(mpi, win, rank, mode).is_some()
    {
        return Ok(());
    }
    ordinary_lock(mpi, lock_type, rank, assert, win)
}

#[inline]
fn mode(lock_type: i32) -> Option<LockMode> {
    match lock_type {
        LOCK_EXCLUSIVE => Some(LockMode::Exclusive),
        LOCK_SHARED => Some(LockMode::Shared),
        _ => None,
    }
}

fn ordinary_lock(mpi: &Mpi, lock_type: i32, rank: i32, assert: i32, win: WinH) -> Res {
    of_rank(mpi, win, rank, |on, rank| {
        let Some(mode) = mode(lock_type) else {
            return fail!(Locktype: "lock_type is {lock_type}, but must be MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE");
        };
        check_assert(assert, NOCHECK, "MPI_MODE_NOCHECK")?;
        check_lockable(&on)?;
        let (id, check) = (on.id(), assert & NOCHECK == 0);
        Ok(on.windows.lock(on.messages, id, rank, mode, check)?)
    })
}

/// MPI_Win_unlock
#[inline]
pub fn win_unlock(mpi: &Mpi, rank: i32, win: WinH) -> Res {
    if let Some(done) = quick::unlock(mpi, win, rank) {
        return done;
    }
    ordinary_unlock(mpi, rank, win)
}

fn ordinary_unlock(mpi: &Mpi, rank: i32, win: WinH) -> Res {
    of_rank(mpi, win, rank, |on, rank| {
        let id = on.id();
        Ok(on.windows.unlock(on.messages, id, rank)?)
    })
}

/// MPI_Win_lock_all
pub fn win_lock_all(mpi: &Mpi, assert: i32, win: WinH) -> Res {
    through(mpi, win, None, |on| {
        check_assert(assert, NOCHECK, "MPI_MODE_NOCHECK")?;
        check_lockable(&on)?;
        let (id, check) = (on.id(), assert & NOCHECK == 0);
        Ok(on.windows.lock_all(on.messages, id, check)?)
    })
}

/// MPI_Win_unlock_all
pub fn win_unlock_all(mpi: &Mpi, win: WinH) -> Res {
    through(mpi, win, None, |on| {
        let id = on.id();
        Ok(on.windows.unlock_all(on.messages, id)?)
    })
}

/// MPI_Win_flush
#[inline]
pub fn win_flush(mpi: &Mpi, rank: i32, win: WinH) -> Res {
    if quick::flush(mpi, win, Some(rank)).is_some() {
        return Ok(());
    }
    of_rank(mpi, win, rank, |on, rank| {
        let id = on.id();
        Ok(on.windows.flush(on.messages, id, Some(rank))?)
    })
}

/// MPI_Win_flush_all
pub fn win_flush_all(mpi: &Mpi, win: WinH) -> Res {
    if quick::flush(mpi, win, None).is_some() {
        return Ok(());
    }
    through(mpi, win, None, |on| {
        let id = on.id();
        Ok(on.windows.flush(on.messages, id, None)?)
    })
}

/// MPI_Win_flush_local
pub fn win_flush_local(mpi: &Mpi, rank: i32, win: WinH) -> Res {
    if quick::flush_local(mpi, win, Some(rank)).is_some() {
        return Ok(());
    }
    of_rank(mpi, win, rank, |on, rank| {
        let id = on.id();
        Ok(on.windows.flush_local(on.messages, id, Some(rank))?)
    })
}

/// MPI_Win_flush_local_all
pub fn win_flush_local_all(mpi: &Mpi, win: WinH) -> Res {
    if quick::flush_local(mpi, win, None).is_some() {
        return Ok(());
    }
    through(mpi, win, None, |on| {
        let id = on.id();
        Ok(on.windows.flush_local(on.messages, id, None)?)
    })
}

/// MPI_Win_sync
pub fn win_sync(mpi: &Mpi, win: WinH) -> Res {
    through(mpi, win, None, |on| {
        let id = on.id();
        on.windows.sync(on.messages, id)?;
        Ok(Started::Done)
    })
}
