//! The standard ABI's constants under their names in C, generated from `api/constants.tsv`:
//! integers unchanged, handles and addresses as their values.
#![allow(missing_docs)]

use std::ffi::c_int;

include!(concat!(env!("OUT_DIR"), "/constants.rs"));
