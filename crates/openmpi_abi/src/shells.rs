//! The generated functions (`kw_apigen::abi_shells`, run by the build script).
//!
//! # Safety
//! Each is called from C under the promises of its prototype: a pointer that may not be null points
//! to the object that MPI requires, arrays have the number of elements that their count says.
#![allow(
    missing_docs,
    non_snake_case,
    non_upper_case_globals,
    unused_mut,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    clippy::unnecessary_cast
)]

include!(concat!(env!("OUT_DIR"), "/shells.rs"));
