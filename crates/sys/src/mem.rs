//! Memory given out to the user (MPI_Alloc_mem).

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// The least alignment given: a cache line, so that two blocks never share one.
const ALIGN: usize = 64;
/// The alignment that is asked of the allocator. With more it would have to write the zeros itself;
/// so it hands out pages that the system gives when they are touched.
const NATURAL: usize = 16;

/// A block of zeroed memory, of which nothing is touched when it is long; freed when dropped.
#[derive(Debug)]
pub struct Memory {
    at: usize,
    base: usize,
    layout: Layout,
}

impl Memory {
    /// `len` bytes (at least one) aligned to `align` (a power of two; at least a cache line), or
    /// `None` when the system has not that much.
    pub fn new(len: usize, align: usize) -> Option<Memory> {
        let align = align.max(ALIGN);
        let room = len.max(1).checked_add(align)?;
        let layout = Layout::from_size_align(room, NATURAL).ok()?;
        // SAFETY: the size is not zero.
        let base = unsafe { alloc_zeroed(layout) } as usize;
        (base != 0).then(|| Memory {
            at: base.next_multiple_of(align),
            base,
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
        unsafe { dealloc(self.base as *mut u8, self.layout) }
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
