//! `libmpi.so.40`: programs compiled for Open MPI 4 or 5 run on this library (`kw_abi_shim`
//! describes how, and has the common parts of all shims).
//!
//! Handles of this ABI are pointers. Predefined ones are addresses of objects that the library
//! exports; a handle created at run time is the library's own, unchanged ([`handle`]).
//!
//! The unit tests cover only code that calls no standard function: there is no library to link
//! with.

pub mod handle;
pub mod objects;
pub mod status;

#[cfg(not(test))]
mod cxx;
#[cfg(not(test))]
mod plain;

use kw_abi_shim::Constants;
use std::ffi::{CStr, c_int, c_void};

kw_abi_shim::shim! {
    /// Open MPI's ABI.
    library c"libmpi.so.40",
    // as in the standard ABI: no constant of this one is as large
    errors from 1 << 14
}

#[cfg(test)]
mod tests {
    use super::*;
    use kw_abi_shim::convert::{error_in, error_out, is_in_place};

    #[test]
    fn constants_that_are_used_most() {
        assert_eq!([-1, -2, -4].map(Here::rank_in), [-1, -3, -4]);
        assert_eq!([-1, -3, -4].map(Here::rank_out), [-1, -2, -4]);
        assert_eq!([-1, 0, 7].map(Here::tag_in), [-2, 0, 7]);
        assert_eq!(
            [0, 1, 2, 3].map(Here::thread_level_in),
            [0, 1024, 2048, 4096]
        );
        assert_eq!(Here::weights_in(2 as *mut c_void) as usize, 10);
        assert!(is_in_place::<Here>(std::ptr::without_provenance(1)));
    }

    #[test]
    fn whatever_an_error_code_is_it_comes_back() {
        for code in -100..1 << 21 {
            assert_eq!(error_out::<Here>(error_in::<Here>(code)), code);
        }
        assert_eq!(error_in::<Here>(15), 15, "MPI_ERR_TRUNCATE");
        assert_eq!(error_in::<Here>(7), 7, "MPI_ERR_REQUEST");
        assert_eq!(error_in::<Here>(92), 16383, "MPI_ERR_LASTCODE");
    }

    #[test]
    fn whatever_a_keyval_is_it_comes_back() {
        for v in [-1, 0, 5, 11, 12, 501, 605, 0x4000_0001] {
            assert_eq!(Here::keyval_out(Here::keyval_in(v)), v);
        }
        assert_eq!(Here::keyval_in(0), 501, "MPI_TAG_UB");
    }
}
