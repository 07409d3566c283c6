//! Properties of the program's compiler, reported to MPI once it is initialised (MPI 5.0, 21.4.1).
//!
//! The wrapper links a common block `kw_fortran_compiler` into programs, made by their compiler:
//! `.true.`, `.false.`, and the numbers that [`KEYS`] names, or -1.

use crate::constants::MPI_INFO_NULL;
use crate::convert::answer;
use crate::handle::{Info, to_fortran};
use crate::logical::booleans;
use crate::sentinels::kw_fortran_compiler_;
use crate::shells::*;
use std::ffi::{CStr, CString, c_int, c_void};

unsafe extern "C-unwind" {
    fn MPI_Abi_set_fortran_booleans(size: c_int, yes: *mut c_void, no: *mut c_void) -> c_int;
    fn MPI_Abi_get_fortran_booleans(
        size: c_int,
        yes: *mut c_void,
        no: *mut c_void,
        is_set: *mut c_int,
    ) -> c_int;
}

/// Keys of MPI's info about Fortran: index in the common block, key, whether it is a size in bytes
/// (otherwise it says whether there is such a type).
const KEYS: [(usize, &CStr, bool); 9] = [
    (2, c"mpi_logical_size", true),
    (3, c"mpi_integer_size", true),
    (4, c"mpi_real_size", true),
    (5, c"mpi_double_precision_size", true),
    (6, c"mpi_integer16_supported", false),
    (7, c"mpi_real2_supported", false),
    (7, c"mpi_complex4_supported", false),
    (8, c"mpi_real16_supported", false),
    (8, c"mpi_complex32_supported", false),
];

/// Called after MPI's initialisation: sets `ierror`, and reports the compiler's properties, unless
/// this was done before. (Not earlier: MPI can be queried at any time, but not every library knows
/// the properties by then.)
///
/// # Safety
/// As for [`answer`].
pub unsafe fn initialised(ierror: *mut c_int, code: c_int) {
    // SAFETY: the caller's promise.
    unsafe { answer(ierror, code) };
    if code != 0 {
        return;
    }
    let [mut yes, mut no] = booleans();
    let (mut had_yes, mut had_no, mut is_set) = (0, 0, 0);
    let size = size_of::<c_int>() as c_int;
    // SAFETY: places with the stated number of bytes.
    unsafe {
        let code = MPI_Abi_get_fortran_booleans(
            size,
            (&raw mut had_yes).cast(),
            (&raw mut had_no).cast(),
            &raw mut is_set,
        );
        if code == 0 && is_set == 0 {
            MPI_Abi_set_fortran_booleans(size, (&raw mut yes).cast(), (&raw mut no).cast());
            tell_types();
        }
    }
}

/// Reports the sizes and types of the compiler to MPI, if it assumes others.
///
/// # Safety
/// MPI is initialised.
unsafe fn tell_types() {
    let mut info = Info(0);
    // SAFETY: results have places, texts end with a zero.
    unsafe {
        if MPI_Abi_get_fortran_info(&raw mut info) != 0 {
            return;
        }
        if to_fortran(info) == MPI_INFO_NULL && MPI_Info_create(&raw mut info) != 0 {
            return;
        }
        let mut differs = false;
        for (at, key, is_size) in KEYS {
            let number = kw_fortran_compiler_[at];
            if number < 0 {
                continue;
            }
            let value = match is_size {
                true => CString::new(number.to_string()).unwrap_or_default(),
                false => CString::from(if number != 0 { c"true" } else { c"false" }),
            };
            let (mut had, mut room, mut found) = ([0u8; 16], 16, 0);
            let place = had.as_mut_ptr().cast();
            MPI_Info_get_string(
                info,
                key.as_ptr().cast_mut(),
                &raw mut room,
                place,
                &raw mut found,
            );
            if found == 0 || !had.starts_with(value.as_bytes_with_nul()) {
                differs = true;
                MPI_Info_set(info, key.as_ptr().cast_mut(), value.as_ptr().cast_mut());
            }
        }
        if differs {
            MPI_Abi_set_fortran_info(info);
        }
        MPI_Info_free(&raw mut info);
    }
}
