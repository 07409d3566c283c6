//! Paths: they carry frames from one rank to another.
//!
//! A path delivers frames between two ranks whole and in the order they were sent. It knows nothing
//! of their meaning. Everything here is called by the owner of the lock only (see `kw-engine`), so
//! nothing needs to be thread-safe. Every path passes the same conformance suite
//! (`tests/conformance.rs`).

mod address;
mod cannot_open;
pub mod contract;
mod member;
mod network;
mod network_meter;
mod peer_set;
mod ports;
pub mod selfpath;
pub mod shm;
pub mod sim;
mod slowed;
pub mod tcp;
pub mod udp;

pub use address::Misnamed;
pub use cannot_open::{CannotOpen, Cause, Lacking, NoPort};
pub use contract::*;
pub use member::{Member, addresses_for_others, reaches_others};
pub use network::{About, Asleep, Network, Open, Opening};
pub use ports::Ports;
pub use selfpath::SelfPath;
pub use shm::ShmPath;
pub use tcp::TcpPath;
pub use udp::UdpPath;
