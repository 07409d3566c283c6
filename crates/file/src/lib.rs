//! Files (MPI 5.0, chapter 14).
//!
//! | module | contents |
//! | --- | --- |
//! | [`storage`] | what a file system does for an open file |
//! | [`transfer`] | independent access through a view |
//! | [`exchange`] | collective access through aggregators |
//! | [`group`] | the ranks that have a file open together |
#![forbid(unsafe_code)]

pub mod exchange;
pub mod group;
pub mod storage;
pub mod transfer;
