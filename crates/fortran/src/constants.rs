//! The ABI's constants, generated (`kw_apigen::fortran_layer`): integers and handles as Fortran
//! has them, addresses as C has them.
#![allow(missing_docs, clippy::match_single_binding)]

use std::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
