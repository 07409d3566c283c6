//! All system calls and all raw-memory kernels: operations that no crate above may do by itself.
//!
//! Guarantees for callers:
//!
//! 1. **No function blocks** unless its name says so ([`futex`], [`poller::Poller::wait`],
//!    [`unix`], [`neighbours`], [`host`]): "nothing now" and "no room" are values, not errors. Nor
//!    is a signal that interrupts a call an error.
//! 2. **Memory of a caller of MPI is promised; all other memory is checked.** [`buf::Addr::new`] is
//!    unsafe and carries the promise. An address by itself can only be compared and moved. It is
//!    redeemed by [`buf::Buf::bytes`], [`buf::Buf::typed`], [`region::Region::assume_lent`] and
//!    [`elements::Elements::assume_lent`], which say how much of it is meant. There is no way from
//!    memory of the library's own to an address: its [`buf::Buf`]s keep it alive, a
//!    [`region::Region`] does not outlive it, and parts of both, of whatever origin, are inside or
//!    are a panic. So no safe function reads or writes what is neither checked nor promised by an
//!    unsafe constructor.
//! 3. **Nothing outlives its owner.** Descriptors, mappings and allocations are closed with the
//!    value that has them ([`fd`], [`memfd`], [`mem`]); nothing but the file of [`calibration`] has
//!    a name in a file system. Every descriptor is closed on exec.
//! 4. **Words shared by processes** are atomics in mapped memory ([`doorbell`], [`memfd`]); `SYNC`
//!    comments name the pairs that order them. The crate zerocopy cannot describe such memory: it
//!    requires bytes that no other process writes.
//! 5. **One thread** uses a socket, a poller, an inbox at a time (the owner of the lock); what may
//!    be used by several says so ([`doorbell`], [`epoll_set`], [`membarrier`]).
//! 6. **Nothing here decides protocol.** The environment is read by [`environment`] alone, for the
//!    settings.
//! 7. **What the system refuses** comes back as [`std::io::Error`] or an errno; what an older
//!    kernel cannot do is left out where the code says so.

pub mod args;
pub mod buf;
pub mod calibration;
pub mod callback;
#[cfg(not(loom))]
pub mod callers;
pub mod clock;
pub mod control_group;
pub mod cpus;
// its handler finds its state through statics, which loom's atomics cannot be
#[cfg(not(loom))]
pub mod crash;
mod dlopen;
pub mod doorbell;
pub mod elements;
pub mod environment;
pub mod epoll_set;
pub mod fd;
pub mod file;
pub mod futex;
pub mod host;
pub mod huge_pages;
#[cfg(not(loom))]
pub mod source_line;
// its level and its name are statics, too
#[cfg(not(loom))]
pub mod log;
pub mod mem;
pub mod membarrier;
pub mod memfd;
pub mod neighbours;
pub mod netif;
pub mod nontemporal;
mod pack;
pub mod peek;
pub mod pidfd;
pub mod pmix;
pub mod poller;
pub mod process;
pub mod process_vm;
pub mod published;
pub mod random;
pub mod reduce;
pub mod region;
pub mod siblings;
pub mod signals;
mod socket_option;
pub mod standard_mpi;
pub mod tcp;
#[cfg(not(loom))]
pub mod terminated;
pub mod threads;
pub mod ticks;
pub mod topology;
pub mod udp;
pub mod unix;
