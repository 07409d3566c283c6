//! Handles as Fortran's integers, statuses between languages, and copies of attributes.
//!
//! A handle of this ABI is an integer already, and a status has the same five integers in every
//! language.
#![allow(non_snake_case, non_upper_case_globals)]

use crate::handle::File;
use kw_abi_shim::functions::functions;
use kw_abi_shim::handle::Kind;
use kw_abi_shim::{Address, by_hand};
use std::ffi::{c_int, c_void};

macro_rules! same {
    ($($name:ident)*) => {$(
        /// The same number: handles are integers.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name(handle: c_int) -> c_int {
            handle
        }
    )*};
}

same! {
    MPI_Comm_toint MPI_Comm_fromint MPI_Comm_c2f MPI_Comm_f2c
    MPI_Errhandler_toint MPI_Errhandler_fromint MPI_Errhandler_c2f MPI_Errhandler_f2c
    MPI_Group_toint MPI_Group_fromint MPI_Group_c2f MPI_Group_f2c
    MPI_Info_toint MPI_Info_fromint MPI_Info_c2f MPI_Info_f2c
    MPI_Message_toint MPI_Message_fromint MPI_Message_c2f MPI_Message_f2c
    MPI_Op_toint MPI_Op_fromint MPI_Op_c2f MPI_Op_f2c
    MPI_Request_toint MPI_Request_fromint MPI_Request_c2f MPI_Request_f2c
    MPI_Session_toint MPI_Session_fromint MPI_Session_c2f MPI_Session_f2c
    MPI_Type_toint MPI_Type_fromint MPI_Type_c2f MPI_Type_f2c
    MPI_Win_toint MPI_Win_fromint MPI_Win_c2f MPI_Win_f2c
}

macro_rules! files {
    ($($toint:ident $fromint:ident;)*) => {$(
        /// The file as an integer; no file is 0.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $toint(file: usize) -> c_int {
            match file {
                0 => 0,
                // SAFETY: the function accepts any handle.
                _ => unsafe { (functions().MPI_File_toint)(File::to_standard(file)) },
            }
        }
        /// The file of an integer.
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $fromint(value: c_int) -> usize {
            match value {
                0 => 0,
                // SAFETY: the function accepts any number.
                _ => File::of_standard(unsafe { (functions().MPI_File_fromint)(value) }),
            }
        }
    )*};
}

files! {
    MPI_File_toint MPI_File_fromint;
    MPI_File_c2f MPI_File_f2c;
}

static IGNORED: [c_int; 10] = [0; 10];

macro_rules! ignored {
    ($($name:ident)*) => {$(
        /// A status or statuses that Fortran programs ignore.
        #[unsafe(no_mangle)]
        pub static $name: Address = Address::of(&raw const IGNORED);
    )*};
}

ignored! { MPI_F_STATUS_IGNORE MPI_F_STATUSES_IGNORE MPI_F08_STATUS_IGNORE MPI_F08_STATUSES_IGNORE }

/// Copies an attribute unchanged: MPI_DUP_FN and its relatives of other kinds of handles.
///
/// # Safety
/// `copied` and `flag` have room for their values.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPIR_Dup_fn(
    _of: c_int,
    _keyval: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    copied: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { by_hand::copy_as_it_is(value, copied, flag) }
}
