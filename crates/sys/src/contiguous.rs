//! Bytes in a row that a caller of MPI lent us: what most messages are, in two words.
//!
//! As [`Buf`](crate::buf::Buf), which also knows layouts and memory of our own, a [`Contiguous`]
//! rests on the promise of the [`Addr`] it is made from.

use crate::buf::{Addr, copy};

/// `len` bytes in a row.
#[derive(Clone, Copy, Debug)]
pub struct Contiguous {
    at: usize,
    len: usize,
}

impl Contiguous {
    /// `len` bytes in a row at `addr`.
    #[inline(always)]
    pub fn new(addr: Addr, len: usize) -> Contiguous {
        Contiguous {
            at: addr.bits(),
            len,
        }
    }

    /// How many there are.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.len
    }

    /// Copies as many as fit to `out`.
    #[inline(always)]
    pub fn read(&self, out: &mut [u8]) {
        let n = self.len.min(out.len());
        if n == 0 {
            return;
        }
        // SAFETY: the bytes lie in memory promised by `Addr`, `out` is ours, and both have `n`
        // bytes.
        unsafe { copy(self.at as *const u8, out.as_mut_ptr(), n) }
    }

    /// Overwrites the first bytes with as much of `data` as fits.
    #[inline(always)]
    pub fn write(&self, data: &[u8]) {
        let n = self.len.min(data.len());
        if n == 0 {
            return;
        }
        // SAFETY: as above, and whoever receives into the memory has the only right to write there.
        unsafe { copy(data.as_ptr(), self.at as *mut u8, n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_copied_and_no_more() {
        for len in [0, 1, 4, 7, 8, 9, 300] {
            let mut memory = vec![7u8; len + 1];
            // SAFETY: the vector outlives the Contiguous.
            let addr = unsafe { Addr::new(memory.as_mut_ptr().cast()) };
            let flat = Contiguous::new(addr, len);
            flat.write(&vec![9; len + 5]);
            let mut out = vec![0; len + 5];
            flat.read(&mut out);
            assert_eq!(memory, [vec![9; len], vec![7]].concat());
            assert_eq!(out, [vec![9; len], vec![0; 5]].concat());
            let mut short = vec![0; len / 2];
            flat.read(&mut short);
            assert_eq!(short, vec![9; len / 2]);
        }
    }
}
