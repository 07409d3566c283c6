//! The descriptors of gfortran 9 and later, which procedures take that are not bind(C).

use crate::choice::Choice;
use crate::section::{Dim, RANKS, Section};
use crate::sentinels::buffer;
use std::ffi::c_void;

/// A descriptor.
#[repr(C)]
pub struct Descriptor {
    /// The first element.
    pub base: *mut c_void,
    offset: usize,
    /// Bytes of an element.
    pub element: usize,
    version: i32,
    rank: i8,
    ty: i8,
    attribute: i16,
    /// The unit of strides, in bytes.
    span: isize,
    dims: [Bound; RANKS],
}

#[repr(C)]
struct Bound {
    stride: isize,
    lower: isize,
    upper: isize,
}

impl Descriptor {
    /// A dimension: number of elements, and bytes from one to the next.
    ///
    /// # Safety
    /// `at` is a descriptor with more than `d` dimensions.
    unsafe fn dim(at: *mut Self, d: usize) -> Dim {
        // SAFETY: the caller's promise.
        unsafe {
            let bound = &raw const (*at).dims[d];
            let unit = match (*at).span {
                0 => (*at).element as isize,
                span => span,
            };
            Dim {
                count: ((*bound).upper - (*bound).lower + 1) as i64,
                stride: ((*bound).stride * unit) as i64,
            }
        }
    }
}

impl Choice for Descriptor {
    unsafe fn address(at: *mut Self) -> *mut c_void {
        // SAFETY: a descriptor, or one of another compiler, which has no type here.
        unsafe {
            if (*at).ty == 0 || (*at).version != 0 || (*at).rank as usize > RANKS {
                of_another_compiler();
            }
            buffer((*at).base)
        }
    }

    unsafe fn is_scattered(at: *mut Self) -> bool {
        // SAFETY: a descriptor has as many bounds as its rank says.
        unsafe {
            let mut next = (*at).element as i64;
            (0..(*at).rank as usize).any(|d| {
                let dim = Self::dim(at, d);
                let leaves = dim.stride != next && dim.count > 1;
                next *= dim.count;
                leaves
            })
        }
    }

    unsafe fn section(at: *mut Self) -> Section {
        // SAFETY: as above.
        unsafe {
            let (element, rank) = ((*at).element as i64, (*at).rank as usize);
            Section::new(element, (0..rank).map(|d| Self::dim(at, d)))
        }
    }
}

/// Error of a program in mpi_f08 whose compiler uses other descriptors: no buffer can be found.
#[cold]
fn of_another_compiler() -> ! {
    eprintln!(
        "process {}: this program uses a module mpi_f08 of a compiler other than gfortran, whose array descriptors are not supported: compile it with Kittiwake's mpifort",
        std::process::id()
    );
    std::process::abort()
}
