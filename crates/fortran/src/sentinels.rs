//! Constants with an address (MPI 5.0, 2.5.4): common blocks whose addresses are compared.
//!
//! They are defined here, but the program's own blocks of the same names take precedence. So they
//! are declared to Rust as foreign, which makes it read their addresses from the global offset
//! table.

use crate::constants::*;
use std::ffi::{c_char, c_int, c_void};

/// Common blocks and other symbols: name, bytes, the character that fills it.
macro_rules! commons {
    ($($name:ident $bytes:literal $fill:literal;)*) => {
        unsafe extern "C" {
            $(#[allow(non_upper_case_globals)]
            static $name: [u8; $bytes];)*
        }
        $(std::arch::global_asm!(
            ".pushsection .data", ".balign 64",
            concat!(".globl ", stringify!($name)),
            concat!(".type ", stringify!($name), ", @object"),
            concat!(".size ", stringify!($name), ", ", $bytes),
            concat!(stringify!($name), ": .fill ", $bytes, ", 1, ", $fill),
            ".popsection",
        );)*
    };
}

/// Whether an address is that of a constant: its name, its symbols (none, if the ABI does not have
/// this constant), and the offset in them.
macro_rules! addresses {
    ($($name:ident $($symbol:ident $at:literal),*;)*) => {
        #[allow(non_snake_case)]
        mod is {
            $(#[inline(always)]
            pub fn $name(address: usize) -> bool {
                [$((&raw const super::$symbol) as usize + $at),*].contains(&address)
            })*
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/commons.rs"));

unsafe extern "C" {
    pub(crate) static kw_fortran_compiler_: [c_int; 9];
}

// values that `compiler` reads if no compiler supplies others: `.true.` and `.false.`
std::arch::global_asm!(
    ".pushsection .data",
    ".balign 64",
    ".globl kw_fortran_compiler_",
    ".type kw_fortran_compiler_, @object",
    ".size kw_fortran_compiler_, 36",
    "kw_fortran_compiler_: .long 1, 0, -1, -1, -1, -1, -1, -1, -1",
    ".popsection",
);

/// C's form of a buffer.
#[inline(always)]
pub fn buffer(at: *mut c_void) -> *mut c_void {
    let a = at as usize;
    let value = if is::MPI_BOTTOM(a) {
        MPI_BOTTOM
    } else if is::MPI_IN_PLACE(a) {
        MPI_IN_PLACE
    } else if is::MPI_BUFFER_AUTOMATIC(a) {
        MPI_BUFFER_AUTOMATIC
    } else {
        return at;
    };
    value as *mut c_void
}

/// C's form of one or several statuses.
#[inline(always)]
pub fn status<T>(at: *mut T) -> *mut T {
    let a = at as usize;
    if is::MPI_STATUS_IGNORE(a) || is::MPI_STATUSES_IGNORE(a) {
        return MPI_STATUS_IGNORE as *mut T;
    }
    at
}

/// C's form of weights.
pub fn weights(at: *mut c_int) -> *mut c_int {
    let a = at as usize;
    if is::MPI_UNWEIGHTED(a) {
        return MPI_UNWEIGHTED as *mut c_int;
    }
    if is::MPI_WEIGHTS_EMPTY(a) {
        return MPI_WEIGHTS_EMPTY as *mut c_int;
    }
    at
}

/// C's form of error codes.
pub fn errcodes(at: *mut c_int) -> *mut c_int {
    if is::MPI_ERRCODES_IGNORE(at as usize) {
        return MPI_ERRCODES_IGNORE as *mut c_int;
    }
    at
}

/// Whether it is MPI_ARGV_NULL or MPI_ARGVS_NULL.
pub fn is_no_arguments(at: *const c_char) -> bool {
    let a = at as usize;
    is::MPI_ARGV_NULL(a) || is::MPI_ARGVS_NULL(a)
}
