//! Constants with an address (MPI 5.0, 2.5.4): common blocks whose addresses are compared.
//!
//! They are defined here, but the program's own blocks of these names win. So they are declared to
//! Rust as foreign, which reads their addresses from the global offset table.

use std::ffi::{c_char, c_int, c_void};

/// Common blocks: name, type, bytes, contents.
macro_rules! commons {
    ($($name:ident $ty:ty, $size:literal $data:literal;)*) => {
        unsafe extern "C" {
            $(pub(crate) static $name: $ty;)*
        }
        $(std::arch::global_asm!(
            ".pushsection .data", ".balign 16",
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ", @object"),
            concat!(".size ", stringify!($name), ", ", $size),
            concat!(stringify!($name), ": ", $data),
            ".popsection",
        );)*
    };
}

commons! {
    mpi_fortran_bottom_ c_int, "4" ".zero 4";
    mpi_fortran_in_place_ c_int, "4" ".zero 4";
    mpi_fortran_buffer_automatic_ c_int, "4" ".zero 4";
    mpi_fortran_status_ignore_ [c_int; 8], "32" ".zero 32";
    mpi_fortran_statuses_ignore_ [c_int; 8], "32" ".zero 32";
    mpi_fortran_errcodes_ignore_ c_int, "4" ".zero 4";
    mpi_fortran_unweighted_ c_int, "4" ".zero 4";
    mpi_fortran_weights_empty_ c_int, "4" ".zero 4";
    mpi_fortran_argv_null_ c_char, "1" ".byte 32";
    mpi_fortran_argvs_null_ c_char, "1" ".byte 32";
    // `.true.` and `.false.` as long as no compiler says what they are
    kw_fortran_booleans_ [c_int; 2], "8" ".long 1, 0";
}

/// The address of a constant.
macro_rules! address {
    ($name:ident) => {
        (&raw const $name) as usize
    };
}

/// What C has for a buffer.
#[inline(always)]
pub fn buffer(at: *mut c_void) -> *mut c_void {
    let a = at as usize;
    let value = if a == address!(mpi_fortran_bottom_) {
        0
    } else if a == address!(mpi_fortran_in_place_) {
        1
    } else if a == address!(mpi_fortran_buffer_automatic_) {
        2
    } else {
        return at;
    };
    value as *mut c_void
}

/// What C has for a status, or for several.
#[inline(always)]
pub fn status<T>(at: *mut T) -> *mut T {
    let a = at as usize;
    if a == address!(mpi_fortran_status_ignore_) || a == address!(mpi_fortran_statuses_ignore_) {
        return std::ptr::null_mut();
    }
    at
}

/// What C has for weights.
pub fn weights(at: *mut c_int) -> *mut c_int {
    let a = at as usize;
    if a == address!(mpi_fortran_unweighted_) {
        return 10 as *mut c_int;
    }
    if a == address!(mpi_fortran_weights_empty_) {
        return 11 as *mut c_int;
    }
    at
}

/// What C has for error codes.
pub fn errcodes(at: *mut c_int) -> *mut c_int {
    if at as usize == address!(mpi_fortran_errcodes_ignore_) {
        return std::ptr::null_mut();
    }
    at
}

/// Whether it is MPI_ARGV_NULL or MPI_ARGVS_NULL.
pub fn is_no_arguments(at: *const c_char) -> bool {
    let a = at as usize;
    a == address!(mpi_fortran_argv_null_) || a == address!(mpi_fortran_argvs_null_)
}
