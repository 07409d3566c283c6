//! Traces of MPI programs: the contents of the file, and where the time went.
//!
//! Pure: bytes in, values and text out. The command `kwtrace` uses it. A file becomes packets
//! (`read`), packets become calls, messages and collectives (`model`), these become figures
//! (`analysis`), and the figures sentences (`summary`), a page (`page`), a picture (`picture`) or
//! tables for other programs (`export`). A part of a trace is a trace (`part`).
#![forbid(unsafe_code)]

pub mod analysis;
pub mod colours;
pub mod example;
pub mod export;
pub mod functions;
pub mod model;
pub mod page;
pub mod part;
pub mod perfetto;
pub mod picture;
pub mod read;
pub mod summary;
pub mod words;
pub mod write;
