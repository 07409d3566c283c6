//! MPI semantics in typed Rust. No pointer, no C, no global: [`Mpi`] is a value, and `calls` has one function for each
//! MPI function, named like it without `MPI_`, with the same parameters in the same order.
//!
//! The generated shells of `kw-abi` call [`calls`]; a function that exists there is built, one that does not answers
//! MPI_ERR_UNSUPPORTED_OPERATION.
#![forbid(unsafe_code)]

pub mod calls;
pub mod error;
pub mod fortran;
pub mod handle;
mod internal;
pub mod objects;
mod state;

pub use error::{Class, Fault, Handler, Res, Scope};
pub use state::{Guard, Mpi, Tables};
