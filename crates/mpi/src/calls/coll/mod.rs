//! Collective communication (MPI 5.0, chapter 6): blocking, non-blocking and persistent.
//!
//! All forms of a call make the same plan (`plan`), a schedule with its buffers; `form` defines how
//! each runs it.

pub(crate) mod arguments;
mod call;
pub(crate) mod check;
mod form;
mod inter;
pub mod neighbor;
pub mod operations;
pub mod own;
mod plan;
mod shm_region;
mod short;
mod side;

use crate::calls::p2p::running;
use kw_base::Peer;
use kw_engine::{
    ChannelId, Collectives, Drive, Engine, Named, ReqId, Run, UserStep, WaitOn, Watch,
};
use kw_objects::error::Res;
use kw_objects::handle::{CommH, RequestH};
use kw_objects::request::{Flight, Kind, Persistent, Start, explain, not_running};
use kw_objects::state::{Guard, Mpi, State};
use kw_sys::args::Out;
use kw_sys::callback::sealed;
use plan::Plan;

/// Plans, and runs the collective to its end.
#[inline]
fn block(mpi: &Mpi, comm: CommH, plan: impl FnOnce(&mut State) -> Plan) -> Res {
    block_as(mpi, mpi.lock(), comm, plan, None)
}

/// The plan; `like`: the key by which later equal calls find it at once.
#[inline]
fn block_as<'a>(
    mpi: &'a Mpi,
    mut guard: Guard<'a>,
    comm: CommH,
    plan: impl FnOnce(&mut State) -> Plan,
    like: Option<Named>,
) -> Res {
    let mut run = plan(&mut guard)?;
    if shm_region::is_unknown(&guard, comm) {
        guard = shm_region::agree(mpi, guard, comm)?;
    }
    if let Some(named) = like.filter(|_| !guard.above.checking) {
        run.name(named);
    }
    finish(mpi, guard, comm, run)
}

/// Runs a collective to its end: here if it need not wait.
fn finish<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, comm: CommH, mut run: Box<Run>) -> Res {
    let engine = guard.engine.as_mut().ok_or_else(not_running)?;
    if !engine
        .parts
        .collectives
        .run_ops(&mut engine.messages, &mut run)
    {
        return wait_for_end(mpi, guard, comm, run);
    }
    let failure = engine.recycle(run);
    guard.leave();
    failure.map_or(Ok(()), |f| Err(explain(f).on(comm)))
}

#[inline(never)]
fn wait_for_end<'a>(mpi: &'a Mpi, mut guard: Guard<'a>, comm: CommH, mut run: Box<Run>) -> Res {
    if let Some(engine) = &mut guard.engine {
        engine.parts.collectives.begins_to_wait(&run);
    }
    loop {
        let engine = guard.engine.as_mut().ok_or_else(not_running)?;
        match engine
            .parts
            .collectives
            .drive(&mut engine.messages, &mut run)
        {
            Drive::Done => {
                let yields = engine.parts.collectives.has_waited(&run);
                let failure = engine.recycle(run);
                guard.leave();
                if yields {
                    kw_engine::let_others_go_on();
                }
                return failure.map_or(Ok(()), |f| Err(explain(f).on(comm)));
            }
            Drive::ShmRegion(watch)
                if engine.parts.collectives.linger(&mut engine.messages, watch) => {}
            Drive::ShmRegion(watch) => {
                guard = wait_for_shm_region(mpi, guard, watch);
                let engine = guard.engine.as_mut().ok_or_else(not_running)?;
                if let Some(failure) = engine.departed.on_shm_region(watch) {
                    let failure = engine.abandon(run, failure);
                    return failure.map_or(Ok(()), |f| Err(explain(f).on(comm)));
                }
            }
            Drive::Waiting(req, peer) => guard = wait_for_message(mpi, guard, req, Some(peer)),
            Drive::User => {
                let step = run.user_step();
                drop(guard);
                run = call_user(mpi, run, step);
                guard = mpi.lock();
                run.user_done();
            }
        }
    }
}

/// Calls the user's function for a collective. If it throws an exception, the collective is
/// finished before the exception continues: other ranks take part, and data in flight to the
/// buffers must arrive. The data are then undefined.
#[cold]
fn call_user(mpi: &Mpi, run: Box<Run>, step: Option<UserStep>) -> Box<Run> {
    let mut rest = Rest {
        mpi,
        run: Some(run),
    };
    step.into_iter().for_each(UserStep::call);
    // only dropping it takes the run away
    rest.run.take().expect("the run is there")
}

/// A collective whose user's function is being called; if an exception drops it, it is finished
/// without further calls.
struct Rest<'a> {
    mpi: &'a Mpi,
    run: Option<Box<Run>>,
}

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        let Some(mut run) = self.run.take() else {
            return;
        };
        let mut guard = self.mpi.lock();
        run.user_done();
        while let Some(engine) = guard.engine.as_mut() {
            match engine
                .parts
                .collectives
                .drive(&mut engine.messages, &mut run)
            {
                Drive::Done => {
                    engine.recycle(run);
                    return;
                }
                Drive::User => run.user_done(),
                Drive::ShmRegion(watch) => guard = wait_for_shm_region(self.mpi, guard, watch),
                Drive::Waiting(req, _) => guard = wait_for_message(self.mpi, guard, req, None),
            }
        }
    }
}

