//! Whole MPI values, many ranks in one process, over the simulated network in virtual time: the
//! effects of MPI's functions, in whatever order the network delivers messages of different ranks
//! and their pieces, and with whatever delays.
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
