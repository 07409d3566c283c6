//! Kernels that gather strided memory into a packed stream and scatter it back.
//!
//! They follow the walk of a [`Layout`](kw_core::layout::Layout); blocks of the sizes that basic types have are copied
//! by loops whose body is one move.

use kw_core::layout::{Block, Visit};

/// Packs what it visits.
pub(crate) struct Gather {
    /// Address that displacements count from.
    base: usize,
    /// Where the next packed byte goes.
    out: *mut u8,
}

impl Gather {
    /// # Safety
    /// All that will be visited, displaced by `base`, is valid for reading, and as many bytes at `out` for writing.
    pub unsafe fn new(base: usize, out: *mut u8) -> Gather {
        Gather { base, out }
    }
}

/// Unpacks to what it visits.
pub(crate) struct Scatter {
    /// Address that displacements count from.
    base: usize,
    /// The next packed byte.
    data: *const u8,
}

impl Scatter {
    /// # Safety
    /// All that will be visited, displaced by `base`, is valid for writing, and as many bytes at `data` for reading.
    pub unsafe fn new(base: usize, data: *const u8) -> Scatter {
        Scatter { base, data }
    }
}

/// Copies `n` blocks of `len` bytes; both addresses move on by their stride after each.
///
/// # Safety
/// Every block is valid for reading at its source and for writing at its destination, and they do not overlap.
#[inline(always)]
unsafe fn blocks(from: usize, from_stride: usize, to: usize, to_stride: usize, len: usize, n: u64) {
    let (mut from, mut to) = (from, to);
    for _ in 0..n {
        // SAFETY: promised by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, len) };
        from = from.wrapping_add(from_stride);
        to = to.wrapping_add(to_stride);
    }
}

/// [`blocks`], with `len` a constant inside the loop for the usual sizes.
///
/// # Safety
/// As for [`blocks`].
#[inline]
unsafe fn strided(from: usize, from_stride: usize, to: usize, to_stride: usize, len: u64, n: u64) {
    let (f, t) = (from_stride, to_stride);
    // SAFETY: promised by the caller.
    unsafe {
        match len {
            8 => blocks(from, f, to, t, 8, n),
            4 => blocks(from, f, to, t, 4, n),
            16 => blocks(from, f, to, t, 16, n),
            1 => blocks(from, f, to, t, 1, n),
            2 => blocks(from, f, to, t, 2, n),
            12 => blocks(from, f, to, t, 12, n),
            24 => blocks(from, f, to, t, 24, n),
            32 => blocks(from, f, to, t, 32, n),
            64 => blocks(from, f, to, t, 64, n),
            _ => blocks(from, f, to, t, len as usize, n),
        }
    }
}

/// Records are packed together, member by member, so many that their bytes stay in the first-level cache.
const TILE: u64 = 8192;

/// Cuts records into tiles: `(displacement, packed offset, how many)`.
fn tiles(stride: i64, size: u64, n: u64) -> impl Iterator<Item = (usize, usize, u64)> {
    let tile = (TILE / size).clamp(1, 512);
    (0..n).step_by(tile as usize).map(move |i| {
        let at = (i as i64).wrapping_mul(stride) as usize;
        (at, (i * size) as usize, tile.min(n - i))
    })
}

impl Visit for Gather {
    #[inline]
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64) {
        let from = self.base.wrapping_add(at as usize);
        // SAFETY: promised in `new`.
        unsafe {
            strided(
                from,
                stride as usize,
                self.out as usize,
                len as usize,
                len,
                n,
            )
        };
        self.out = self.out.wrapping_add((len * n) as usize);
    }

    #[inline]
    fn scattered(&mut self, base: i64, len: u64, ats: &[i64]) {
        let base = self.base.wrapping_add(base as usize);
        let mut out = self.out as usize;
        let mut each = |len: usize| {
            for at in ats {
                // SAFETY: promised in `new`.
                unsafe { blocks(base.wrapping_add(*at as usize), 0, out, 0, len, 1) };
                out += len;
            }
        };
        match len {
            4 => each(4),
            8 => each(8),
            16 => each(16),
            _ => each(len as usize),
        }
        self.out = out as *mut u8;
    }

    #[inline]
    fn records(&mut self, base: i64, members: &[Block], size: u64, stride: i64, n: u64) {
        let base = self.base.wrapping_add(base as usize);
        for (at, start, n) in tiles(stride, size, n) {
            for b in members {
                let from = base.wrapping_add(at).wrapping_add(b.at as usize);
                let to = self.out as usize + start + b.start as usize;
                // SAFETY: promised in `new`.
                unsafe { strided(from, stride as usize, to, size as usize, b.len, n) };
            }
        }
        self.out = self.out.wrapping_add((size * n) as usize);
    }
}

impl Visit for Scatter {
    #[inline]
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64) {
        let to = self.base.wrapping_add(at as usize);
        // SAFETY: promised in `new`.
        unsafe {
            strided(
                self.data as usize,
                len as usize,
                to,
                stride as usize,
                len,
                n,
            )
        };
        self.data = self.data.wrapping_add((len * n) as usize);
    }

    #[inline]
    fn scattered(&mut self, base: i64, len: u64, ats: &[i64]) {
        let base = self.base.wrapping_add(base as usize);
        let mut data = self.data as usize;
        let mut each = |len: usize| {
            for at in ats {
                // SAFETY: promised in `new`.
                unsafe { blocks(data, 0, base.wrapping_add(*at as usize), 0, len, 1) };
                data += len;
            }
        };
        match len {
            4 => each(4),
            8 => each(8),
            16 => each(16),
            _ => each(len as usize),
        }
        self.data = data as *const u8;
    }

    #[inline]
    fn records(&mut self, base: i64, members: &[Block], size: u64, stride: i64, n: u64) {
        let base = self.base.wrapping_add(base as usize);
        for (at, start, n) in tiles(stride, size, n) {
            for b in members {
                let from = self.data as usize + start + b.start as usize;
                let to = base.wrapping_add(at).wrapping_add(b.at as usize);
                // SAFETY: promised in `new`.
                unsafe { strided(from, size as usize, to, stride as usize, b.len, n) };
            }
        }
        self.data = self.data.wrapping_add((size * n) as usize);
    }
}
