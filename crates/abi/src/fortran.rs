//! Statuses between C and Fortran (MPI 5.0, 19.3.5), and handles under their names before MPI 5.0.
//!
//! These functions are not in the standard ABI's list, but in the standard: a Fortran status is the
//! same eight integers as a C one.
#![allow(non_snake_case)]

use crate::shell::mpi;
use kw_objects::Class;
use kw_objects::fortran::from_int;
use kw_objects::handle::*;
use kw_sys::args::Status;
use std::ffi::c_int;

/// Copies a status, unless one of the two is MPI_STATUS_IGNORE (null).
///
/// # Safety
/// Each pointer is null or points at eight integers.
unsafe fn copy(from: *const Status, to: *mut Status) -> c_int {
    if from.is_null() || to.is_null() {
        return Class::Arg as c_int;
    }
    // SAFETY: the caller's promise.
    unsafe { to.write_unaligned(from.read_unaligned()) };
    0
}

macro_rules! statuses {
    ($($mpi:ident $pmpi:ident)*) => {$(
        /// Copies a status to another language's form.
        ///
        /// # Safety
        /// Each pointer is null or points at eight integers.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $mpi(from: *const Status, to: *mut Status) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { copy(from, to) }
        }
        /// Copies a status to another language's form.
        ///
        /// # Safety
        /// Each pointer is null or points at eight integers.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pmpi(from: *const Status, to: *mut Status) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { copy(from, to) }
        }
    )*};
}

statuses! {
    MPI_Status_c2f PMPI_Status_c2f
    MPI_Status_f2c PMPI_Status_f2c
    MPI_Status_c2f08 PMPI_Status_c2f08
    MPI_Status_f082c PMPI_Status_f082c
    MPI_Status_f2f08 PMPI_Status_f2f08
    MPI_Status_f082f PMPI_Status_f082f
}

macro_rules! handles {
    ($($h:ident: $c2f:ident $pc2f:ident, $f2c:ident $pf2c:ident;)*) => {$(
        /// The handle as a Fortran integer.
        #[unsafe(no_mangle)]
        pub extern "C" fn $c2f(handle: $h) -> c_int {
            to_int(handle.0)
        }
        /// The handle as a Fortran integer.
        #[unsafe(no_mangle)]
        pub extern "C" fn $pc2f(handle: $h) -> c_int {
            to_int(handle.0)
        }
        /// The handle of a Fortran integer.
        #[unsafe(no_mangle)]
        pub extern "C" fn $f2c(value: c_int) -> $h {
            from_int(mpi(), value)
        }
        /// The handle of a Fortran integer.
        #[unsafe(no_mangle)]
        pub extern "C" fn $pf2c(value: c_int) -> $h {
            from_int(mpi(), value)
        }
    )*};
}

handles! {
    CommH: MPI_Comm_c2f PMPI_Comm_c2f, MPI_Comm_f2c PMPI_Comm_f2c;
    GroupH: MPI_Group_c2f PMPI_Group_c2f, MPI_Group_f2c PMPI_Group_f2c;
    TypeH: MPI_Type_c2f PMPI_Type_c2f, MPI_Type_f2c PMPI_Type_f2c;
    OpH: MPI_Op_c2f PMPI_Op_c2f, MPI_Op_f2c PMPI_Op_f2c;
    RequestH: MPI_Request_c2f PMPI_Request_c2f, MPI_Request_f2c PMPI_Request_f2c;
    InfoH: MPI_Info_c2f PMPI_Info_c2f, MPI_Info_f2c PMPI_Info_f2c;
    ErrhandlerH: MPI_Errhandler_c2f PMPI_Errhandler_c2f, MPI_Errhandler_f2c PMPI_Errhandler_f2c;
    MessageH: MPI_Message_c2f PMPI_Message_c2f, MPI_Message_f2c PMPI_Message_f2c;
    SessionH: MPI_Session_c2f PMPI_Session_c2f, MPI_Session_f2c PMPI_Session_f2c;
    WinH: MPI_Win_c2f PMPI_Win_c2f, MPI_Win_f2c PMPI_Win_f2c;
    FileH: MPI_File_c2f PMPI_File_c2f, MPI_File_f2c PMPI_File_f2c;
}
