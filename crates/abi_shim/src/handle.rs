//! Handles: the values of programs of an ABI, and pointer-sized values in the standard one.

use std::ptr::null_mut;

/// The value of a kind's handle in a program.
pub type V<K> = <K as Kind>::Value;

/// A kind of handle.
pub trait Kind: Copy + 'static {
    /// Type of the handles of programs.
    type Value: Copy;
    /// The null handle of the standard ABI.
    const NULL: usize;
    /// The standard handle; an invalid one if the value is not of this kind.
    fn to_standard(value: Self::Value) -> usize;
    /// The program's handle.
    fn of_standard(handle: usize) -> Self::Value;
}

/// Bit that no standard handle has: it marks an invalid handle of a program.
pub const UNKNOWN: usize = 1 << 63;

/// Mark of a handle that the standard function has not written.
const NOTHING: usize = 0;

/// A handle behind a pointer.
pub struct HandlePlace<K: Kind> {
    user: *mut K::Value,
    handle: usize,
}

impl<K: Kind> HandlePlace<K> {
    /// Makes space for a handle that the standard function returns.
    ///
    /// # Safety
    /// `user` is null or has room for a handle until the result is written.
    #[inline(always)]
    pub unsafe fn new(user: *mut K::Value) -> Self {
        HandlePlace {
            user,
            handle: NOTHING,
        }
    }

    /// Reads a handle of the program.
    ///
    /// # Safety
    /// `user` is null or points at a handle.
    #[inline(always)]
    pub unsafe fn read(user: *mut K::Value) -> Self {
        let handle = match user.is_null() {
            true => K::NULL,
            // SAFETY: the caller's promise.
            false => K::to_standard(unsafe { user.read_unaligned() }),
        };
        HandlePlace { user, handle }
    }

    /// Argument of the standard function.
    #[inline(always)]
    pub fn place(&mut self) -> *mut usize {
        match self.user.is_null() {
            true => null_mut(),
            false => &raw mut self.handle,
        }
    }

    /// Writes the program's handle, if one was returned.
    ///
    /// # Safety
    /// The promise of the function that made this.
    #[inline(always)]
    pub unsafe fn give(&self) {
        if !self.user.is_null() && self.handle != NOTHING {
            // SAFETY: the caller's promise.
            unsafe { self.user.write_unaligned(K::of_standard(self.handle)) };
        }
    }
}

/// Arrays up to this length need no memory but the stack.
const FEW: usize = 8;

/// An array of handles.
pub struct Handles<K: Kind> {
    user: *mut K::Value,
    few: [usize; FEW],
    many: Vec<usize>,
    n: usize,
}

impl<K: Kind> Handles<K> {
    /// Reads `n` handles of the program.
    ///
    /// # Safety
    /// `user` is null or has `n` handles, if `n` is positive.
    #[inline]
    pub unsafe fn read(user: *mut K::Value, n: i64) -> Self {
        let n = if user.is_null() { 0 } else { n.max(0) as usize };
        // SAFETY: the caller's promise.
        let handle = |i: usize| K::to_standard(unsafe { user.add(i).read_unaligned() });
        let mut few = [NOTHING; FEW];
        let mut many = Vec::new();
        match n {
            0..=FEW => (0..n).for_each(|i| few[i] = handle(i)),
            _ => many.extend((0..n).map(handle)),
        }
        Handles { user, few, many, n }
    }

    /// Makes space for at most `n` handles that the standard function returns.
    ///
    /// # Safety
    /// `user` is null or has room for `n` handles, if `n` is positive.
    #[inline]
    pub unsafe fn room(user: *mut K::Value, n: i64) -> Self {
        let n = if user.is_null() { 0 } else { n.max(0) as usize };
        Handles {
            user,
            few: [NOTHING; FEW],
            many: if n > FEW {
                vec![NOTHING; n]
            } else {
                Vec::new()
            },
            n,
        }
    }

    #[inline]
    fn values(&mut self) -> &mut [usize] {
        match self.n {
            0..=FEW => &mut self.few[..self.n],
            _ => &mut self.many,
        }
    }

    /// Argument of the standard function.
    #[inline]
    pub fn place(&mut self) -> *mut usize {
        match self.user.is_null() {
            true => null_mut(),
            false => self.values().as_mut_ptr(),
        }
    }

    /// Writes the returned handles.
    ///
    /// # Safety
    /// The promise of [`Handles::room`].
    pub unsafe fn write(&mut self) {
        let user = self.user;
        for (i, &handle) in self.values().iter().enumerate().filter(|h| *h.1 != NOTHING) {
            // SAFETY: the caller's promise.
            unsafe { user.add(i).write_unaligned(K::of_standard(handle)) };
        }
    }

    /// Writes the null handles: requests that have ended. No other handle changes.
    ///
    /// # Safety
    /// The promise of [`Handles::read`].
    #[inline]
    pub unsafe fn write_null(&mut self) {
        let (user, null) = (self.user, K::of_standard(K::NULL));
        for (i, &handle) in self.values().iter().enumerate() {
            if handle == K::NULL {
                // SAFETY: the caller's promise.
                unsafe { user.add(i).write_unaligned(null) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    #[test]
    fn arrays_of_any_length() {
        for n in [0, 1, 8, 9, 100] {
            let mut theirs = vec![-7; n];
            // SAFETY: the array has `n` handles.
            let mut all = unsafe { Handles::<Toy>::read(theirs.as_mut_ptr(), n as i64) };
            assert!(all.values().iter().all(|h| *h == 7));
            if n > 0 {
                all.values()[n - 1] = Toy::NULL;
                // SAFETY: as above.
                unsafe { all.write_null() };
                assert_eq!(theirs[n - 1], Toy::of_standard(Toy::NULL));
                assert!(theirs[..n - 1].iter().all(|h| *h == -7));
            }
        }
    }
}
