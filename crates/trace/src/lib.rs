//! Traces of MPI programs: what is in the file, and what it says about where the time went.
//!
//! Pure: bytes in, values and text out. The command `kwtrace` stands on it.
#![forbid(unsafe_code)]

pub mod perfetto;
pub mod write;
