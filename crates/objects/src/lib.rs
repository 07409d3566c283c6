//! The objects that handles name: their contents, and their look-up. No pointer, no C, no global:
//! [`Mpi`] is a value.
//!
//! The calls (`kw-mpi` and the crates of the chapters beside it) use these.
#![forbid(unsafe_code)]

pub mod abi;
pub mod attributes;
pub mod buffered;
pub mod codes;
pub mod comm;
pub mod conflicts;
pub mod datatype;
pub mod errhandler;
pub mod error;
pub mod file;
pub mod forms;
pub mod fortran;
pub mod generalized;
pub mod group;
pub mod handle;
pub mod hang;
pub mod hook;
pub mod info;
pub mod left;
pub mod life;
pub mod lists;
pub mod message;
pub mod op;
pub mod persistent;
pub mod purpose;
pub mod request;
pub mod session;
pub mod spawned;
pub mod state;
pub mod status;
pub mod tool;
pub mod topology;
pub mod window;

pub use comm::Comm;
pub use error::{Class, Fault, Handler, Res, Scope};
pub use group::Group;
pub use state::{Guard, Mpi, Tables};
pub use topology::Topology;
