//! Handles: pointers here, pointer-sized values in the standard ABI.
//!
//! The library's handles that are created at run time have their kind in the eight highest bits,
//! which no address has. So they are the program's handles unchanged. All others are addresses of
//! predefined objects ([`crate::objects`]).

use crate::objects::{INTEGERS, address_of, handle_at};
use kw_abi_shim::handle::{Kind, UNKNOWN};
use std::ffi::c_int;

/// Lowest bit that no address has.
const KIND_SHIFT: u32 = 56;

/// Representation of a kind of handle in Fortran.
pub trait Fortran {
    /// The null handle of the standard ABI.
    const NULL: usize;
    /// The standard handle of a predefined integer; 0 for others.
    fn of_integer(v: c_int) -> usize;
}

macro_rules! kinds {
    ($($name:ident)*) => {$(
        #[doc = concat!("Handles of this kind: ", stringify!($name), ".")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Kind for $name {
            type Value = usize;
            const NULL: usize = <Self as Fortran>::NULL;

            #[inline(always)]
            fn to_standard(value: usize) -> usize {
                to_standard(value)
            }

            #[inline(always)]
            fn of_standard(handle: usize) -> usize {
                match address_of(handle) {
                    None => handle & !UNKNOWN,
                    Some(0) => address_of(<Self as Fortran>::NULL).unwrap_or_default(),
                    Some(address) => address,
                }
            }
        }
    )*};
}

kinds! { Comm Datatype Errhandler File Group Info Message Op Request Session Win }

#[inline(always)]
fn to_standard(value: usize) -> usize {
    match value >> KIND_SHIFT {
        0 => handle_at(value).unwrap_or(UNKNOWN | value),
        _ => value,
    }
}

/// The Fortran integer of a standard handle, if it is predefined.
pub fn integer_of(handle: usize) -> Option<c_int> {
    let integer = c_int::from(*INTEGERS.get(handle)?);
    (integer >= 0).then_some(integer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ompi_mpi_comm_world, ompi_mpi_datatype_null, ompi_mpi_int};

    #[test]
    fn predefined_handles_are_addresses() {
        let world = &raw const ompi_mpi_comm_world as usize;
        assert_eq!(Comm::to_standard(world), 0x101);
        assert_eq!(Comm::of_standard(0x101), world);
        let int = &raw const ompi_mpi_int as usize;
        assert_eq!(Datatype::to_standard(int), 0x209);
        let null = &raw const ompi_mpi_datatype_null as usize;
        assert_eq!(
            Datatype::of_standard(0x2e0),
            null,
            "there is no MPI_LOGICAL16"
        );
    }

    #[test]
    fn a_handle_made_at_run_time_is_the_same() {
        let handle = 5 << 56 | 17 << 32 | 4_000_000;
        assert_eq!(Request::of_standard(handle), handle);
        assert_eq!(Request::to_standard(handle), handle);
    }

    #[test]
    fn what_is_no_handle_names_nothing() {
        for value in [0, 1, 0x101, 0x4400_0000, 0x7fff_ffff_fff0] {
            let foreign = Comm::to_standard(value);
            assert!(foreign >> 63 == 1, "{value:#x}");
            assert_eq!(Comm::of_standard(foreign), value, "it stays what it was");
        }
    }

    #[test]
    fn predefined_integers_of_fortran() {
        assert_eq!(Comm::of_integer(0), 0x101);
        assert_eq!(Comm::of_integer(2), 0x100);
        assert_eq!(Datatype::of_integer(7), 0x219);
        assert_eq!(integer_of(0x101), Some(0));
        assert_eq!(integer_of(0x219), Some(7));
        assert_eq!(integer_of(5 << 56), None);
    }
}
