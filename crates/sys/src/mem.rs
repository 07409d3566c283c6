//! Memory given out to the user (MPI_Alloc_mem), and what malloc does with what the user frees.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Blocks that malloc asks the system for one by one at most, whatever was freed: what the GNU C
/// library allows.
const LARGEST_KEPT: u64 = 32 << 20;

/// From now on malloc keeps what is freed in blocks of up to so many bytes, up to twice as many at
/// the end of the heap. As the GNU C library begins, what lies there goes back to the system once it
/// is more than 128 KB, and a program that asks for it again in each step pays for new pages: two
/// fifths of the time of LULESH with 12 cubed elements a rank. The library learns from the largest
/// block of its own mapping that is freed, so we free one, of which one page is touched. To other
/// libraries it is a block like any other.
pub fn keep_freed(bytes: u64) {
    let bytes = bytes.min(LARGEST_KEPT) as usize;
    if bytes > 0 {
        // SAFETY: a block is asked for and given back; `free` takes null, too. `black_box` has the
        // compiler leave both calls in.
        unsafe { libc::free(std::hint::black_box(libc::malloc(bytes))) }
    }
}

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
