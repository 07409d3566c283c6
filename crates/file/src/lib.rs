//! Files (MPI 5.0, chapter 14).
//!
//! | module | contents |
//! | --- | --- |
//! | `calls` | a function for each operation |
//! | [`open`] | what an MPI_File names |
//! | [`access`] | one access, independent or collective, now or by another thread |
//! | [`transfer`] | independent access through a view |
//! | [`exchange`] | collective access through aggregators |
//! | [`scratch`] | memory that is used again |
//! | [`storage`] | what a file system does for an open file |
//! | [`group`], [`agree`] | the ranks that have a file open together, and how they agree |
//! | [`costs`] | what accesses cost, as measured |
//! | [`counter`] | the shared file pointer |
//! | [`representation`] | how data lie in the file |
//! | [`worker`] | the threads of nonblocking operations |
//! | [`fault`] | sentences and classes of errors |
//!
//! Views and plans are pure arithmetic, in [`kw_io_plan`].
#![forbid(unsafe_code)]

pub mod access;
pub mod agree;
// A function of MPI without a row in api/built.tsv cannot be called.
#[deny(dead_code)]
mod calls;
pub mod costs;
pub mod counter;
pub mod exchange;
pub mod fault;
pub mod group;
pub mod open;
pub mod representation;
pub mod scratch;
pub mod storage;
pub mod transfer;
pub mod worker;

/// The functions of MPI in this crate that are built (`api/built.tsv`).
pub mod built {
    include!(concat!(env!("OUT_DIR"), "/built.rs"));
}
