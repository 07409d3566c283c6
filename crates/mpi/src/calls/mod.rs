//! One function for each MPI operation that is built, by chapter.
//!
//! A row in `api/built.tsv` makes the shells MPI_NAME, MPI_NAME_c and their PMPI twins call `pub fn
//! NAME(mpi: &Mpi, ...) -> Res`, and a row in `api/forms.tsv` those of a form of it. Private
//! helpers are not `pub`.

pub mod abi;
pub mod attr;
pub mod buffer;
pub mod coll;
pub mod comm;
pub mod comm_make;
pub mod datatype;
pub mod dist_graph;
pub mod env;
pub mod errhandler;
pub mod errors;
pub mod graph;
pub mod grequest;
pub mod group;
pub mod info;
pub mod intercomm;
mod mapping;
pub mod mem;
pub mod misc;
pub mod name;
pub mod op;
pub mod p2p;
pub mod pack;
pub mod partitioned;
pub mod persistent;
pub mod probe;
pub mod removed;
pub mod request;
pub mod request_many;
pub mod session;
pub mod status;
pub mod topo;
