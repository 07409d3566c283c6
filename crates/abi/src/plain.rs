//! Functions that return a value instead of an error code: clocks, address arithmetic, handles as
//! `int`.
//!
//! They may be called at any time, by any thread, and never fail.
#![allow(non_snake_case)]

use crate::shell::mpi;
use kw_objects::fortran::from_int;
use kw_objects::handle::*;
use std::ffi::c_int;

macro_rules! plain {
    ($($(#[$doc:meta])* $mpi:ident, $pmpi:ident, ($($p:ident: $t:ty),*) -> $r:ty = $e:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $mpi($($p: $t),*) -> $r {
            $e
        }
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $pmpi($($p: $t),*) -> $r {
            $e
        }
    )*};
}

plain! {
    /// Seconds since some time in the past.
    MPI_Wtime, PMPI_Wtime, () -> f64 = kw_sys::clock::now().0 as f64 * 1e-9;
    /// Seconds between ticks of the clock.
    MPI_Wtick, PMPI_Wtick, () -> f64 = 1e-9;
    /// `base + disp`.
    MPI_Aint_add, PMPI_Aint_add, (base: i64, disp: i64) -> i64 = base.wrapping_add(disp);
    /// `addr1 - addr2`.
    MPI_Aint_diff, PMPI_Aint_diff, (addr1: i64, addr2: i64) -> i64 = addr1.wrapping_sub(addr2);
}

macro_rules! ints {
    ($($handle:ident: $toint:ident, $ptoint:ident, $fromint:ident, $pfromint:ident;)*) => {
        plain! {$(
            /// The handle as an `int`.
            $toint, $ptoint, (handle: $handle) -> c_int = to_int(handle.0);
            /// The handle of an `int`; the null handle if no object has it.
            $fromint, $pfromint, (value: c_int) -> $handle = from_int(mpi(), value);
        )*}
    };
}

ints! {
    CommH: MPI_Comm_toint, PMPI_Comm_toint, MPI_Comm_fromint, PMPI_Comm_fromint;
    GroupH: MPI_Group_toint, PMPI_Group_toint, MPI_Group_fromint, PMPI_Group_fromint;
    TypeH: MPI_Type_toint, PMPI_Type_toint, MPI_Type_fromint, PMPI_Type_fromint;
    OpH: MPI_Op_toint, PMPI_Op_toint, MPI_Op_fromint, PMPI_Op_fromint;
    RequestH: MPI_Request_toint, PMPI_Request_toint, MPI_Request_fromint, PMPI_Request_fromint;
    InfoH: MPI_Info_toint, PMPI_Info_toint, MPI_Info_fromint, PMPI_Info_fromint;
    ErrhandlerH: MPI_Errhandler_toint, PMPI_Errhandler_toint, MPI_Errhandler_fromint, PMPI_Errhandler_fromint;
    MessageH: MPI_Message_toint, PMPI_Message_toint, MPI_Message_fromint, PMPI_Message_fromint;
    SessionH: MPI_Session_toint, PMPI_Session_toint, MPI_Session_fromint, PMPI_Session_fromint;
    WinH: MPI_Win_toint, PMPI_Win_toint, MPI_Win_fromint, PMPI_Win_fromint;
    FileH: MPI_File_toint, PMPI_File_toint, MPI_File_fromint, PMPI_File_fromint;
}
