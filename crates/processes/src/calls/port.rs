//! Ports, and how two jobs become one intercommunicator (MPI 5.0, 11.9 and 11.10).

use crate::meet::{Introduction, port_fault, wait};
use kw_base::sync::{Arc, Mutex, thread};
use kw_boot::port::{self, Channel, Port};
use kw_engine::{WaitOn, addresses_for_others};
use kw_mpi::chapter::{Parent, checked_root, wait_serving};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::state::{Mpi, State};
use kw_sys::args::{Out, OutText, Text};
use kw_sys::threads::with_signals_blocked;
use std::sync::PoisonError;
use std::time::Duration;

/// MPI_MAX_PORT_NAME
pub(crate) const MAX_PORT_NAME: usize = 1024;

/// A port on the addresses that this process may listen on.
pub(crate) fn open(mpi: &Mpi) -> Res<Port> {
    let guard = mpi.lock();
    let Some(engine) = &guard.engine else {
        return fail(Class::Other, "MPI is not initialised");
    };
    let addresses = addresses_for_others(engine.settings());
    let addresses = addresses.map_err(|e| Fault::new(Class::Port, e.to_string()))?;
    let lock = mpi.lock.share();
    let port = Port::open(&addresses, move || lock.wake_all());
    port.map_err(|e| Fault::new(Class::Port, e.to_string()))
}

/// Waits until `done` returns a value, while messages progress; hang reports contain the reason
/// (`what`, which ends before "for 12 s").
pub(crate) fn wait_for<T>(
    mpi: &Mpi,
    what: String,
    mut done: impl FnMut(&mut State) -> Option<Res<T>>,
) -> Res<T> {
    let mut guard = mpi.lock();
    guard.above.teller.waits_for(Some(what));
    let mut found = None;
    guard = wait_serving(mpi, guard, WaitOn::default(), |state| {
        found = done(state);
        found.is_some()
    });
    guard.above.teller.waits_for(None);
    found.unwrap_or_else(|| fail(Class::Other, "MPI was finalized meanwhile"))
}

/// MPI_Open_port
pub fn open_port(mpi: &Mpi, info: InfoH, port_name: OutText) -> Res {
    mpi.lock().above.infos.get_or_null(info)?;
    let port = open(mpi)?;
    port_name.set(port.name().as_bytes(), MAX_PORT_NAME);
    let name = port.name().to_string();
    mpi.lock().above.ports.insert(name, Arc::new(port));
    Ok(())
}

/// MPI_Close_port
pub fn close_port(mpi: &Mpi, port_name: Text) -> Res {
    let name = port_name.to_text().unwrap_or_default();
    let port = mpi.lock().above.ports.remove(name.trim_end());
    // Threads that wait there are told, and drop it without the lock.
    mpi.wake_all();
    match port {
        Some(_) => Ok(()),
        None => fail(Class::Port, NOT_OPEN),
    }
}

const NOT_OPEN: &str = "port_name names no port that this process has open";

/// MPI_Comm_accept. `port_name` and `info` are significant only at the root.
pub fn comm_accept(
    mpi: &Mpi,
    port_name: Text,
    info: InfoH,
    root: i32,
    comm: CommH,
    newcomm: Out<CommH>,
) -> Res {
    meet(mpi, (info, root, comm), newcomm, || {
        let name = port_name.to_text().unwrap_or_default();
        let port = mpi.lock().above.ports.get(name.trim_end()).cloned();
        let Some(port) = port else {
            return fail(Class::Port, NOT_OPEN);
        };
        let what = format!("waits on port {}; no one has connected", port.place());
        wait_for(mpi, what, |state| {
            if !state.above.ports.contains_key(name.trim_end()) {
                return Some(fail(Class::Port, "the port was closed meanwhile"));
            }
            port.take().map(Ok)
        })
    })
}

/// MPI_Comm_connect. `port_name` and `info` are significant only at the root.
pub fn comm_connect(
    mpi: &Mpi,
    port_name: Text,
    info: InfoH,
    root: i32,
    comm: CommH,
    newcomm: Out<CommH>,
) -> Res {
    meet(mpi, (info, root, comm), newcomm, || {
        let name = port_name.to_text().unwrap_or_default();
        call(mpi, name, Duration::from_secs(wait(mpi)))
    })
}

/// Connects to a port in a thread of its own, while messages progress.
fn call(mpi: &Mpi, name: String, patience: Duration) -> Res<Channel> {
    let what = format!(
        "waits for port {}; it has not been accepted",
        port::place(&name)
    );
    let (lock, answer) = (mpi.lock.share(), Arc::new(Mutex::new(None)));
    let tell = answer.clone();
    let calling = move || {
        let called = port::call(&name, patience);
        *tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(called);
        lock.wake_all();
    };
    with_signals_blocked(|| thread::spawn(calling));
    wait_for(mpi, what, |_| {
        let called = answer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(called.map_err(|e| port_fault(Class::Port, "the port", e)))
    })
}

/// The root, which must be the same on all processes: otherwise they wait for each other.
pub(crate) fn same_root(parent: &Parent<'_>, root: i32) -> Res<u32> {
    let members = &parent.members;
    members.alike_or(Class::Root, "root", &root.to_string())?;
    checked_root(root, members.group.size())
}

/// The intercommunicator with the processes at the other end of the root's channel.
fn meet(
    mpi: &Mpi,
    (info, root, comm): (InfoH, i32, CommH),
    newcomm: Out<CommH>,
    open: impl FnOnce() -> Res<Channel>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    newcomm.set(CommH::NULL);
    let root = same_root(&parent, root)?;
    let introduction = Introduction::new(&parent, root);
    newcomm.set(introduction.meet(|| {
        mpi.lock().above.infos.get_or_null(info)?;
        open()
    })?);
    Ok(())
}

/// MPI_Comm_join: two processes that share a connected socket.
pub fn comm_join(mpi: &Mpi, fd: i32, intercomm: Out<CommH>) -> Res {
    let parent = Parent::intra(mpi, CommH::SELF, "MPI_COMM_SELF")?;
    intercomm.set(CommH::NULL);
    let introduction = Introduction::new(&parent, 0);
    let made = introduction.meet(|| {
        let bad = |e: std::io::Error| {
            Fault::new(
                Class::Arg,
                format!("fd {fd} is not a connected socket: {e}"),
            )
        };
        let stream = kw_sys::fd::borrowed_stream(fd).map_err(bad)?;
        Channel::over(stream).map_err(|e| port_fault(Class::Other, "the socket", e))
    })?;
    intercomm.set(made);
    Ok(())
}
