//! `mpiexec --profile`: MPI calls of the ranks, by place in the program.
//!
//! - [`memory`]: memory into which the recorders of the ranks on one machine write
//!   (`kw_start::profile`). Their parent reads it, whether they live or not.
//! - [`table`]: the calls of all ranks together.
//! - [`page`], [`json`]: that for people and for programs.

pub mod json;
pub mod memory;
pub mod page;
pub mod table;

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// The name of a function, and whether it waits for other ranks.
pub fn function(number: u32) -> (&'static str, bool) {
    let found = FUNCTIONS.get(number as usize).copied();
    found.unwrap_or(("other calls", false))
}
