//! `mpiexec --trace`: MPI activity of the ranks over time.
//!
//! - [`drain`]: takes what the recorders of the ranks on one machine have written
//!   (`kw_start::trace`), whether they live or not.
//! - [`clock`]: that machine's ticks as nanoseconds, and how far its clock is from ours.
//! - [`file`]: writes all of it to the file.
//! - [`shared`]: which file that is, and what jobs that write to the same one agree on.

pub mod clock;
pub mod drain;
pub mod file;
pub mod shared;
