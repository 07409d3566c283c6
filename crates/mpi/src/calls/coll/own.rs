//! Collectives that other chapters make on internal communicators, which no program sees: nothing
//! is checked, and their data belong to the library.

use super::block;
use super::call::Call;
use super::plan;
use super::short::{self, Asked};
use kw_objects::error::Res;
use kw_objects::handle::{CommH, OpH, TypeH};
use kw_objects::state::{Mpi, State};
use kw_sys::buf::Addr;

/// Waits until all ranks of the communicator have called this.
#[inline]
pub fn barrier(mpi: &Mpi, comm: CommH) -> Res {
    let plan = |state: &mut State| plan::barrier(state, comm);
    match Asked::of(&Call::Barrier) {
        Some(asked) => short::call(mpi, comm, asked, plan),
        None => block(mpi, comm, plan),
    }
}

/// The sum of the numbers that all ranks give for this one; each rank gives a number for every
/// rank.
pub fn sum_of_each(mpi: &Mpi, comm: CommH, numbers: &[u64]) -> Res<u64> {
    if let [own] = numbers {
        return Ok(*own);
    }
    let mut sum = 0_u64;
    // Both outlive the call, which has ended with them when it returns.
    let at = |address: usize| Addr::NULL.assume_offset(address as i64);
    let (from, into) = (at(numbers.as_ptr() as usize), at(&raw mut sum as usize));
    let args = (from, into, 1, TypeH::UINT64, OpH::SUM);
    let plan = |state: &mut State| plan::reduce_scatter_block(state, args, comm);
    match Asked::of(&Call::ReduceScatterBlock(args)) {
        Some(asked) => short::call(mpi, comm, asked, plan),
        None => block(mpi, comm, plan),
    }?;
    Ok(sum)
}
