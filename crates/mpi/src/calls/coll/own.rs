//! Collectives that other chapters make on internal communicators, which no program sees: nothing
//! is checked, and their data belong to the library.

use super::block;
use super::call::Call;
use super::plan::{self, Plan};
use super::short::{self, Asked};
use kw_objects::error::Res;
use kw_objects::handle::CommH;
use kw_objects::state::{Mpi, State};
use kw_sys::buf::Buf;

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
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
    let (send, recv) = (Buf::alloc(bytes.len()), Buf::alloc(8));
    send.write(0, &bytes);
    let sums = |state: &mut State| -> Plan { plan::own_sums(state, comm, &send, &recv) };
    block(mpi, comm, sums)?;
    let mut sum = [0; 8];
    recv.read(0, &mut sum);
    Ok(u64::from_ne_bytes(sum))
}
