//! C's descriptors (Fortran 2018, 18.5.3), which bind(C) procedures take.

use crate::choice::Choice;
use crate::section::{Dim, RANKS, Section};
use crate::sentinels::buffer;
use std::ffi::c_void;

/// A descriptor. Its layout is the same in all compilers for this system.
#[repr(C)]
pub struct Descriptor {
    /// The first element.
    pub base: *mut c_void,
    /// Bytes of an element.
    pub element: usize,
    version: i32,
    rank: i8,
    attribute: i8,
    ty: i16,
    dims: [Bound; RANKS],
}

#[repr(C)]
struct Bound {
    lower: isize,
    extent: isize,
    stride: isize,
}

impl Bound {
    /// Whether the next element of this dimension is not where those of the dimensions below end,
    /// whose bytes are `next`; updates `next` to include this dimension.
    #[inline(always)]
    fn leaves(&self, next: &mut isize) -> bool {
        // a dimension of one element fits any stride
        let leaves = self.stride != *next && self.extent > 1;
        *next *= self.extent;
        leaves
    }
}

/// Whether the bytes of an array of several dimensions are not contiguous.
///
/// # Safety
/// `at` is a descriptor.
#[inline(never)]
unsafe fn is_scattered(at: *mut Descriptor) -> bool {
    // SAFETY: it has as many bounds as its rank says.
    let (dims, mut next) = unsafe {
        let first = (&raw const (*at).dims).cast::<Bound>();
        let dims = std::slice::from_raw_parts(first, (*at).rank as usize);
        (dims, (*at).element as isize)
    };
    dims.iter().any(|bound| bound.leaves(&mut next))
}

/// Dimensions of an array that are examined inline.
const LOOKED_AT: i8 = 3;

impl Choice for Descriptor {
    #[inline(always)]
    unsafe fn is_direct(at: *mut Self) -> bool {
        // SAFETY: a descriptor has as many bounds as its rank says.
        unsafe {
            let (rank, dims) = ((*at).rank, &raw const (*at).dims);
            let mut next = (*at).element as isize;
            for d in 0..LOOKED_AT {
                if d == rank {
                    return true;
                }
                let bound = &(*dims)[d as usize];
                if bound.stride != next {
                    return false;
                }
                next *= bound.extent;
            }
            rank == LOOKED_AT
        }
    }

    #[inline(always)]
    unsafe fn address(at: *mut Self) -> *mut c_void {
        // SAFETY: a descriptor.
        buffer(unsafe { (*at).base })
    }

    #[inline(always)]
    unsafe fn is_scattered(at: *mut Self) -> bool {
        // SAFETY: a descriptor has as many bounds as its rank says.
        unsafe {
            match (*at).rank {
                0 => false,
                1 => (*at).dims[0].leaves(&mut ((*at).element as isize)),
                _ => is_scattered(at),
            }
        }
    }

    unsafe fn section(at: *mut Self) -> Section {
        // SAFETY: as above.
        let dim = |d: usize| unsafe {
            let bound = &raw const (*at).dims[d];
            Dim {
                count: (*bound).extent as i64,
                stride: (*bound).stride as i64,
            }
        };
        // SAFETY: a descriptor.
        let (element, rank) = unsafe { ((*at).element as i64, (*at).rank as usize) };
        Section::new(element, (0..rank.min(RANKS)).map(dim))
    }
}
