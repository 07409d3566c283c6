//! A call on a window: the engine's part of it, the fault that names it, waiting for what the
//! engine started.

use kw_base::Peer;
use kw_engine::windows::{WinId, Windows};
use kw_engine::{Messages, ReqId, Started, WaitOn};
use kw_mpi::chapter::{running, wait_serving};
use kw_objects::comm::PROC_NULL;
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::WinH;
use kw_objects::request::explain;
use kw_objects::state::{Guard, Mpi, State, Tables};
use kw_objects::window::Window;

/// What a call on a window works with, while it holds the lock.
pub struct WindowCall<'a> {
    /// The window.
    pub window: &'a Window,
    /// The other objects.
    pub tables: &'a Tables,
    /// The engine's windows.
    pub windows: &'a mut Windows,
    /// The engine's messages.
    pub messages: &'a mut Messages,
}

impl WindowCall<'_> {
    /// The engine's name of the window.
    pub fn id(&self) -> WinId {
        self.window.id
    }

    /// The rank of a target; `None` for MPI_PROC_NULL.
    #[inline]
    pub fn rank(&self, rank: i32) -> Res<Option<u32>> {
        let size = self.window.group.size();
        match rank {
            PROC_NULL => Ok(None),
            _ if (rank as u32) < size => Ok(Some(rank as u32)),
            _ => no_such_rank(rank, size),
        }
    }
}

#[cold]
fn no_such_rank(rank: i32, size: u32) -> Res<Option<u32>> {
    fail(
        Class::Rank,
        format!(
            "rank is {rank}, but the window has ranks 0 to {}",
            i64::from(size) - 1
        ),
    )
}

/// Does something with a window. A fault says which rank and which window.
#[inline]
pub fn with<R>(state: &mut State, win: WinH, act: impl FnOnce(WindowCall<'_>) -> Res<R>) -> Res<R> {
    let (engine, tables) = running(state)?;
    let window = tables.window(win)?;
    let done = act(WindowCall {
        window,
        tables,
        windows: &mut engine.parts.windows,
        messages: &mut engine.messages,
    });
    done.map_err(|fault| window.fault(win, fault))
}

/// Likewise, under the lock, which comes back.
#[inline]
pub fn on<R>(
    mpi: &Mpi,
    win: WinH,
    act: impl FnOnce(WindowCall<'_>) -> Res<R>,
) -> Res<(Guard<'_>, R)> {
    let mut guard = mpi.lock();
    let done = with(&mut guard, win, act)?;
    Ok((guard, done))
}

/// As [`on`], and waits for what that started. `from`: the rank that ends it, where it is one.
#[inline]
pub fn through(
    mpi: &Mpi,
    win: WinH,
    from: Option<u32>,
    act: impl FnOnce(WindowCall<'_>) -> Res<Started>,
) -> Res {
    let (guard, (started, from)) = on(mpi, win, |on| {
        let group = &on.window.group;
        let from = from.filter(|&rank| rank < group.size());
        let from = from.map(|rank| group.peer(rank));
        Ok((act(on)?, from))
    })?;
    match started {
        Started::Done => {
            guard.leave();
            Ok(())
        }
        Started::Request(id) => wait(mpi, guard, win, (id, from)),
    }
}

/// Waits for a request of a window, which that peer ends.
fn wait(mpi: &Mpi, guard: Guard<'_>, win: WinH, (id, from): (ReqId, Option<Peer>)) -> Res {
    let requests = [id];
    let on = WaitOn {
        requests: &requests,
        from,
        ..WaitOn::default()
    };
    let mut guard = wait_serving(mpi, guard, on, |s| {
        s.engine.as_ref().is_none_or(|e| e.messages.is_done(id))
    });
    let (engine, tables) = running(&mut guard)?;
    let failure = engine.take(id).and_then(|outcome| outcome.failure);
    match failure {
        None => {
            guard.leave();
            Ok(())
        }
        Some(failure) => Err(tables.operation_fault(win, explain(*failure))),
    }
}
