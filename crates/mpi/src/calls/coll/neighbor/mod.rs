//! Collectives along the edges of a virtual topology (MPI 5.0, 8.6 to 8.8): blocking, non-blocking and persistent, all
//! from the same plan.

pub mod blocking;
pub mod nonblocking;
pub mod persistent;
mod plan;
