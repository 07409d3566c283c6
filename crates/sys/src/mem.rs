//! Memory given out to the user (MPI_Alloc_mem).

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// The least alignment given: a cache line, so that two blocks never share one.
const ALIGN: usize = 64;

/// A block of zeroed memory; freed when dropped.
#[derive(Debug)]
pub struct Memory {
    at: usize,
    layout: Layout,
}

impl Memory {
    /// `len` bytes (at least one) aligned to `align` (a power of two; at least a cache line), or `None` when the system
    /// has not that much.
    pub fn new(len: usize, align: usize) -> Option<Memory> {
        let layout = Layout::from_size_align(len.max(1), align.max(ALIGN)).ok()?;
        // SAFETY: the size is not zero.
        let at = unsafe { alloc_zeroed(layout) };
        (!at.is_null()).then_some(Memory {
            at: at as usize,
            layout,
        })
    }

    /// Its address.
    pub fn bits(&self) -> usize {
        self.at
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed only here.
        unsafe { dealloc(self.at as *mut u8, self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_too_much_is_refused() {
        let m = Memory::new(100, 4096).unwrap();
        assert_eq!(m.bits() % 4096, 0);
        assert!(Memory::new(0, 1).is_some());
        assert!(Memory::new(usize::MAX, 1).is_none());
        assert!(Memory::new(1 << 62, 64).is_none());
    }
}
