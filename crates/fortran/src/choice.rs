//! Choice buffers: an address in mpif.h, a descriptor (`descriptor`) in the modules.

use crate::section::Section;
use crate::sentinels::buffer;
use std::ffi::c_void;

/// A buffer of which only the address is known.
#[repr(transparent)]
pub struct Address(u8);

/// A place for an address that MPI gives.
#[repr(transparent)]
pub struct Pointer(*mut c_void);

/// How a choice buffer, or a place for a buffer's address, is passed.
pub trait Choice {
    /// The C argument.
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

    /// Whether it is quickly seen that it is no such section: with few registers, for what follows
    /// has to pass them all on.
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
