//! LOGICALs: in, an odd number is true; out, the values of the compiler.

use crate::sentinels::kw_fortran_compiler_;
use std::ffi::c_int;

/// Value of a logical that C has not set.
pub const UNSET: c_int = c_int::MIN;

/// `.true.` and `.false.` of the compiler.
pub fn booleans() -> [c_int; 2] {
    // SAFETY: it is never written.
    unsafe { [kw_fortran_compiler_[0], kw_fortran_compiler_[1]] }
}

/// The value of a LOGICAL as C's truth value.
///
/// # Safety
/// `at` points at a LOGICAL.
pub unsafe fn truth(at: *const c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { *at & 1 }
}

/// The LOGICAL for C's truth value.
pub fn logical(truth: c_int) -> c_int {
    booleans()[usize::from(truth == 0)]
}

/// Sets a LOGICAL, if C has set its value.
///
/// # Safety
/// `at` points at a LOGICAL.
pub unsafe fn set_logical(at: *mut c_int, truth: c_int) {
    if truth != UNSET {
        // SAFETY: the caller's promise.
        unsafe { *at = logical(truth) };
    }
}

/// An array of logicals.
pub struct Logicals(Vec<c_int>);

impl Logicals {
    /// Reads `n` LOGICALs.
    ///
    /// # Safety
    /// `from` has `n` elements, if `n` is positive.
    pub unsafe fn read(from: *const c_int, n: i64) -> Logicals {
        // SAFETY: the caller's promise.
        Logicals(
            (0..n.max(0) as usize)
                .map(|i| unsafe { truth(from.add(i)) })
                .collect(),
        )
    }

    /// Space for `n` logicals that C will set.
    ///
    /// # Safety
    /// None; the signature is that of [`Logicals::read`].
    pub unsafe fn room(_: *const c_int, n: i64) -> Logicals {
        Logicals(vec![UNSET; n.max(0) as usize])
    }

    /// The C argument.
    pub fn as_c(&mut self) -> *mut c_int {
        self.0.as_mut_ptr()
    }

    /// Writes the values that C has set.
    ///
    /// # Safety
    /// `to` has as many elements.
    pub unsafe fn write(&self, to: *mut c_int) {
        for (i, &truth) in self.0.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { set_logical(to.add(i), truth) };
        }
    }
}
