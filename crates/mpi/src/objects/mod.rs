//! The objects that handles name: what each keeps, and how it is looked up. The calls work on
//! these.

pub mod abi;
pub mod attributes;
pub mod buffered;
pub mod codes;
pub mod comm;
pub mod datatype;
pub mod errhandler;
pub mod group;
pub mod hook;
pub mod info;
pub mod life;
pub mod message;
pub mod op;
pub mod persistent;
pub mod request;
pub mod session;
pub mod status;
pub mod tool;
pub mod topology;

pub use comm::Comm;
pub use group::Group;
pub use topology::Topology;
