//! Persistent requests (MPI 5.0, 3.9): arguments are checked and decoded once, and started often.

use crate::error::{Class, Res, fail};
use crate::handle::{CommH, RequestH};
use crate::objects::persistent::{self, Persistent, Start};
use crate::objects::request::Kind;
use crate::state::Mpi;
use kw_sys::args::{Array, Out};

impl crate::state::Tables {
    /// A handle for an inactive persistent request.
    pub fn new_persistent(&mut self, comm: CommH, start: Start) -> RequestH {
        self.new_request(Kind::Persistent(Box::new(Persistent {
            comm,
            start,
            active: None,
            partitions: None,
        })))
    }
}

/// MPI_Start
pub fn start(mpi: &Mpi, request: Out<RequestH>) -> Res {
    persistent::start(&mut mpi.lock(), request.get())
}

/// MPI_Startall
pub fn startall(mpi: &Mpi, count: i32, requests: Array<RequestH>) -> Res {
    if count < 0 {
        return fail(
            Class::Count,
            format!("count is {count}, but must not be negative"),
        );
    }
    let mut guard = mpi.lock();
    for i in 0..count as usize {
        persistent::start(&mut guard, requests.get(i))?;
    }
    Ok(())
}
