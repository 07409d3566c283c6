//! Dynamic processes (MPI 5.0, chapter 11): jobs that grow, and jobs that find each other.
//!
//! | module | contents |
//! | --- | --- |
//! | `calls` | a function for each operation |
//! | [`card`] | what the processes of one side tell the other side of themselves, as bytes |
//! | [`hints`] | what an Info object says of a program that is to be started |
//! | [`meet`] | how the two sides of a channel become an intercommunicator |
//! | [`start`] | how an mpiexec is started for processes that are spawned |
//! | [`names`] | names of services: files in a directory of the user |
//!
//! Spawning is the same as accepting: the root opens a port, starts an mpiexec whose processes find
//! its name in their environment, and accepts them. They connect at the end of MPI_Init.
#![forbid(unsafe_code)]

pub mod card;
// A function of MPI without a row in api/built.tsv cannot be called.
#[deny(dead_code)]
mod calls;
pub mod hints;
pub mod meet;
pub mod names;
pub mod start;

pub use meet::meet_parent;

/// The functions of MPI in this crate that are built (`api/built.tsv`).
pub mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}
