//! Persistent requests (MPI 5.0, 3.9): arguments are checked and decoded once; the requests are
//! started often.

use kw_objects::error::{Res, fail};
use kw_objects::handle::RequestH;
use kw_objects::persistent::{self};
use kw_objects::state::Mpi;
use kw_sys::args::{Array, Out};

/// MPI_Start
pub fn start(mpi: &Mpi, request: Out<RequestH>) -> Res {
    persistent::start(&mut mpi.lock(), request.get())
}

/// MPI_Startall
pub fn startall(mpi: &Mpi, count: i32, requests: Array<RequestH>) -> Res {
    if count < 0 {
        return fail!(Count: "count is {count}, but must not be negative");
    }
    let mut guard = mpi.lock();
    for i in 0..count as usize {
        persistent::start(&mut guard, requests.get(i))?;
    }
    Ok(())
}
