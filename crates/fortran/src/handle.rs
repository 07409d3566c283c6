//! Handles: an INTEGER in Fortran, the ABI's type in C (`kw_apigen::fortran_layer`).

use std::ffi::c_int;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

/// A C handle.
pub trait Handle: Copy + Eq + Hash {
    /// The value of a handle that C has not written.
    const NONE: Self;
    /// Converts from an INTEGER.
    fn to_c(i: c_int) -> Self;
    /// Converts to an INTEGER.
    fn to_fortran(self) -> c_int;
    /// Whether this INTEGER can be converted without a function.
    fn is_direct(_: c_int) -> bool {
        true
    }
}

/// Handles below this are the standard ABI's constants, the same in C and Fortran (MPI 5.0, 20.4).
#[allow(dead_code)]
const CONSTANTS: usize = 4096;

macro_rules! kind {
    ($id:ident $ty:ty) => {
        #[doc = concat!("MPI's C handle of this kind: ", stringify!($id), ".")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(transparent)]
        pub struct $id(pub $ty);
    };
}

/// A pointer, whose constants are the same number in Fortran; functions convert the others.
#[allow(unused_macros)]
macro_rules! numbered {
    ($id:ident $toint:ident $fromint:ident) => {
        kind! { $id usize }

        unsafe extern "C-unwind" {
            fn $toint(h: $id) -> c_int;
            fn $fromint(i: c_int) -> $id;
        }

        impl Handle for $id {
            const NONE: Self = $id(0);

            #[inline(always)]
            fn is_direct(i: c_int) -> bool {
                (0..CONSTANTS as c_int).contains(&i)
            }

            #[inline(always)]
            fn to_c(i: c_int) -> Self {
                if Self::is_direct(i) {
                    return $id(i as usize);
                }
                // SAFETY: the function accepts any number.
                unsafe { $fromint(i) }
            }

            #[inline(always)]
            fn to_fortran(self) -> c_int {
                if self.0 < CONSTANTS {
                    return self.0 as c_int;
                }
                // SAFETY: the function accepts any handle that C returned.
                unsafe { $toint(self) }
            }
        }
    };
}

/// An int in C, too.
#[allow(unused_macros)]
macro_rules! integers {
    ($id:ident) => {
        kind! { $id c_int }

        impl Handle for $id {
            const NONE: Self = $id(0);

            #[inline(always)]
            fn to_c(i: c_int) -> Self {
                $id(i)
            }

            #[inline(always)]
            fn to_fortran(self) -> c_int {
                self.0
            }
        }
    };
}

/// A pointer that functions convert.
#[allow(unused_macros)]
macro_rules! converted {
    ($id:ident $c2f:ident $f2c:ident) => {
        kind! { $id usize }

        unsafe extern "C-unwind" {
            fn $c2f(h: $id) -> c_int;
            fn $f2c(i: c_int) -> $id;
        }

        impl Handle for $id {
            const NONE: Self = $id(0);

            #[inline(always)]
            fn to_c(i: c_int) -> Self {
                // SAFETY: the function accepts any number.
                unsafe { $f2c(i) }
            }

            #[inline(always)]
            fn to_fortran(self) -> c_int {
                // SAFETY: the function accepts any handle that C returned.
                unsafe { $c2f(self) }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// The C handle of an INTEGER.
#[inline(always)]
pub fn to_c<H: Handle>(i: c_int) -> H {
    H::to_c(i)
}

/// The INTEGER of a C handle.
#[inline(always)]
pub fn to_fortran<H: Handle>(h: H) -> c_int {
    h.to_fortran()
}

/// The C handle of an argument.
///
/// # Safety
/// `at` points at an INTEGER.
#[inline(always)]
pub unsafe fn handle<H: Handle>(at: *const c_int) -> H {
    // SAFETY: the caller's promise.
    to_c(unsafe { *at })
}

/// Whether an argument is converted without a function, if that is possible for its kind.
///
/// # Safety
/// `at` points at an INTEGER.
#[inline(always)]
pub unsafe fn is_direct<H: Handle>(at: *const c_int) -> bool {
    // SAFETY: the caller's promise.
    H::is_direct(unsafe { *at })
}

/// Stores a handle in an argument.
///
/// # Safety
/// `at` points at an INTEGER.
#[inline(always)]
pub unsafe fn give<H: Handle>(at: *mut c_int, h: H) {
    // SAFETY: the caller's promise.
    unsafe { *at = to_fortran(h) };
}

/// An array of handles.
pub struct Handles<H: Handle> {
    few: [H; 8],
    many: Vec<H>,
    n: usize,
    /// The permanent array, once C uses it beyond the call.
    left: *mut H,
}

impl<H: Handle> Handles<H> {
    /// Reads `n` INTEGERs.
    ///
    /// # Safety
    /// `from` has `n` elements, if `n` is positive.
    pub unsafe fn read(from: *const c_int, n: i64) -> Self {
        let mut out = Self::empty(n);
        for (i, place) in out.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *place = to_c(unsafe { *from.add(i) });
        }
        out
    }

    /// Space for `n` handles that C will write.
    ///
    /// # Safety
    /// None; the signature is that of [`Handles::read`].
    pub unsafe fn room(_: *const c_int, n: i64) -> Self {
        Self::empty(n)
    }

    fn empty(n: i64) -> Self {
        let n = n.max(0) as usize;
        Handles {
            few: [H::NONE; 8],
            many: if n > 8 { vec![H::NONE; n] } else { Vec::new() },
            n,
            left: std::ptr::null_mut(),
        }
    }

    /// The C argument.
    pub fn as_c(&mut self) -> *mut H {
        if !self.left.is_null() {
            return self.left;
        }
        self.as_mut_ptr()
    }

    /// Writes the handles that C has written.
    ///
    /// # Safety
    /// `to` has the elements that were read.
    pub unsafe fn write(&mut self, to: *mut c_int) {
        for (i, h) in self.iter().enumerate().filter(|(_, h)| **h != H::NONE) {
            // SAFETY: the caller's promise.
            unsafe { *to.add(i) = to_fortran(*h) };
        }
    }

    /// Moves the array to memory that C can use as long as the returned value lives.
    pub fn leave(&mut self) -> Vec<H> {
        let mut place = self.to_vec();
        self.left = place.as_mut_ptr();
        place
    }
}

impl<H: Handle> Deref for Handles<H> {
    type Target = [H];
    fn deref(&self) -> &[H] {
        match self.n {
            0..=8 => &self.few[..self.n],
            _ => &self.many,
        }
    }
}

impl<H: Handle> DerefMut for Handles<H> {
    fn deref_mut(&mut self) -> &mut [H] {
        match self.n {
            0..=8 => &mut self.few[..self.n],
            _ => &mut self.many,
        }
    }
}
