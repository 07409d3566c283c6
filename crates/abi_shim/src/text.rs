//! Texts for which programs of an ABI have less room than the standard ABI requires.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// Room for a text of the standard ABI's maximum length.
#[derive(Debug)]
pub struct Bounded<const MOST: usize> {
    user: *mut c_void,
    limit: usize,
    text: [u8; MOST],
}

impl<const MOST: usize> Bounded<MOST> {
    /// Makes space for a text of at most `limit` bytes with its zero.
    ///
    /// # Safety
    /// `user` is null or has room for `limit` bytes until the text is written.
    pub unsafe fn new(user: *mut c_void, limit: usize) -> Self {
        Bounded {
            user,
            limit,
            text: [0; MOST],
        }
    }

    /// Argument of the standard function.
    pub fn room(&mut self) -> *mut c_void {
        match self.user.is_null() {
            true => null_mut(),
            false => self.text.as_mut_ptr().cast(),
        }
    }

    /// Writes the program's text, and the length of the written part.
    ///
    /// # Safety
    /// The promise of [`Bounded::new`]; `length` is null or has room for an integer.
    pub unsafe fn give(&self, outcome: c_int, length: *mut c_int) {
        if outcome != 0 || self.user.is_null() {
            return;
        }
        let whole = self.text.iter().position(|b| *b == 0).unwrap_or(MOST);
        let n = whole.min(self.limit - 1);
        // SAFETY: the caller's promise.
        unsafe {
            self.user.cast::<u8>().copy_from(self.text.as_ptr(), n);
            self.user.cast::<u8>().add(n).write(0);
            if !length.is_null() {
                length.write_unaligned(n as c_int);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut() {
        let (mut place, mut length) = ([7u8; 8], 0);
        // SAFETY: there is room for eight.
        unsafe {
            let mut text = Bounded::<64>::new(place.as_mut_ptr().cast(), 8);
            text.room()
                .cast::<u8>()
                .copy_from(b"0123456789".as_ptr(), 10);
            text.give(0, &raw mut length);
        }
        assert_eq!((&place, length), (b"0123456\0", 7));
    }
}
