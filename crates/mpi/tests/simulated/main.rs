//! Whole MPI values, many ranks in one process, over the simulated network in virtual time: what
//! the functions of MPI do, whatever the network does with the order of messages of different
//! ranks, with their pieces and their delays.
//!
//! A failure names its seed, and the seed gives the same run again.

mod calls;
mod collectives;
mod communicators;
mod faults;
mod hooks;
mod intercomms;
mod job;
mod requests;
mod turns;
