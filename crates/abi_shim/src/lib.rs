//! Common parts of the ABI shims: programs that were compiled for another MPI run on this one
//! through a shim library (`mpich_abi`, `openmpi_abi`).
//!
//! A shim has an [`Abi`]: its kinds of handles, its status, its constants. Everything that follows
//! from these is here, generic over it: handles and arrays of them ([`handle`]), statuses
//! ([`status`]), constants and their places ([`convert`]), texts ([`text`]), functions of the
//! program that MPI calls ([`callback`], [`keyval`], [`datarep`]), and the functions whose
//! parameters do not determine the meaning of their values ([`by_hand`]). The shim's own functions
//! are generated (`kw_apigen::abi_shells`): each converts the program's values to those of the
//! standard ABI, calls the standard function through the table of `libmpi_abi` ([`functions`]), and
//! converts the results back.
//!
//! Calls of standard functions cannot be tested here: there is no library to link with. The shims
//! are tested with whole programs (`tests/abi_shims`).

pub mod abi;
pub mod address;
pub mod by_hand;
pub mod callback;
pub mod constants;
pub mod convert;
pub mod datarep;
pub mod equal;
pub mod first;
pub mod functions;
pub mod handle;
pub mod keyval;
pub mod peers;
pub mod status;
pub mod text;

pub use abi::{Abi, Constants};
pub use address::Address;
pub use kw_base::Key;

#[cfg(test)]
mod toy;
