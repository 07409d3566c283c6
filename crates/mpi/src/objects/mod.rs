//! The objects that handles name: what each keeps, and how it is looked up. The calls work on these.

pub mod attributes;
pub mod comm;
pub mod datatype;
pub mod errhandler;
pub mod group;
pub mod info;
pub mod op;
pub mod request;

pub use comm::Comm;
pub use group::Group;
