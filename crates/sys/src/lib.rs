//! All system calls and all raw-memory kernels.

pub mod args;
pub mod buf;
pub mod callback;
pub mod clock;
pub mod cpus;
pub mod fd;
pub mod host;
pub mod mem;
pub mod random;
pub mod doorbell;
pub mod memfd;
pub mod unix;
pub mod vm;
pub mod netif;
pub mod poller;
pub mod tcp;
