//! Statuses: an ABI's own, and eight integers in the standard ABI.
//!
//! Kittiwake's standard status has the number of received bytes in the first two of its private
//! integers (low, high), and the cancelled flag in bit 0 of the third.

use crate::convert::{error_in, error_out};
use crate::{Abi, Constants};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// A status of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Standard {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    pub internal: [c_int; 5],
}

/// A status of an ABI.
pub trait Status: Copy + 'static {
    /// Its ABI.
    type Abi: Abi;
    /// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
    const IGNORE: usize;
    /// Creates it from its private part, and source, tag and error code in the program's values.
    fn of(public: [c_int; 3], private: [c_int; 3]) -> Self;
    /// The source of [`Status::of`].
    fn parts(&self) -> ([c_int; 3], [c_int; 3]);
    /// Address of its error code.
    fn error(at: *mut Self) -> *mut c_int;

    /// The standard form.
    #[inline(always)]
    fn standard(&self) -> Standard {
        let ([source, tag, error], [low, high, cancelled]) = self.parts();
        Standard {
            source: Self::Abi::rank_in(source),
            tag: Self::Abi::tag_in(tag),
            error: error_in::<Self::Abi>(error),
            internal: [low, high, cancelled, 0, 0],
        }
    }
}

/// Mark of a source and error code that the standard function has not written.
const UNTOUCHED: c_int = c_int::MIN + 0x5157;

impl Standard {
    /// The form of an ABI, with this error code.
    #[inline(always)]
    pub fn other<S: Status>(self, error: c_int) -> S {
        let [low, high, cancelled, ..] = self.internal;
        let source = S::Abi::rank_out(self.source);
        let tag = S::Abi::tag_out(self.tag);
        S::of([source, tag, error], [low, high, cancelled & 1])
    }

    /// Space for a status that may be returned.
    #[inline(always)]
    fn room(place: *mut Standard) {
        // SAFETY: the caller has room there.
        unsafe {
            (&raw mut (*place).source).write(UNTOUCHED);
            (&raw mut (*place).error).write(UNTOUCHED);
        }
    }

    /// Writes the program's status, if one was returned.
    ///
    /// # Safety
    /// `place` was made by [`Standard::room`] and since then written as a whole, if at all; `user`
    /// has room for a status.
    #[inline(always)]
    unsafe fn give<S: Status>(place: *const Standard, user: *mut S) {
        // SAFETY: the caller's promise.
        unsafe {
            if (&raw const (*place).source).read() != UNTOUCHED {
                let status = place.read();
                let error = match status.error {
                    UNTOUCHED => S::error(user).read_unaligned(),
                    code => error_out::<S::Abi>(code),
                };
                user.write_unaligned(status.other(error));
            }
        }
    }
}

/// A status behind a pointer.
pub struct StatusPlace<S: Status> {
    user: *mut S,
    standard: MaybeUninit<Standard>,
}

fn present<S: Status>(user: *mut S) -> *mut S {
    match user as usize == S::IGNORE {
        true => null_mut(),
        false => user,
    }
}

impl<S: Status> StatusPlace<S> {
    /// Makes space for a status that the standard function may write.
    ///
    /// # Safety
    /// `user` is MPI_STATUS_IGNORE, null, or has room for a status until it is written.
    #[inline(always)]
    pub unsafe fn new(user: *mut S) -> Self {
        let mut standard = MaybeUninit::uninit();
        Standard::room(standard.as_mut_ptr());
        let user = present(user);
        StatusPlace { user, standard }
    }

    /// Reads a status of the program.
    ///
    /// # Safety
    /// `user` is MPI_STATUS_IGNORE, null, or points at a status.
    #[inline(always)]
    pub unsafe fn read(user: *mut S) -> Self {
        let user = present(user);
        let standard = match user.is_null() {
            true => Standard::default(),
            // SAFETY: the caller's promise.
            false => unsafe { user.read_unaligned() }.standard(),
        };
        let standard = MaybeUninit::new(standard);
        StatusPlace { user, standard }
    }

    /// Argument of the standard function.
    #[inline(always)]
    pub fn place(&mut self) -> *mut Standard {
        match self.user.is_null() {
            true => null_mut(),
            false => self.standard.as_mut_ptr(),
        }
    }

    /// Writes the returned status.
    ///
    /// # Safety
    /// The promise of the function that made this.
    #[inline(always)]
    pub unsafe fn give(&self) {
        if !self.user.is_null() {
            // SAFETY: the caller's promise; the standard function writes whole statuses.
            unsafe { Standard::give(self.standard.as_ptr(), self.user) };
        }
    }
}

/// Number of statuses that need no memory but the stack.
const FEW: usize = 8;

/// An array of statuses.
pub struct Statuses<S: Status> {
    user: *mut S,
    few: [MaybeUninit<Standard>; FEW],
    many: Vec<MaybeUninit<Standard>>,
    n: usize,
}

impl<S: Status> Statuses<S> {
    /// Makes space for at most `n` statuses that the standard function may write.
    ///
    /// # Safety
    /// `user` is MPI_STATUSES_IGNORE, null, or has room for `n` statuses until they are written.
    #[inline]
    pub unsafe fn new(user: *mut S, n: i64) -> Self {
        let user = present(user);
        let n = if user.is_null() { 0 } else { n.max(0) as usize };
        let mut many = Vec::new();
        if n > FEW {
            many.reserve_exact(n);
            // SAFETY: there is room, and its elements need no initialisation.
            unsafe { many.set_len(n) };
        }
        let mut all = Statuses {
            user,
            few: [MaybeUninit::uninit(); FEW],
            many,
            n,
        };
        for place in all.values() {
            Standard::room(place.as_mut_ptr());
        }
        all
    }

    #[inline]
    pub(crate) fn values(&mut self) -> &mut [MaybeUninit<Standard>] {
        match self.n {
            0..=FEW => &mut self.few[..self.n],
            _ => &mut self.many,
        }
    }

    /// Argument of the standard function.
    #[inline]
    pub fn place(&mut self) -> *mut Standard {
        match self.user.is_null() {
            true => null_mut(),
            false => self.values().as_mut_ptr().cast(),
        }
    }

    /// Writes the returned statuses.
    ///
    /// # Safety
    /// The promise of [`Statuses::new`].
    #[inline]
    pub unsafe fn give(&mut self) {
        let user = self.user;
        for (i, place) in self.values().iter().enumerate() {
            // SAFETY: the caller's promise; the standard function writes whole statuses.
            unsafe { Standard::give(place.as_ptr(), user.add(i)) };
        }
    }
}
