//! The generated shells (`kw_apigen::shells`, run by the build script).
//!
//! # Safety
//! Every one of them is called from C under the promises of MPI 5.0, 2.3 and 3.7: see
//! `kw_sys::args`.
#![allow(
    missing_docs,
    non_snake_case,
    unused_variables,
    clippy::missing_safety_doc
)]
#![allow(
    unused_imports,
    clippy::undocumented_unsafe_blocks,
    clippy::unnecessary_cast
)]

use crate::arg::arg;
use crate::shell::{not_null, not_null_when, run, run_always, run_tool, unbuilt};
use kw_objects::Scope;
use kw_objects::forms::*;
use kw_objects::handle::*;
use kw_sys::args::Status;
use std::ffi::{c_char, c_int, c_void};

include!(concat!(env!("OUT_DIR"), "/shells.rs"));
