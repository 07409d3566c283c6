//! `libkw_profile.so`, the recorder of `mpiexec --profile`: it is loaded before everything else
//! (LD_PRELOAD) and has a function under the name of each MPI function, which calls the next one of
//! that name and records its duration, its place in the program and the bytes it transfers.
//!
//! - [`wrappers`]: the functions (generated, `kw_apigen::profile_wrappers`); each begins with a few
//!   instructions that save the return address ([`entry`]).
//! - [`record`]: work around each call, and a thread's own state.
//! - [`table`]: the rank's table, in memory that the launcher provides and reads itself
//!   (`kw_start::profile`), so nothing must be sent, however the rank ends.
//! - [`trace`]: records over time, if they are requested (`mpiexec --trace`).
//! - [`caller`]: the place of a call in the program, through the Fortran layer; [`source_line`]: the
//!   place in a Java program.
//! - [`next`]: the functions behind; [`amount`]: bytes.
//!
//! Arguments are passed on as the words in which they arrive, so programs of any ABI can be
//! recorded. A process without memory from the launcher calls the next function directly.
#![cfg(all(not(loom), any(target_arch = "x86_64", target_arch = "aarch64")))]

mod amount;
mod caller;
mod entry;
mod next;
mod record;
mod source_line;
mod table;
mod trace;
mod wrappers;
