//! MPI semantics in typed Rust. No pointer, no C, no global: [`Mpi`] is a value, and `calls` has
//! one function for each MPI operation, named like it without `MPI_`, with the same parameters in
//! the same order and then its [form](forms).
//!
//! The generated shells of `kw-abi` call [`built`]; a function that is not there answers
//! MPI_ERR_UNSUPPORTED_OPERATION.
#![forbid(unsafe_code)]

// A function of MPI without a row in api/built.tsv is one that nobody can call.
#[deny(dead_code)]
mod calls;
pub mod error;
pub mod forms;
pub mod fortran;
mod group_collectives;
pub mod handle;
mod hang;
pub mod objects;
mod state;

/// The functions of MPI that are built (`api/built.tsv`).
pub mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}

pub use calls::env::{end_job, end_process};
pub use error::{Class, Fault, Handler, Res, Scope};
pub use state::{Guard, Mpi, Tables};
