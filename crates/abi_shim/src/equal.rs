//! MPICH's operation MPIX_EQUAL: whether all processes contribute the same values, byte for byte.
//!
//! The result is one int, whatever the datatype and the count are. MPICH has it for blocking
//! MPI_Reduce and MPI_Allreduce on intracommunicators.

use crate::Abi;
use crate::constants::{MPI_BYTE, MPI_IN_PLACE, MPI_INT, MPI_LAND};
use crate::functions::functions;
use std::ffi::{c_int, c_void};

/// Arguments of a reduction in the standard ABI.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Contribution.
    pub sendbuf: *mut c_void,
    /// Result.
    pub recvbuf: *mut c_void,
    /// Number of elements.
    pub count: i64,
    /// Their datatype.
    pub datatype: usize,
    /// The root, if only one process receives the result.
    pub root: Option<c_int>,
    /// Communicator.
    pub comm: usize,
}

/// Compares the contributions with that of one process. `None` if this operation is not defined for
/// the communicator.
///
/// # Safety
/// The buffers are those of a reduction; MPI is initialised.
#[cold]
pub unsafe fn equal<A: Abi>(r: Reduction) -> Option<c_int> {
    let mut inter = 0;
    // SAFETY: the result has a place.
    let outcome = unsafe { (functions().MPI_Comm_test_inter)(r.comm, &raw mut inter) };
    match (outcome, inter) {
        (0, 0) => {}
        _ => return None,
    }
    // SAFETY: the caller's promise.
    let compared = unsafe { compare(r) };
    Some(crate::convert::error_out::<A>(
        compared.err().unwrap_or_default(),
    ))
}

/// # Safety
/// That of [`equal`].
unsafe fn compare(r: Reduction) -> Result<(), c_int> {
    let f = functions();
    // SAFETY: the buffers are the caller's, or have the size that was asked for.
    unsafe {
        let mut mine = packed(r)?;
        let mut rank = 0;
        done((f.MPI_Comm_rank)(r.comm, &raw mut rank))?;
        let first = r.root.unwrap_or_default();
        let mut other = room(mine.len());
        let of_first = match rank == first {
            true => &mut mine,
            false => &mut other,
        };
        let (n, bytes) = (of_first.len() as i64, of_first.as_mut_ptr().cast());
        done((f.MPI_Bcast_c)(bytes, n, MPI_BYTE, first, r.comm))?;
        let mut same = c_int::from(rank == first || mine == other);
        let mut all: c_int = 0;
        let (one, result) = ((&raw mut same).cast(), (&raw mut all).cast());
        let (int, land) = (MPI_INT, MPI_LAND);
        match r.root {
            None => done((f.MPI_Allreduce)(one, result, 1, int, land, r.comm))?,
            Some(root) => done((f.MPI_Reduce)(one, result, 1, int, land, root, r.comm))?,
        }
        if r.root.is_none_or(|root| root == rank) && !r.recvbuf.is_null() {
            r.recvbuf.cast::<c_int>().write_unaligned(all);
        }
    }
    Ok(())
}

/// The bytes of this process's contribution.
///
/// # Safety
/// That of [`equal`].
unsafe fn packed(r: Reduction) -> Result<Vec<u8>, c_int> {
    let f = functions();
    let from = match r.sendbuf as usize == MPI_IN_PLACE {
        true => r.recvbuf,
        false => r.sendbuf,
    };
    let (mut size, mut position) = (0, 0);
    // SAFETY: the caller's promise; the results have places.
    unsafe {
        done((f.MPI_Pack_size_c)(
            r.count,
            r.datatype,
            r.comm,
            &raw mut size,
        ))?;
        let mut bytes = room(size as usize);
        let into = bytes.as_mut_ptr().cast();
        if size > 0 {
            done((f.MPI_Pack_c)(
                from,
                r.count,
                r.datatype,
                into,
                size,
                &raw mut position,
                r.comm,
            ))?;
        }
        bytes.truncate(position as usize);
        Ok(bytes)
    }
}

/// Memory for this many bytes; its address is none of MPI's constants, even for no bytes.
fn room(bytes: usize) -> Vec<u8> {
    let mut room = Vec::with_capacity(bytes.max(1));
    room.resize(bytes, 0);
    room
}

fn done(outcome: c_int) -> Result<(), c_int> {
    if outcome == 0 { Ok(()) } else { Err(outcome) }
}
