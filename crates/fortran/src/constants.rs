//! The ABI's constants, generated (`kw_apigen::fortran_layer`): integers and handles with Fortran's
//! values, addresses with C's.
#![allow(missing_docs, clippy::match_single_binding)]

use std::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
