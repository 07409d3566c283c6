//! File access as arithmetic (MPI 5.0, chapter 14): which bytes of a file a rank sees, and how the
//! ranks of a collective call share the work. No file, message, clock or thread is touched here.
//!
//! | module | contents |
//! | --- | --- |
//! | [`view`] | a view: position in its data to position in the file, and back |
//! | [`runs`] | what a view selects of a range of the file, in a form that travels in a message |
//! | [`collective`] | whether a call exchanges data, and which rank accesses which bytes |
//! | [`cost`] | what accesses and exchanges cost |
//! | [`assembly`] | what an aggregator does with the parts that the ranks send or want |
//! | [`hints`] | the info keys that influence this |
#![forbid(unsafe_code)]

pub mod assembly;
pub mod collective;
pub mod cost;
pub mod hints;
pub mod runs;
pub mod view;

pub use assembly::{Extent, cover};
pub use collective::{Call, Decision, Domains, Request};
pub use cost::{Cost, Prices};
pub use hints::Hints;
pub use runs::{Run, RunList};
pub use view::{Unfit, View};
