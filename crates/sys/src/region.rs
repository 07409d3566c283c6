//! Memory of the library's own, whose parts are checked.
//!
//! An [`Addr`] is the word of a caller of MPI: nobody here knows how far it reaches. A [`Region`]
//! knows its length. Whoever makes one promises its bytes; after that no part of it can lie
//! outside, whatever safe code asks for.

use crate::buf::{Addr, Buf, copy};

/// `len` bytes in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    at: usize,
    len: u64,
}

impl Region {
    /// `len` bytes at `at`.
    ///
    /// # Safety
    /// They are valid for reading and writing as long as anybody uses the region or a part of it.
    /// Who may touch them when is decided by the protocols.
    #[inline]
    pub unsafe fn new(at: *mut u8, len: u64) -> Region {
        Region {
            at: at as usize,
            len,
        }
    }

    /// How many there are.
    #[inline]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Bytes `at..at+len` of it.
    ///
    /// # Panics
    /// When they lie outside (a fault of our own).
    #[inline]
    pub fn part(self, at: u64, len: u64) -> Region {
        assert!(
            at <= self.len && len <= self.len - at,
            "{len} bytes at {at} of {}",
            self.len
        );
        Region {
            at: self.at + at as usize,
            len,
        }
    }

    /// Where it begins, for a buffer or a reduction of as many bytes.
    #[inline]
    pub fn addr(self) -> Addr {
        // SAFETY: the bytes are valid; what is used with the address describes no more of them than
        // there are.
        unsafe { Addr::new(self.at as *const std::ffi::c_void) }
    }

    /// Copies it to a region of the same length that does not overlap it.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    #[inline]
    pub fn copy_to(self, to: Region) {
        assert_eq!(self.len, to.len, "bytes from one region to another");
        // SAFETY: both have that many bytes.
        unsafe { copy(self.bytes(), to.bytes_mut(), self.len as usize) }
    }

    /// Its first byte.
    #[inline]
    pub(crate) fn bytes(self) -> *const u8 {
        self.at as *const u8
    }

    /// Its first byte, for writing.
    #[inline]
    pub(crate) fn bytes_mut(self) -> *mut u8 {
        self.at as *mut u8
    }
}

impl Buf {
    /// Its bytes, when they lie in a row: they are there by the promise that the buffer was made
    /// with.
    #[inline]
    pub fn region(&self) -> Option<Region> {
        let at = self.contiguous()?;
        Some(Region {
            at,
            len: self.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(buf: &Buf) -> Region {
        buf.region().expect("memory of our own lies in a row")
    }

    #[test]
    fn parts_of_parts_are_copied() {
        let (from, to) = (Buf::alloc(100), Buf::alloc(100));
        from.write(0, &[7; 100]);
        let part = region(&from).part(10, 50).part(5, 20);
        assert_eq!((part.len(), part.is_empty()), (20, false));
        part.copy_to(region(&to).part(40, 20));
        let mut bytes = [0; 100];
        to.read(0, &mut bytes);
        let want: Vec<u8> = (0..100)
            .map(|i| if (40..60).contains(&i) { 7 } else { 0 })
            .collect();
        assert_eq!(bytes[..], want);
        assert!(region(&from).part(100, 0).is_empty());
    }

    #[test]
    fn nothing_outside_can_be_had() {
        let buf = Buf::alloc(100);
        let whole = region(&buf);
        for (at, len) in [(0, 101), (101, 0), (60, 41), (1, u64::MAX), (u64::MAX, 2)] {
            let part = std::panic::catch_unwind(|| whole.part(at, len));
            assert!(part.is_err(), "{len} bytes at {at}");
        }
        let copied = std::panic::catch_unwind(|| whole.part(0, 10).copy_to(whole.part(20, 11)));
        assert!(copied.is_err());
    }
}
