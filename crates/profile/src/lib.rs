//! `libkw_profile.so`, the recorder of `mpiexec --profile`: loaded before everything else
//! (LD_PRELOAD), it has a function under the name of each of MPI's, which calls the next one of that
//! name and writes down for how long, from where, and about how many bytes.
//!
//! - [`wrappers`]: the functions (generated, `kw_apigen::profile_wrappers`); each begins with a few
//!   instructions that keep who called ([`entry`]).
//! - [`record`]: what each does around the call, and a thread's own state.
//! - [`table`]: the rank's table, in memory that the launcher gave it and reads itself
//!   (`kw_start::profile`): nothing has to be handed over, whichever way the rank ends.
//! - [`trace`]: what is written down over time, where that is wanted (`mpiexec --trace`).
//! - [`caller`]: from where the program called, through the Fortran layer; [`language`]: where a
//!   program in Java did.
//! - [`next`]: the functions behind; [`amount`]: bytes.
//!
//! Arguments are passed on as the words that they came in, so a program of any ABI is served. A
//! process that the launcher has given no memory calls straight on.
#![cfg(all(not(loom), any(target_arch = "x86_64", target_arch = "aarch64")))]

mod amount;
mod caller;
mod entry;
mod language;
mod next;
mod record;
mod table;
mod trace;
mod wrappers;
