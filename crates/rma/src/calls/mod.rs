//! One function for each MPI operation on windows, as in `kw_mpi::calls`.

pub mod access;
pub mod create;
pub mod epoch;
pub mod passive;
pub mod query;
mod quick;
