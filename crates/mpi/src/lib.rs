//! MPI semantics in typed Rust: `calls` has one function for each MPI operation, named like it
//! without `MPI_`, with the same parameters in the same order and then its
//! [form](kw_objects::forms).
//!
//! The generated shells of `kw-abi` call [`built`]; a missing function returns
//! MPI_ERR_UNSUPPORTED_OPERATION.
#![forbid(unsafe_code)]

// A function of MPI without a row in api/built.tsv cannot be called.
#[deny(dead_code)]
mod calls;
mod group_collectives;

/// The functions of MPI in this crate that are built (`api/built.tsv`).
pub mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}

/// Functions for the chapters in crates of their own: agreement among the members of a group,
/// creation of communicators, waiting.
pub mod chapter {
    pub use crate::calls::attr::delete_all;
    pub use crate::calls::coll::arguments::checked_root;
    pub use crate::calls::coll::own::{barrier, sum_of_each};
    pub use crate::calls::coll::wait_serving;
    pub use crate::calls::comm::{add_comm, forget};
    pub use crate::calls::comm_make::Parent;
    pub use crate::calls::datatype::again::made_again;
    pub use crate::calls::p2p::{running, settle};
    pub use crate::calls::pack::{from_external, to_external};
    pub use crate::group_collectives::{
        Members, Purpose, agree_among_jobs, finish, hash, start_recv, start_send,
    };
}

pub use calls::env::{end_job, end_job_by, end_process};
