//! Choice buffers: an address in mpif.h, a descriptor (`descriptor`) in the modules.

use crate::section::Section;
use crate::sentinels::buffer;
use std::ffi::c_void;

/// A buffer of which only the address is known.
#[repr(transparent)]
pub struct Address(u8);

/// A place for an address that MPI returns.
#[repr(transparent)]
pub struct Pointer(*mut c_void);

/// Form in which a choice buffer, or a place for a buffer's address, is passed.
pub trait Choice {
    /// The C argument.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    unsafe fn address(at: *mut Self) -> *mut c_void;

    /// Whether it is a section whose bytes are not contiguous.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    #[inline(always)]
    unsafe fn is_scattered(_at: *mut Self) -> bool {
        false
    }

    /// Whether a quick test shows that it is not such a section. The test uses few registers,
    /// because the code after it must pass all arguments on.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    #[inline(always)]
    unsafe fn is_direct(at: *mut Self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { !Self::is_scattered(at) }
    }

    /// The section.
    ///
    /// # Safety
    /// `at` is an argument of this form.
    unsafe fn section(_at: *mut Self) -> Section {
        Section::new(0, [])
    }

    /// Returns the address of a buffer that was detached.
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
