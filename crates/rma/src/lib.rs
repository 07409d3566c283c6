//! One-sided communication (MPI 5.0, chapter 12).
//!
//! | module | contents |
//! | --- | --- |
//! | `calls` | a function for each operation |
//! | [`window`] | a call on a window: the engine's part, faults, waiting |
//! | [`element`] | which elements an accumulate combines |
//! | [`hints`] | info keys of windows |
//! | [`memory`] | the memory of a new window |
//! | [`make`] | what the ranks tell each other when they make a window |
//!
//! The state of a window (epochs, locks, operations in progress) belongs to the engine
//! ([`kw_engine::windows`]). This crate checks arguments, and makes the steps that all ranks take
//! together.
#![forbid(unsafe_code)]

// A function of MPI without a row in api/built.tsv cannot be called.
#[deny(dead_code)]
mod calls;
pub mod element;
pub mod hints;
pub mod make;
pub mod memory;
pub mod window;

/// The functions of MPI in this crate that are built (`api/built.tsv`).
pub mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}
