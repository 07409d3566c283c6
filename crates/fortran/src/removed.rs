//! Procedures that MPI 3.0 removed (MPI 5.0, chapter 17), for codes of MPI-1: their addresses and
//! extents are default integers. C has the functions that took their place.

use crate::callback;
use crate::choice::{Address, Choice};
use crate::constants::MPI_ERR_ARG;
use crate::convert::{answer, fail, fault};
use crate::handle::{Comm, Datatype, Errhandler, Handles, give, handle};
use crate::shells::*;
use std::ffi::{CStr, c_int};

/// MPI_ADDRESS
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_address_(
    location: *mut Address,
    address: *mut c_int,
    ierror: *mut c_int,
) {
    let mut wide = 0;
    // SAFETY: the caller's promise; the result has a place.
    unsafe {
        let code = MPI_Get_address(Address::address(location), &raw mut wide);
        // programs subtract such addresses: the difference is right in 32 bits, too
        *address = wide as c_int;
        answer(ierror, code);
    }
}

/// MPI_ERRHANDLER_CREATE
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_errhandler_create_(
    handler_fn: usize,
    errhandler: *mut c_int,
    ierror: *mut c_int,
) {
    let mut made = Errhandler(0);
    // SAFETY: the caller's promise; the result has a place.
    unsafe {
        let function = match callback::comm_errhandler_function(handler_fn) {
            Ok(function) => function,
            Err(class) => return fail(ierror, class),
        };
        let code = MPI_Comm_create_errhandler(function, &raw mut made);
        if code == 0 {
            give(errhandler, made);
        }
        answer(ierror, code);
    }
}

/// MPI_ERRHANDLER_GET
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_errhandler_get_(
    comm: *mut c_int,
    errhandler: *mut c_int,
    ierror: *mut c_int,
) {
    let mut got = Errhandler(0);
    // SAFETY: the caller's promise; the result has a place.
    unsafe {
        let code = MPI_Comm_get_errhandler(handle::<Comm>(comm), &raw mut got);
        if code == 0 {
            give(errhandler, got);
        }
        answer(ierror, code);
    }
}

/// MPI_ERRHANDLER_SET
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_errhandler_set_(
    comm: *mut c_int,
    errhandler: *mut c_int,
    ierror: *mut c_int,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let code = MPI_Comm_set_errhandler(handle::<Comm>(comm), handle(errhandler));
        answer(ierror, code);
    }
}

/// Lower bound and extent of a datatype.
///
/// # Safety
/// `datatype` points at an INTEGER.
unsafe fn bounds(datatype: *const c_int) -> (i64, i64, c_int) {
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: the caller's promise; the results have places.
    let code = unsafe {
        MPI_Type_get_extent(
            handle::<Datatype>(datatype),
            &raw mut lower,
            &raw mut extent,
        )
    };
    (lower, extent, code)
}

/// A value that does not fit into a default integer.
const TOO_LONG: &CStr =
    c"this bound of the datatype does not fit into 4 bytes; use MPI_TYPE_GET_EXTENT";

macro_rules! bounds {
    ($($name:ident |$lower:ident, $extent:ident| $value:expr;)*) => {$(
        /// MPI_TYPE_EXTENT, MPI_TYPE_LB, MPI_TYPE_UB
        ///
        /// # Safety
        /// Arguments of MPI's Fortran interface.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(datatype: *mut c_int, value: *mut c_int, ierror: *mut c_int) {
            // SAFETY: the caller's promise.
            unsafe {
                let ($lower, $extent, code) = bounds(datatype);
                match c_int::try_from($value) {
                    _ if code != 0 => answer(ierror, code),
                    Ok(short) => {
                        *value = short;
                        answer(ierror, code);
                    }
                    Err(_) => fail(ierror, fault(MPI_ERR_ARG, TOO_LONG)),
                }
            }
        }
    )*};
}

bounds! {
    mpi_type_extent_ |_lower, extent| extent;
    mpi_type_lb_ |lower, _extent| lower;
    mpi_type_ub_ |lower, extent| lower + extent;
}

/// `n` default integers as addresses.
///
/// # Safety
/// `from` has `n` elements, if `n` is positive.
unsafe fn widened(from: *const c_int, n: c_int) -> Vec<i64> {
    let at = |i: usize| {
        // SAFETY: the caller's promise.
        i64::from(unsafe { *from.add(i) })
    };
    (0..n.max(0) as usize).map(at).collect()
}

/// MPI_TYPE_HVECTOR
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_hvector_(
    count: *mut c_int,
    blocklength: *mut c_int,
    stride: *mut c_int,
    oldtype: *mut c_int,
    newtype: *mut c_int,
    ierror: *mut c_int,
) {
    let mut made = Datatype(0);
    // SAFETY: the caller's promise; the result has a place.
    unsafe {
        let stride = i64::from(*stride);
        let code =
            MPI_Type_create_hvector(*count, *blocklength, stride, handle(oldtype), &raw mut made);
        if code == 0 {
            give(newtype, made);
        }
        answer(ierror, code);
    }
}

/// MPI_TYPE_HINDEXED
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_hindexed_(
    count: *mut c_int,
    lengths: *mut c_int,
    displacements: *mut c_int,
    oldtype: *mut c_int,
    newtype: *mut c_int,
    ierror: *mut c_int,
) {
    let mut made = Datatype(0);
    // SAFETY: the caller's promise; the result has a place.
    unsafe {
        let mut places = widened(displacements, *count);
        let code = MPI_Type_create_hindexed(
            *count,
            lengths,
            places.as_mut_ptr(),
            handle(oldtype),
            &raw mut made,
        );
        if code == 0 {
            give(newtype, made);
        }
        answer(ierror, code);
    }
}

/// MPI_TYPE_STRUCT
///
/// # Safety
/// Arguments of MPI's Fortran interface.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mpi_type_struct_(
    count: *mut c_int,
    lengths: *mut c_int,
    displacements: *mut c_int,
    types: *mut c_int,
    newtype: *mut c_int,
    ierror: *mut c_int,
) {
    let mut made = Datatype(0);
    // SAFETY: the caller's promise; the result has a place.
    unsafe {
        let mut places = widened(displacements, *count);
        let mut types = Handles::<Datatype>::read(types, i64::from(*count));
        let code = MPI_Type_create_struct(
            *count,
            lengths,
            places.as_mut_ptr(),
            types.as_c(),
            &raw mut made,
        );
        if code == 0 {
            give(newtype, made);
        }
        answer(ierror, code);
    }
}
