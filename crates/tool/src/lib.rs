//! The tool information interface (MPI 5.0, 15.3): its calls. Their state is in
//! [`kw_objects::tool`].
#![forbid(unsafe_code)]

// A function of MPI without a row in api/built.tsv cannot be called.
#[deny(dead_code)]
mod calls;

/// The functions of MPI in this crate that are built (`api/built.tsv`).
pub mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}
