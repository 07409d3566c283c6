//! Memory allocated for the user (MPI_Alloc_mem), and malloc's treatment of memory that the user
//! frees.

use std::alloc::{Layout, alloc_zeroed, dealloc};
#[cfg(target_env = "gnu")]
use std::hint::black_box;
use std::path::Path;

use crate::control_group;

/// Longest blocks that malloc can be told to cut from its heap instead of asking the system for
/// each: the limit of the GNU C library.
#[cfg(target_env = "gnu")]
const LONGEST_OF_HEAP: usize = 32 << 20;
/// The longest block that malloc adapts to: with malloc's addition it is no longer than the limit.
#[cfg(target_env = "gnu")]
const LONGEST_LEARNT: usize = LONGEST_OF_HEAP - (64 << 10);

/// The part of a host's memory that its ranks together keep of freed memory.
const PART_KEPT: u64 = 16;

/// Freed memory that each of this many ranks of a host keeps: together a sixteenth of the memory
/// that they may use.
pub fn share_kept(ranks: usize) -> u64 {
    usable() / PART_KEPT / ranks.max(1) as u64
}

/// Bytes of memory that this process may use: the host's, cut by the limits of its control groups.
pub fn usable() -> u64 {
    let host = rustix::system::sysinfo();
    let host = host.totalram as u64 * u64::from(host.mem_unit);
    let limit = control_group::tightest("memory", memory_v2, memory_v1);
    limit.map_or(host, |l| host.min(l.amount as u64))
}

fn memory_v2(dir: &Path) -> Option<f64> {
    number(&dir.join("memory.max"))
}

fn memory_v1(dir: &Path) -> Option<f64> {
    number(&dir.join("memory.limit_in_bytes"))
}

/// Contents of a file of a control group; `None` for `max` and if there is none.
fn number(file: &Path) -> Option<f64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// From now on malloc keeps up to this many bytes of freed memory at the end of its heap, from
/// which blocks of up to half as many (and 32 MB) are allocated. By default the GNU C library
/// returns more than 128 KB to the kernel, and a program that allocates it again in each step pays
/// for new pages: two fifths of the time of LULESH. With 0 nothing changes, and also if the user or
/// the program has configured malloc.
///
/// Malloc adapts to the longest mapped block that is freed, up to 32 MB: it keeps twice as much. So
/// one such block is freed, of which one page is touched; blocks of that size are then no longer
/// mapped separately, unless malloc was configured otherwise (by MALLOC_TRIM_THRESHOLD_,
/// GLIBC_TUNABLES, mallopt). A larger amount must be set explicitly, which stops the adaptation.
#[cfg(target_env = "gnu")]
pub fn keep_freed(bytes: u64) {
    let bytes = bytes.min(i32::MAX as u64) as usize;
    let block = (bytes / 2).min(LONGEST_LEARNT);
    if block == 0 {
        return;
    }
    // SAFETY: a block is allocated and freed; `free` takes null, too. `black_box` makes the
    // compiler leave both calls in.
    unsafe { libc::free(black_box(libc::malloc(block))) };
    if bytes / 2 > LONGEST_LEARNT && !has_own_mapping(block) {
        // SAFETY: takes numbers, and locks what it changes.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LONGEST_OF_HEAP as i32);
            libc::mallopt(libc::M_TRIM_THRESHOLD, bytes as i32);
        }
    }
}

/// Other C libraries keep their malloc as it is.
#[cfg(not(target_env = "gnu"))]
pub fn keep_freed(_: u64) {}

/// Whether malloc maps a block of this many bytes separately.
#[cfg(target_env = "gnu")]
fn has_own_mapping(bytes: usize) -> bool {
    // SAFETY: as in `keep_freed`.
    unsafe {
        let before = libc::mallinfo().hblks;
        let block = black_box(libc::malloc(bytes));
        let own = libc::mallinfo().hblks != before;
        libc::free(block);
        own
    }
}

/// The least alignment given: a cache line, so that two blocks never share one.
const ALIGN: usize = 64;
/// The alignment that the allocator is asked for. With more it would have to write the zeros
/// itself; so it hands out pages that the system provides when they are touched.
const NATURAL: usize = 16;

/// A block of zeroed memory; a long one is untouched. Freed when dropped.
#[derive(Debug)]
pub struct Memory {
    at: usize,
    base: usize,
    layout: Layout,
}

impl Memory {
    /// `len` bytes (at least one) aligned to `align` (a power of two; at least a cache line), or
    /// `None` if the system does not have that much.
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