/// `from`: the peer that ends it, which is polled first.
fn wait_for_message<'a>(
    mpi: &'a Mpi,
    guard: Guard<'a>,
    req: ReqId,
    from: Option<Peer>,
) -> Guard<'a> {
    let on = WaitOn {
        requests: &[req],
        from,
        ..WaitOn::default()
    };
    wait_serving(mpi, guard, on, |s| {
        s.engine
            .as_ref()
            .is_none_or(|e| e.messages.requests().is_done(req))
    })
}

fn wait_for_shm_region<'a>(mpi: &'a Mpi, guard: Guard<'a>, watch: Watch) -> Guard<'a> {
    let engine = guard.engine.as_ref();
    let serves = engine.is_some_and(|e| e.parts.windows.serve());
    let on = WaitOn {
        shm_region: Some(watch.serving(serves)),
        ..WaitOn::default()
    };
    wait_serving(mpi, guard, on, |s| {
        let over = |e: &Engine| {
            e.parts.collectives.channels.reached(watch) || e.departed.on_shm_region(watch).is_some()
        };
        s.engine.as_ref().is_none_or(over)
    })
}

/// Plans, and leaves the rest to progress.
fn begin(
    mpi: &Mpi,
    comm: CommH,
    request: Out<RequestH>,
    plan: impl FnOnce(&mut State) -> Plan,
) -> Res {
    let mut guard = mpi.lock();
    let mut run = plan(&mut guard)?;
    if let Some(check) = run.signature_check() {
        check.record()[check::FORM] = check::LATER;
    }
    let (engine, tables) = running(&mut guard)?;
    let id = engine.launch(run);
    let flight = Flight {
        id,
        comm,
        from: None,
        receives: false,
    };
    request.set(tables.new_request(Kind::Flight(flight)));
    Ok(())
}

/// Plans, and keeps the plan for MPI_Start, with a shm region of its own if there is one.
fn keep(
    mpi: &Mpi,
    comm: CommH,
    request: Out<RequestH>,
    shm_region: Option<ChannelId>,
    plan: impl FnOnce(&mut State) -> Plan,
) -> Res {
    let mut guard = mpi.lock();
    let planned = shm_region::with(&mut guard, comm, shm_region, plan);
    let (engine, tables) = running(&mut guard)?;
    let mut run = planned.inspect_err(|_| {
        shm_region
            .into_iter()
            .for_each(|b| engine.parts.collectives.channels.leave(b));
    })?;
    if let Some(check) = run.signature_check() {
        check.record()[check::FORM] = check::PERSISTENT;
    }
    let Collectives {
        patterns, channels, ..
    } = &mut engine.parts.collectives;
    let kept = Persistent {
        comm,
        start: Start::Collective(patterns.keep(channels, run, shm_region)),
        active: None,
        partitions: None,
    };
    request.set(tables.new_request(Kind::Persistent(Box::new(kept))));
    Ok(())
}

/// [`ProgressLock::wait`](kw_engine::ProgressLock::wait) that also makes the calls of user
/// functions that collectives in the background need meanwhile.
#[inline]
pub fn wait_serving<'a>(
    mpi: &'a Mpi,
    mut guard: Guard<'a>,
    on: WaitOn<'_>,
    mut ready: impl FnMut(&mut State) -> bool,
) -> Guard<'a> {
    loop {
        let mut done = false;
        guard = mpi.lock.wait(guard, on, |s| {
            done = ready(s);
            done || wants_user(s)
        });
        if done || !wants_user(&guard) {
            return guard;
        }
        guard = serve_users(mpi, guard);
    }
}

#[inline]
fn wants_user(state: &State) -> bool {
    state
        .engine
        .as_ref()
        .is_some_and(|e| e.parts.collectives.running.wants_user())
}

/// Takes the lock, and makes the calls of user functions that collectives in the background need.
#[inline]
pub(crate) fn lock_serving(mpi: &Mpi) -> Guard<'_> {
    let guard = mpi.lock();
    if wants_user(&guard) {
        return serve_users(mpi, guard);
    }
    guard
}

fn take_user_step(engine: &mut Engine) -> Option<(ReqId, UserStep)> {
    engine.parts.collectives.running.take_user_step()
}

/// Makes the calls of user functions that collectives in the background wait for, with the lock
/// released.
#[cold]
fn serve_users<'a>(mpi: &'a Mpi, mut guard: Guard<'a>) -> Guard<'a> {
    while let Some((req, step)) = guard.engine.as_mut().and_then(take_user_step) {
        drop(guard);
        // an exception would leave the work of the interrupted call half done
        sealed("the function of a reduction in the background", || {
            step.call()
        });
        guard = mpi.lock();
        if let Some(engine) = &mut guard.engine {
            engine
                .parts
                .collectives
                .user_step_done(&mut engine.messages, req);
        }
    }
    guard
}
