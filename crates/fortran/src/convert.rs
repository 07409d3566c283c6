//! Results and small conversions that every shell has in scope.

use crate::constants::*;
use crate::handle::{Comm, handle, to_c};
use crate::shells::{
    MPI_Add_error_code, MPI_Add_error_string, MPI_Cartdim_get, MPI_Comm_call_errhandler,
    MPI_Comm_rank, MPI_Comm_remote_size, MPI_Comm_size, MPI_Comm_test_inter,
    MPI_Dist_graph_neighbors_count, MPI_Graph_neighbors_count, MPI_Topo_test,
};
use kw_base::sync::Mutex;
use std::ffi::{CStr, c_int};

/// A status: the same number of INTEGERs in every language.
#[repr(C)]
pub struct Status([c_int; MPI_STATUS_SIZE as usize]);

/// Sets `ierror`, unless it is absent.
///
/// # Safety
/// `ierror` is null or points at an INTEGER.
#[inline(always)]
pub unsafe fn answer(ierror: *mut c_int, code: c_int) {
    if !ierror.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *ierror = code };
    }
}

/// Handles an error that C does not see: calls the error handler of MPI_COMM_SELF (MPI 5.0, 9.3).
///
/// # Safety
/// As for [`answer`].
#[cold]
pub unsafe fn fail(ierror: *mut c_int, code: c_int) {
    // SAFETY: MPI_COMM_SELF accepts errors at any time; for `ierror` the caller's promise.
    unsafe {
        MPI_Comm_call_errhandler(to_c::<Comm>(MPI_COMM_SELF), code);
        answer(ierror, code);
    }
}

static SENTENCES: Mutex<Vec<(&CStr, c_int)>> = Mutex::new(Vec::new());

/// The error code for a sentence of this library, which MPI_Error_string returns.
#[cold]
pub fn fault(class: c_int, sentence: &'static CStr) -> c_int {
    let mut known = SENTENCES.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((_, code)) = known.iter().find(|(other, _)| *other == sentence) {
        return *code;
    }
    let mut code = class;
    // SAFETY: the result has a place, and C reads a text up to its zero.
    unsafe {
        if MPI_Add_error_code(class, &raw mut code) != 0
            || MPI_Add_error_string(code, sentence.as_ptr().cast_mut()) != 0
        {
            return class;
        }
    }
    known.push((sentence, code));
    code
}

/// Converts the index of a request to count from 1 (MPI 5.0, 3.7.5); MPI_UNDEFINED stays.
///
/// # Safety
/// `index` points at an INTEGER.
pub unsafe fn index(index: *mut c_int) {
    // SAFETY: the caller's promise.
    unsafe {
        if *index != MPI_UNDEFINED {
            *index += 1;
        }
    }
}

/// Converts the indices of requests to count from 1.
///
/// # Safety
/// `indices` has `count` elements, or `count` is negative (MPI_UNDEFINED).
pub unsafe fn indices(indices: *mut c_int, count: c_int) {
    for i in 0..count.max(0) as usize {
        // SAFETY: the caller's promise.
        unsafe { *indices.add(i) += 1 };
    }
}

/// Number of processes with which a collective on a communicator exchanges blocks.
///
/// # Safety
/// MPI is initialised.
pub unsafe fn peers(comm: c_int) -> i64 {
    let (mut inter, mut size) = (0, 0);
    // SAFETY: the results have places.
    unsafe {
        let comm = handle(&raw const comm);
        if MPI_Comm_test_inter(comm, &raw mut inter) != 0 {
            return 0;
        }
        match inter {
            0 => MPI_Comm_size(comm, &raw mut size),
            _ => MPI_Comm_remote_size(comm, &raw mut size),
        };
    }
    i64::from(size)
}

/// Numbers of neighbours that this process sends to, or receives from.
///
/// # Safety
/// MPI is initialised.
pub unsafe fn neighbors(comm: c_int, outgoing: bool) -> i64 {
    let (mut kind, mut rank, mut n, mut out, mut weighted) = (0, 0, 0, 0, 0);
    // SAFETY: the results have places.
    unsafe {
        let c: Comm = handle(&raw const comm);
        if MPI_Topo_test(c, &raw mut kind) != 0 {
            return 0;
        }
        match kind {
            MPI_CART => n = 2 * dimensions(comm) as c_int,
            MPI_GRAPH => {
                MPI_Comm_rank(c, &raw mut rank);
                MPI_Graph_neighbors_count(c, rank, &raw mut n);
            }
            MPI_DIST_GRAPH => {
                MPI_Dist_graph_neighbors_count(c, &raw mut n, &raw mut out, &raw mut weighted);
                if outgoing {
                    n = out;
                }
            }
            _ => {}
        }
    }
    i64::from(n)
}

/// Number of dimensions of a grid.
///
/// # Safety
/// MPI is initialised.
pub unsafe fn dimensions(comm: c_int) -> i64 {
    let mut n = 0;
    // SAFETY: the result has a place.
    let code = unsafe { MPI_Cartdim_get(handle(&raw const comm), &raw mut n) };
    if code == 0 { i64::from(n) } else { 0 }
}
