//! The lowest crate: ids, generational slab, time as a value, the sync shim, declared settings,
//! counters and events, and the figures of a host.
//!
//! Nothing here knows MPI, sockets or threads. Atomics and locks are taken from [`sync`] everywhere
//! else, so that loom can stand in for them.
#![forbid(unsafe_code)]

pub mod calibration;
pub mod components;
pub mod counters;
pub mod events;
pub mod ids;
pub mod near;
pub mod overheads;
pub mod pool;
pub mod reader;
pub mod settings;
pub mod shm_region;
pub mod slab;
pub mod slots;
pub mod source_line;
pub mod spawned;
pub mod sync;
pub mod tick;
pub mod working_set;

/// Name and version of this library, as `MPI_Get_library_version` returns it. All ranks of a job
/// have the same.
pub const LIBRARY: &str = concat!(
    "Kittiwake ",
    env!("CARGO_PKG_VERSION"),
    ", MPI 5.0, standard ABI 1.0"
);

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!(
    "Kittiwake is for 64-bit little-endian machines: memory that ranks share and messages between hosts are laid out so"
);

pub use calibration::Calibration;
pub use ids::{ContextId, Peer};
pub use slab::{Key, Slab};
pub use tick::Tick;
