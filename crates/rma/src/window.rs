//! A call on a window: the engine's part of it, the fault that names it, waiting for an operation
//! that the engine started.

use kw_base::Peer;
use kw_engine::windows::{WinId, Windows};
use kw_engine::{Messages, ReqId, Started, WaitOn};
use kw_mpi::chapter::{running, wait_serving};
use kw_objects::comm::PROC_NULL;
use kw_objects::conflicts::report;
use kw_objects::error::{Fault, Res, fail};
use kw_objects::handle::WinH;
use kw_objects::request::explain;
use kw_objects::state::{Guard, Mpi, State, Tables};
use kw_objects::window::Window;

/// Objects that a call on a window uses, while it holds the lock.
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
    fail!(Rank: "rank is {rank}, but the window has ranks 0 to {}", i64::from(size) - 1)
}

/// Does something with a window. A fault names the rank and the window.
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
    done.or_else(|fault| {
        let found = match state.above.checking {
            true => conflict(state, win)?,
            false => None,
        };
        Err(window_fault(state, win, found.unwrap_or(fault)))
    })
}

/// With KW_CHECK: the place of the current call that accesses memory, for ranks that see the
/// access. `has_request`: it has a request.
#[cold]
fn note_call(state: &mut State, win: WinH, has_request: bool) -> Res {
    let site = state.above.call_sites.here();
    let (engine, tables) = running(state)?;
    let id = tables.window(win)?.id;
    engine.parts.windows.called_at(id, site, has_request);
    Ok(())
}

/// With KW_CHECK: conflicting accesses that have been found.
#[cold]
fn conflict(state: &mut State, win: WinH) -> Res<Option<Box<Fault>>> {
    let (engine, tables) = running(state)?;
    let window = tables.window(win)?;
    let found = engine.parts.windows.take_conflicts(window.id);
    Ok(match found.is_empty() {
        true => None,
        false => Some(report(engine, &window.called(), &found)),
    })
}

/// With KW_CHECK: fails if conflicting accesses have been found.
fn check_conflicts(state: &mut State, win: WinH) -> Res {
    match state.above.checking {
        false => Ok(()),
        true => match conflict(state, win)? {
            None => Ok(()),
            Some(fault) => Err(window_fault(state, win, fault)),
        },
    }
}

#[cold]
fn window_fault(state: &mut State, win: WinH, fault: Box<Fault>) -> Box<Fault> {
    state.above.window_fault(win, fault)
}

/// The same for a caller that holds the lock, which is returned.
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

/// [`on`] for an operation on memory; `has_request`: it has a request.
#[inline]
pub fn accessing<R>(
    mpi: &Mpi,
    win: WinH,
    has_request: bool,
    act: impl FnOnce(WindowCall<'_>) -> Res<R>,
) -> Res<(Guard<'_>, R)> {
    let mut guard = mpi.lock();
    if guard.above.checking {
        note_call(&mut guard, win, has_request)?;
    }
    let done = with(&mut guard, win, act)?;
    Ok((guard, done))
}

/// [`on`], followed by a wait for the started operation. `from`: the rank that ends it, if it is a
/// single one.
#[inline]
pub fn through(
    mpi: &Mpi,
    win: WinH,
    from: Option<u32>,
    act: impl FnOnce(WindowCall<'_>) -> Res<Started>,
) -> Res {
    let (mut guard, (started, from)) = on(mpi, win, |on| {
        let group = &on.window.group;
        let from = from.filter(|&rank| rank < group.size());
        let from = from.map(|rank| group.peer(rank));
        Ok((act(on)?, from))
    })?;
    match started {
        Started::Done => {
            guard.progress_now_and_then();
            check_conflicts(&mut guard, win)?;
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
        s.engine
            .as_ref()
            .is_none_or(|e| e.messages.requests().is_done(id))
    });
    let (engine, tables) = running(&mut guard)?;
    let failure = engine
        .requests()
        .take(id)
        .and_then(|outcome| outcome.failure);
    match failure {
        None => {
            check_conflicts(&mut guard, win)?;
            guard.leave();
            Ok(())
        }
        Some(failure) => Err(tables.operation_fault(win, explain(*failure))),
    }
}
