//! All system calls and all raw-memory kernels.

pub mod args;
pub mod buf;
pub mod callback;
pub mod clock;
pub mod contiguous;
pub mod cpus;
// its handler finds what it knows through statics, which loom's atomics cannot be
#[cfg(not(loom))]
pub mod crash;
mod dlopen;
pub mod doorbell;
pub mod environment;
pub mod epoll_set;
pub mod fd;
pub mod futex;
pub mod host;
pub mod mem;
pub mod membarrier;
pub mod memfd;
pub mod neighbours;
pub mod netif;
pub mod nontemporal;
mod pack;
pub mod pmix;
pub mod poller;
pub mod process;
pub mod process_vm;
pub mod random;
pub mod reduce;
pub mod signals;
mod socket_option;
pub mod tcp;
#[cfg(not(loom))]
pub mod terminated;
pub mod threads;
pub mod topology;
pub mod udp;
pub mod unix;
