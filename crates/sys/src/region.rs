//! Contiguous bytes, whose parts are checked.
//!
//! An [`Addr`] comes from a caller of MPI: its extent is unknown. A [`Region`] knows its length,
//! and does not outlive the memory that contains it. The code that makes one guarantees its bytes;
//! after that no part of it can be outside, whatever safe code asks for.

use crate::buf::{Addr, Buf, copy};
use std::marker::PhantomData;

/// `len` contiguous bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region<'a> {
    at: usize,
    len: u64,
    within: PhantomData<&'a ()>,
}

impl<'a> Region<'a> {
    /// No bytes.
    pub const EMPTY: Region<'a> = Region {
        at: 0,
        len: 0,
        within: PhantomData,
    };

    /// `len` bytes at `at`.
    ///
    /// # Safety
    /// They are valid for reading and writing while `'a` lasts. The protocols decide which side may
    /// touch them when.
    #[inline]
    pub unsafe fn new(at: *mut u8, len: u64) -> Region<'a> {
        Region {
            at: at as usize,
            len,
            within: PhantomData,
        }
    }

    /// `len` bytes at `addr`, which the caller of MPI lent: they are valid by the promise of the
    /// [`Addr`].
    #[inline(always)]
    pub fn assume_lent(addr: Addr, len: u64) -> Region<'a> {
        Region {
            at: addr.bits(),
            len,
            within: PhantomData,
        }
    }

    /// Asks the system for large pages if these bytes have no pages yet: that is faster for many
    /// bytes.
    pub fn want_large_pages(self) {
        use rustix::mm::{Advice, madvise};
        // No system has longer ordinary pages.
        let page = 64 << 10;
        let (from, to) = (self.at.next_multiple_of(page), self.at + self.len as usize);
        let len = (to / page * page).saturating_sub(from);
        // SAFETY: whole pages within the region; the advice changes none of their bytes. If it is
        // refused, pages are as they were.
        let _ = unsafe { madvise(from as *mut _, len, Advice::LinuxHugepage) };
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
    /// If they are outside (a fault of our own).
    #[inline(always)]
    pub fn part(self, at: u64, len: u64) -> Region<'a> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            outside(at, len, self.len);
        }
        Region {
            at: self.at.wrapping_add(at as usize),
            len,
            within: PhantomData,
        }
    }

    /// The address of its first byte, as a number.
    #[inline]
    pub fn bits(self) -> usize {
        self.at
    }

    /// Copies as many bytes as fit to `out`.
    #[inline(always)]
    pub fn read(self, out: &mut [u8]) {
        let n = out.len().min(self.len as usize);
        // SAFETY: both have `n` bytes.
        unsafe { copy(self.bytes(), out.as_mut_ptr(), n) }
    }

    /// Overwrites the first bytes with as much of `data` as fits.
    #[inline(always)]
    pub fn write(self, data: &[u8]) {
        let n = data.len().min(self.len as usize);
        // SAFETY: both have `n` bytes, and a receiver into them has the only right to write there.
        unsafe { copy(data.as_ptr(), self.bytes_mut(), n) }
    }

    /// Copies it to a region of the same length.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    #[inline(always)]
    pub fn copy_to(self, to: Region<'_>) {
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

#[cold]
fn outside(at: u64, len: u64, of: u64) -> ! {
    panic!("{len} bytes at {at} of {of}")
}

impl Buf {
    /// Its bytes, if they are contiguous: they are valid by the promise that the buffer was made
    /// with, or while it keeps them, which the compiler ensures:
    ///
    /// ```compile_fail,E0716
    /// let region = kw_sys::buf::Buf::alloc(8).region().unwrap();
    /// region.write(&[1; 8]);
    /// ```
    #[inline]
    pub fn region(&self) -> Option<Region<'_>> {
        Some(Region {
            at: self.contiguous()?,
            len: self.len(),
            within: PhantomData,
        })
    }

    /// Packs all of it into a region of as many bytes.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    pub fn pack_into(&self, to: Region<'_>) {
        assert_eq!(self.len(), to.len, "packed bytes into a region");
        self.pack(0, to);
    }

    /// Unpacks a region of as many bytes to all of it.
    ///
    /// # Panics
    /// When the lengths differ (a fault of our own).
    pub fn unpack_from(&self, from: Region<'_>) {
        assert_eq!(self.len(), from.len, "packed bytes of a region");
        self.unpack(0, from);
    }

    /// Packs bytes `from..` into a region, as many as there are and fit.
    pub fn pack(&self, from: u64, to: Region<'_>) {
        let n = self.within(from, to.len);
        // SAFETY: the region has that many bytes.
        unsafe { self.read_raw(from, n, to.bytes_mut()) }
    }

    /// Unpacks a region to bytes `at..`, as many as there are and fit.
    pub fn unpack(&self, at: u64, from: Region<'_>) {
        let n = self.within(at, from.len);
        // SAFETY: the region has that many bytes.
        unsafe { self.write_raw(at, n, from.bytes()) }
    }

    /// Bytes `at..at+len` of the packed data, if they exist and are contiguous.
    #[inline]
    pub fn row(&self, at: u64, len: u64) -> Option<Region<'_>> {
        let whole = self.region()?;
        (self.within(at, len) == len).then(|| whole.part(at, len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(buf: &Buf) -> Region<'_> {
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
    fn what_fits_is_copied_and_no_more() {
        for len in [0, 1, 4, 7, 8, 9, 300] {
            let mut memory = vec![7u8; len + 1];
            // SAFETY: the vector outlives the region.
            let addr = unsafe { Addr::new(memory.as_mut_ptr().cast()) };
            let lent = Region::assume_lent(addr, len as u64);
            lent.write(&vec![9; len + 5]);
            let mut out = vec![0; len + 5];
            lent.read(&mut out);
            assert_eq!(memory, [vec![9; len], vec![7]].concat());
            assert_eq!(out, [vec![9; len], vec![0; 5]].concat());
            let mut short = vec![0; len / 2];
            lent.read(&mut short);
            assert_eq!(short, vec![9; len / 2]);
        }
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
