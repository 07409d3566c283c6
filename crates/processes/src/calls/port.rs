//! Ports, and how two jobs become one intercommunicator (MPI 5.0, 11.9 and 11.10).

use crate::meet::{Introduction, port_fault, wait};
use kw_boot::port::{self, Channel, Port};
use kw_mpi::chapter::{Parent, checked_root};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::state::Mpi;
use kw_sys::args::{Out, OutText, Text};
use std::sync::Arc;
use std::time::Duration;

/// MPI_MAX_PORT_NAME
pub(crate) const MAX_PORT_NAME: usize = 1024;

/// A port on the addresses that this process may listen on.
pub(crate) fn open(mpi: &Mpi) -> Res<Port> {
    let guard = mpi.lock();
    let Some(engine) = &guard.engine else {
        return fail(Class::Other, "MPI is not initialised");
    };
    let addresses = engine.addresses();
    let addresses = addresses.map_err(|e| Fault::new(Class::Port, e.to_string()))?;
    Port::open(&addresses).map_err(|e| Fault::new(Class::Port, e.to_string()))
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
    match mpi.lock().above.ports.remove(name.trim_end()) {
        Some(_) => Ok(()),
        None => fail(Class::Port, NOT_OPEN),
    }
}

const NOT_OPEN: &str = "port_name names no port that this process has open";

/// MPI_Comm_accept. `port_name` and `info` mean something at the root only.
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
        let open = || mpi.lock().above.ports.contains_key(name.trim_end());
        port.accept(open)
            .map_err(|e| port_fault(Class::Port, "the port", e))
    })
}

/// MPI_Comm_connect. `port_name` and `info` mean something at the root only.
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
        let patience = Duration::from_secs(wait(mpi));
        port::call(&name, patience).map_err(|e| port_fault(Class::Port, "the port", e))
    })
}

/// The intercommunicator with the group at the other end of the root's channel.
fn meet(
    mpi: &Mpi,
    (info, root, comm): (InfoH, i32, CommH),
    newcomm: Out<CommH>,
    open: impl FnOnce() -> Res<Channel>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    newcomm.set(CommH::NULL);
    let root = checked_root(root, parent.members.group.size())?;
    let introduction = Introduction::new(&parent, root);
    introduction.open(|| {
        mpi.lock().above.infos.get_or_null(info)?;
        open()
    })?;
    newcomm.set(introduction.meet()?);
    Ok(())
}

/// MPI_Comm_join: two processes that share a connected socket.
pub fn comm_join(mpi: &Mpi, fd: i32, intercomm: Out<CommH>) -> Res {
    let parent = Parent::intra(mpi, CommH::SELF, "MPI_COMM_SELF")?;
    intercomm.set(CommH::NULL);
    let introduction = Introduction::new(&parent, 0);
    introduction.open(|| {
        let bad = |e: std::io::Error| {
            Fault::new(
                Class::Arg,
                format!("fd {fd} is not a connected socket: {e}"),
            )
        };
        let stream = kw_sys::fd::borrowed_stream(fd).map_err(bad)?;
        Channel::over(stream).map_err(|e| port_fault(Class::Other, "the socket", e))
    })?;
    intercomm.set(introduction.meet()?);
    Ok(())
}
