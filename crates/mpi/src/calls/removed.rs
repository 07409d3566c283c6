//! Functions removed by MPI 3.0 (MPI 5.0, chapter 17), under their MPI-1 names. Each is its
//! successor with another name.
//!
//! MPI_LB and MPI_UB are pseudo datatypes (`Layout::lower_marker`), which every constructor takes.

use super::datatype::{indexed, query, strided};
use super::errhandler;
use kw_objects::error::Res;
use kw_objects::handle::{CommH, ErrhandlerH, TypeH};
use kw_objects::state::Mpi;
use kw_sys::args::{Array, Ints, Out, OutInt};
use kw_sys::buf::Addr;
use kw_sys::callback::ErrorHandler;

/// MPI_Address
pub fn address(mpi: &Mpi, location: Addr, address: OutInt) -> Res {
    query::get_address(mpi, location, address)
}

/// MPI_Errhandler_create
pub fn errhandler_create(
    mpi: &Mpi,
    handler_fn: Option<ErrorHandler>,
    errhandler: Out<ErrhandlerH>,
) -> Res {
    errhandler::comm_create_errhandler(mpi, handler_fn, errhandler)
}

/// MPI_Errhandler_get
pub fn errhandler_get(mpi: &Mpi, comm: CommH, errhandler: Out<ErrhandlerH>) -> Res {
    errhandler::comm_get_errhandler(mpi, comm, errhandler)
}

/// MPI_Errhandler_set
pub fn errhandler_set(mpi: &Mpi, comm: CommH, errhandler: ErrhandlerH) -> Res {
    errhandler::comm_set_errhandler(mpi, comm, errhandler)
}

/// MPI_Type_extent
pub fn type_extent(mpi: &Mpi, datatype: TypeH, extent: OutInt) -> Res {
    extent.set(mpi.lock().above.datatype(datatype)?.layout.extent());
    Ok(())
}

/// MPI_Type_hindexed
pub fn type_hindexed(
    mpi: &Mpi,
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: Ints,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    let blocks = (array_of_blocklengths, array_of_displacements);
    indexed::type_create_hindexed(mpi, count, blocks.0, blocks.1, oldtype, newtype)
}

/// MPI_Type_hvector
pub fn type_hvector(
    mpi: &Mpi,
    count: i64,
    blocklength: i64,
    stride: i64,
    oldtype: TypeH,
    newtype: Out<TypeH>,
) -> Res {
    strided::type_create_hvector(mpi, count, blocklength, stride, oldtype, newtype)
}

/// MPI_Type_lb
pub fn type_lb(mpi: &Mpi, datatype: TypeH, displacement: OutInt) -> Res {
    displacement.set(mpi.lock().above.datatype(datatype)?.layout.lb());
    Ok(())
}

/// MPI_Type_struct
pub fn type_struct(
    mpi: &Mpi,
    count: i64,
    array_of_blocklengths: Ints,
    array_of_displacements: Ints,
    array_of_types: Array<TypeH>,
    newtype: Out<TypeH>,
) -> Res {
    let blocks = (array_of_blocklengths, array_of_displacements);
    indexed::type_create_struct(mpi, count, blocks.0, blocks.1, array_of_types, newtype)
}

/// MPI_Type_ub
pub fn type_ub(mpi: &Mpi, datatype: TypeH, displacement: OutInt) -> Res {
    let guard = mpi.lock();
    let layout = &guard.above.datatype(datatype)?.layout;
    displacement.set(layout.lb() + layout.extent());
    Ok(())
}
