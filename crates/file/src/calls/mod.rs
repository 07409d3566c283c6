//! One function for each MPI operation on files, as in `kw_mpi::calls`.

pub mod access;
pub mod datarep;
pub mod open;
mod opening;
pub mod view;
