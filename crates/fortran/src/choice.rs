//! Choice buffers: an address in mpif.h, a C descriptor in the modules.

use crate::section::{Dim, RANKS, Section};
use crate::special::buffer;
use std::ffi::c_void;

/// A buffer of which only the address is known.
#[repr(transparent)]
pub struct Address(u8);

/// A place for an address that MPI gives.
#[repr(transparent)]
pub struct Pointer(*mut c_void);

/// A C descriptor (Fortran 2018, 18.5.3; its layout is the same in all compilers for this system).
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

/// How a choice buffer, or a place for a buffer's address, is passed.
pub trait Choice {
    /// What C takes for it.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    unsafe fn address(at: *mut Self) -> *mut c_void;

    /// Whether it is a section whose bytes do not lie side by side.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    #[inline(always)]
    unsafe fn is_scattered(_at: *mut Self) -> bool {
        false
    }

    /// The section.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    unsafe fn section(_at: *mut Self) -> Section {
        Section::new(0, [])
    }

    /// Gives the address of a buffer that was detached.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    unsafe fn detached(_at: *mut Self, _address: usize) {}
}

impl Choice for Address {
    #[inline(always)]
    unsafe fn address(at: *mut Self) -> *mut c_void {
        buffer(at.cast())
    }
}

impl Choice for Pointer {
    unsafe fn address(at: *mut Self) -> *mut c_void {
        at.cast()
    }

    unsafe fn detached(at: *mut Self, address: usize) {
        // SAFETY: a place for an address.
        unsafe { (*at).0 = address as *mut c_void };
    }
}

impl Choice for Descriptor {
    #[inline(always)]
    unsafe fn address(at: *mut Self) -> *mut c_void {
        // SAFETY: a descriptor.
        buffer(unsafe { (*at).base })
    }

    #[inline(always)]
    unsafe fn is_scattered(at: *mut Self) -> bool {
        // SAFETY: a descriptor has as many bounds as its rank says.
        unsafe {
            let mut next = (*at).element as isize;
            for d in 0..(*at).rank as usize {
                let bound = &raw const (*at).dims[d];
                // a dimension of one element lies as any
                if (*bound).stride != next && (*bound).extent > 1 {
                    return true;
                }
                next *= (*bound).extent;
            }
            false
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
