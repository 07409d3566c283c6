//! `libmpi.so.12`: programs compiled for MPICH or Intel MPI run on this library (`kw_abi_shim`
//! describes how, and has the common parts of all shims).
//!
//! Handles of this ABI are integers that contain their kind. Predefined ones are found in the table
//! of the ABI; a handle created at run time contains the index of the library's own handle, so
//! there is no table to search and no lock ([`handle`]).
//!
//! The unit tests cover only code that calls no standard function: there is no library to link
//! with.

pub mod handle;
pub mod status;

#[cfg(not(test))]
mod plain;

use kw_abi_shim::Constants;
use std::ffi::{CStr, c_int, c_void};

kw_abi_shim::shim! {
    /// MPICH's ABI.
    library c"libmpi.so.12",
    errors from 1 << 30
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_abi_shim::convert::{error_in, error_out, is_in_place};
    use std::ffi::c_void;

    #[test]
    fn constants_that_are_used_most() {
        assert_eq!([-1, -2, -3].map(Here::rank_in), [-3, -1, -4]);
        assert_eq!([-3, -1, -4].map(Here::rank_out), [-1, -2, -3]);
        assert_eq!([-1, 0, 7].map(Here::tag_in), [-2, 0, 7]);
        assert_eq!(
            [0, 1, 2, 3].map(Here::thread_level_in),
            [0, 1024, 2048, 4096]
        );
        assert_eq!(Here::access_mode_in(2 | 1), 16 | 2);
        assert!(is_in_place::<Here>(-1isize as *const c_void));
    }

    #[test]
    fn whatever_an_error_code_is_it_comes_back() {
        let values = (-100..1 << 21).chain((1 << 30) - 10..(1 << 30) + (1 << 21));
        for code in values {
            assert_eq!(error_out::<Here>(error_in::<Here>(code)), code);
        }
        assert_eq!(error_in::<Here>(14), 15, "MPI_ERR_TRUNCATE");
        assert_eq!(
            error_out::<Here>(16384),
            1 << 30,
            "the first code that a program adds"
        );
        assert_eq!(error_in::<Here>(0x3fff_ffff), 16383, "MPI_ERR_LASTCODE");
    }

    #[test]
    fn whatever_a_keyval_is_it_comes_back() {
        for v in [
            0,
            501,
            605,
            0x2400_0000,
            0x6440_0001,
            0x6600_0001,
            0x4000_0001,
        ] {
            assert_eq!(Here::keyval_out(Here::keyval_in(v)), v);
        }
        assert_eq!(Here::keyval_in(0x6440_0001), 501);
        assert_ne!(Here::keyval_out(0x6600_0001), 0x6600_0001);
    }
}
