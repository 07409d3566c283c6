//! All system calls and all raw-memory kernels.

pub mod args;
pub mod barrier;
pub mod buf;
pub mod callback;
pub mod clock;
pub mod cpus;
// its handler finds what it knows through statics, which loom's atomics cannot be
#[cfg(not(loom))]
pub mod crash;
mod dl;
pub mod doorbell;
pub mod fd;
pub mod flat;
pub mod futex;
pub mod host;
pub mod mem;
pub mod memfd;
pub mod neighbours;
pub mod nest;
pub mod netif;
mod option;
mod pack;
pub mod pmix;
pub mod poller;
pub mod process;
pub mod publish;
pub mod random;
pub mod reduce;
pub mod signals;
pub mod tcp;
pub mod topology;
pub mod udp;
pub mod unix;
pub mod vm;
