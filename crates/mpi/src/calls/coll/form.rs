//! Forms of a collective operation: a blocking call drives its plan, a non-blocking one launches
//! it, a persistent one launches a copy at each start.

use super::call::{Call, make};
use super::plan::Plan;
use super::short::{self, Asked};
use super::{begin, block, keep, shm_region};
use kw_objects::error::Res;
use kw_objects::forms::{Blocking, Nonblocking, Persistent};
use kw_objects::handle::{CommH, InfoH, RequestH};
use kw_objects::state::{Mpi, State};
use kw_sys::args::Out;

/// A collective operation with its arguments.
pub trait Operation: Copy {
    /// Whether a persistent one has a shm region of its own.
    const OWN_SHM_REGION: bool;

    /// The schedule with its buffers.
    fn plan(self, state: &mut State, comm: CommH) -> Plan;

    /// Description of a short call, if this may be one.
    fn asked(&self) -> Option<Asked>;
}

impl Operation for Call {
    const OWN_SHM_REGION: bool = true;

    #[inline(always)]
    fn plan(self, state: &mut State, comm: CommH) -> Plan {
        make(state, self, comm)
    }

    #[inline(always)]
    fn asked(&self) -> Option<Asked> {
        Asked::of(self)
    }
}

/// A form of the collective operations.
pub trait Form {
    /// Makes the call.
    fn run<O: Operation>(self, mpi: &Mpi, comm: CommH, operation: O) -> Res;
}

impl Form for Blocking<()> {
    #[inline(always)]
    fn run<O: Operation>(self, mpi: &Mpi, comm: CommH, operation: O) -> Res {
        let plan = move |state: &mut State| operation.plan(state, comm);
        match operation.asked() {
            Some(asked) => short::call(mpi, comm, asked, plan),
            None => block(mpi, comm, plan),
        }
    }
}

impl Form for Nonblocking<(Out<RequestH>,)> {
    fn run<O: Operation>(self, mpi: &Mpi, comm: CommH, operation: O) -> Res {
        let (request,) = self.0;
        begin(mpi, comm, request, |state| operation.plan(state, comm))
    }
}

/// The info argument carries no hints that we know.
impl Form for Persistent<(InfoH, Out<RequestH>)> {
    fn run<O: Operation>(self, mpi: &Mpi, comm: CommH, operation: O) -> Res {
        let (info, request) = self.0;
        mpi.lock().above.infos.get_or_null(info)?;
        let shm_region = match O::OWN_SHM_REGION {
            true => shm_region::own(mpi, comm)?,
            false => None,
        };
        keep(mpi, comm, request, shm_region, |state| {
            operation.plan(state, comm)
        })
    }
}
