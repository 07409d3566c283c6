//! The standard functions: the type of their table is generated, the table is libmpi_abi's.
#![allow(missing_docs, missing_debug_implementations, non_snake_case)]

use crate::status::Standard;
use std::ffi::{c_int, c_void};

unsafe extern "C" {
    #[link_name = "kw_MPI_functions"]
    static FUNCTIONS: Functions;
}

/// The standard functions.
#[inline(always)]
pub fn functions() -> &'static Functions {
    // SAFETY: libmpi_abi has the table, and does not change it.
    unsafe { &FUNCTIONS }
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
