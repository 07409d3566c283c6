//! All system calls and all raw-memory kernels.

pub mod args;
pub mod barrier;
pub mod buf;
pub mod callback;
pub mod clock;
pub mod cpus;
pub mod doorbell;
pub mod fd;
pub mod futex;
pub mod host;
pub mod mem;
pub mod memfd;
pub mod nest;
pub mod netif;
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
