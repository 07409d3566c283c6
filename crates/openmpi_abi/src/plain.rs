//! Handles as Fortran's integers, statuses between languages, and the functions of attributes that
//! are constants.
#![allow(non_snake_case, non_upper_case_globals)]

use crate::handle::{
    Comm, Datatype, Errhandler, File, Group, Info, Message, Op, Request, Session, Win,
};
use crate::handle::{Fortran, integer_of};
use crate::objects::{address_of, mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_};
use kw_abi_shim::functions::functions;
use kw_abi_shim::handle::{Kind, UNKNOWN};
use kw_abi_shim::{Address, by_hand};
use std::ffi::{c_int, c_void};

macro_rules! integers {
    ($($kind:ident $toint:ident $fromint:ident $c2f:ident $f2c:ident;)*) => {$(
        /// The handle as an integer of Fortran.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $c2f(handle: usize) -> c_int {
            let handle = $kind::to_standard(handle);
            // SAFETY: the function accepts any handle.
            integer_of(handle).unwrap_or_else(|| unsafe { (functions().$toint)(handle) })
        }
        /// The handle of an integer of Fortran.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $f2c(value: c_int) -> usize {
            let handle = match $kind::of_integer(value) {
                // A constant of the standard ABI, which is not a number here.
                0 if address_of(value as usize).is_some() => UNKNOWN | value as usize,
                // SAFETY: the function accepts any number.
                0 => unsafe { (functions().$fromint)(value) },
                predefined => predefined,
            };
            $kind::of_standard(handle)
        }
        /// The handle as an integer.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $toint(handle: usize) -> c_int {
            $c2f(handle)
        }
        /// The handle of an integer.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $fromint(value: c_int) -> usize {
            $f2c(value)
        }
    )*};
}

integers! {
    Comm MPI_Comm_toint MPI_Comm_fromint MPI_Comm_c2f MPI_Comm_f2c;
    Errhandler MPI_Errhandler_toint MPI_Errhandler_fromint MPI_Errhandler_c2f MPI_Errhandler_f2c;
    File MPI_File_toint MPI_File_fromint MPI_File_c2f MPI_File_f2c;
    Group MPI_Group_toint MPI_Group_fromint MPI_Group_c2f MPI_Group_f2c;
    Info MPI_Info_toint MPI_Info_fromint MPI_Info_c2f MPI_Info_f2c;
    Message MPI_Message_toint MPI_Message_fromint MPI_Message_c2f MPI_Message_f2c;
    Op MPI_Op_toint MPI_Op_fromint MPI_Op_c2f MPI_Op_f2c;
    Request MPI_Request_toint MPI_Request_fromint MPI_Request_c2f MPI_Request_f2c;
    Session MPI_Session_toint MPI_Session_fromint MPI_Session_c2f MPI_Session_f2c;
    Datatype MPI_Type_toint MPI_Type_fromint MPI_Type_c2f MPI_Type_f2c;
    Win MPI_Win_toint MPI_Win_fromint MPI_Win_c2f MPI_Win_f2c;
}

macro_rules! ignored {
    ($($name:ident $block:ident;)*) => {$(
        /// A status or statuses that Fortran programs ignore.
        #[unsafe(no_mangle)]
        pub static $name: Address = Address::of(&raw const $block);
    )*};
}

ignored! {
    MPI_F_STATUS_IGNORE mpi_fortran_status_ignore_;
    MPI_F_STATUSES_IGNORE mpi_fortran_statuses_ignore_;
    MPI_F08_STATUS_IGNORE mpi_fortran_status_ignore_;
    MPI_F08_STATUSES_IGNORE mpi_fortran_statuses_ignore_;
}

macro_rules! attributes {
    ($($no_copy:ident $copy:ident $no_delete:ident;)*) => {$(
        /// Copies no attribute.
        ///
        /// # Safety
        /// `flag` has room for its value.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $no_copy(
            _of: usize,
            _keyval: c_int,
            _extra: *mut c_void,
            _value: *mut c_void,
            _copied: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { *flag = 0 };
            0
        }
        /// Copies an attribute unchanged.
        ///
        /// # Safety
        /// `copied` and `flag` have room for their values.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $copy(
            _of: usize,
            _keyval: c_int,
            _extra: *mut c_void,
            value: *mut c_void,
            copied: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { by_hand::copy_as_it_is(value, copied, flag) }
        }
        /// Deletes nothing.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $no_delete(
            _of: usize,
            _keyval: c_int,
            _value: *mut c_void,
            _extra: *mut c_void,
        ) -> c_int {
            0
        }
    )*};
}

attributes! {
    OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_DUP_FN OMPI_C_MPI_NULL_DELETE_FN;
    OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_COMM_NULL_DELETE_FN;
    OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN;
    OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_DUP_FN OMPI_C_MPI_WIN_NULL_DELETE_FN;
}
