//! Constants of an ABI and of the standard one, and the places in which they occur.

use crate::Abi;
use crate::constants::{MPI_ERR_LASTCODE, MPI_IN_PLACE};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The program's own error codes start at MPI_ERR_LASTCODE in the standard ABI, and at another
/// number in other ABIs: these ranges are exchanged.
const STANDARD_ADDED: c_int = MPI_ERR_LASTCODE + 1;
const MOST_ADDED: c_int = 1 << 20;

/// The standard code of an error code or class.
#[inline(always)]
pub fn error_in<A: Abi>(code: c_int) -> c_int {
    if code == 0 { 0 } else { code_in::<A>(code) }
}

/// An ABI's code of a standard one.
#[inline(always)]
pub fn error_out<A: Abi>(code: c_int) -> c_int {
    if code == 0 { 0 } else { code_out::<A>(code) }
}

fn code_in<A: Abi>(code: c_int) -> c_int {
    added::<A>(code).unwrap_or_else(|| A::error_table_in(code))
}

#[cold]
fn code_out<A: Abi>(code: c_int) -> c_int {
    added::<A>(code).unwrap_or_else(|| A::error_table_out(code))
}

fn added<A: Abi>(code: c_int) -> Option<c_int> {
    let standard = STANDARD_ADDED..STANDARD_ADDED + MOST_ADDED;
    if standard.contains(&code) {
        return Some(code - STANDARD_ADDED + A::FIRST_ADDED);
    }
    let theirs = A::FIRST_ADDED..A::FIRST_ADDED + MOST_ADDED;
    let is_theirs = theirs.contains(&code);
    is_theirs.then(|| code - A::FIRST_ADDED + STANDARD_ADDED)
}

/// Whether a buffer is MPI_IN_PLACE.
#[inline(always)]
pub fn is_in_place<A: Abi>(buffer: *const c_void) -> bool {
    A::buffer_in(buffer.cast_mut()) as usize == MPI_IN_PLACE
}

/// A count behind a pointer, if there is one.
///
/// # Safety
/// `at` is null or points at an integer.
pub unsafe fn count_at(at: *mut c_int) -> i64 {
    if at.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    i64::from(unsafe { *at })
}

/// Converts a result that the standard function has written.
///
/// # Safety
/// `at` is null or points at an integer, which is written if the outcome is 0.
#[inline(always)]
pub unsafe fn give(outcome: c_int, at: *mut c_int, out: fn(c_int) -> c_int) {
    if outcome == 0 && !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write_unaligned(out(at.read_unaligned())) };
    }
}

/// Converts results that the standard function has written.
///
/// # Safety
/// `at` is null or has `n` integers, which are written if the outcome is 0.
pub unsafe fn give_all(outcome: c_int, at: *mut c_int, n: i64, out: fn(c_int) -> c_int) {
    for i in 0..n.max(0) as usize {
        // SAFETY: the caller's promise.
        unsafe { give(outcome, if at.is_null() { at } else { at.add(i) }, out) };
    }
}

/// Converts an address that the standard function has written.
///
/// # Safety
/// `at` is null or points at an address, which is written if the outcome is 0.
pub unsafe fn give_address(outcome: c_int, at: *mut c_void, out: fn(*mut c_void) -> *mut c_void) {
    let at: *mut *mut c_void = at.cast();
    if outcome == 0 && !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write_unaligned(out(at.read_unaligned())) };
    }
}

/// A constant behind a pointer, which the standard function reads and may change.
pub struct IntPlace {
    user: *mut c_int,
    value: c_int,
}

impl IntPlace {
    /// Reads an integer of the program.
    ///
    /// # Safety
    /// `user` is null or points at an integer.
    pub unsafe fn read(user: *mut c_int, into: fn(c_int) -> c_int) -> IntPlace {
        let value = match user.is_null() {
            true => 0,
            // SAFETY: the caller's promise.
            false => into(unsafe { user.read_unaligned() }),
        };
        IntPlace { user, value }
    }

    /// Argument of the standard function.
    pub fn place(&mut self) -> *mut c_int {
        match self.user.is_null() {
            true => null_mut(),
            false => &raw mut self.value,
        }
    }

    /// Writes the integer back.
    ///
    /// # Safety
    /// The promise of [`IntPlace::read`].
    pub unsafe fn give(&self, out: fn(c_int) -> c_int) {
        if !self.user.is_null() {
            // SAFETY: the caller's promise.
            unsafe { self.user.write_unaligned(out(self.value)) };
        }
    }
}

/// An array of constants that the standard function reads.
pub struct Ints {
    null: bool,
    values: Vec<c_int>,
}

impl Ints {
    /// Reads `n` integers of the program.
    ///
    /// # Safety
    /// `user` is null or has `n` integers, if `n` is positive.
    pub unsafe fn read(user: *mut c_int, n: i64, into: fn(c_int) -> c_int) -> Ints {
        let n = if user.is_null() { 0 } else { n.max(0) as usize };
        // SAFETY: the caller's promise.
        let values = (0..n).map(|i| into(unsafe { user.add(i).read_unaligned() }));
        Ints {
            null: user.is_null(),
            values: values.collect(),
        }
    }

    /// Argument of the standard function.
    pub fn place(&mut self) -> *mut c_int {
        match self.null {
            true => null_mut(),
            false => self.values.as_mut_ptr(),
        }
    }
}
