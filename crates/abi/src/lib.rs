//! The C library: `libmpi_abi.so.1`, the standard ABI of MPI 5.0.
//!
//! [`shells`] is generated: one shell for each function, under its MPI_ and its PMPI_ name.
//! [`shell`] is the common work around the call into `kw_mpi`; [`arg`] converts C arguments to safe
//! values; [`report`] invokes error handlers; [`plain`] has the functions that return a value
//! instead of an error code, [`fortran`] those between the languages; [`hook`] is for the Fortran
//! layer, [`bindings`] for Java's bindings; [`table`] has all functions for libraries of other
//! ABIs. The only process global is in [`shell`].

pub mod arg;
pub mod bindings;
pub mod fortran;
pub mod hook;
pub mod plain;
pub mod report;
pub mod shell;
pub mod shells;
pub mod table;

include!(concat!(env!("OUT_DIR"), "/coverage.rs"));

/// The text of `mpi.h`.
pub const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/mpi.h"));
