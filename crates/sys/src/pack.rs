//! Kernels that gather strided memory into a packed stream and scatter it back.
//!
//! They follow the walk of a [`Layout`](kw_types::layout::Layout); blocks of the sizes that basic
//! types have are copied by loops whose body is one move.

use kw_types::layout::{Block, Grid, Visit};

/// Copies the blocks that it visits to the stream (`PACKS`), or from there.
pub(crate) struct Packer<const PACKS: bool> {
    /// Base address of displacements.
    base: usize,
    /// Address of the next packed byte.
    stream: usize,
}

impl<const PACKS: bool> Packer<PACKS> {
    /// # Safety
    /// All blocks that will be visited, displaced by `base`, and as many bytes at `stream` are
    /// valid: for reading where they are copied from, for writing where they are copied to.
    pub unsafe fn new(base: usize, stream: usize) -> Packer<PACKS> {
        Packer { base, stream }
    }

    /// Source and destination of a copy.
    #[inline(always)]
    fn direction<T>(memory: T, stream: T) -> (T, T) {
        match PACKS {
            true => (memory, stream),
            false => (stream, memory),
        }
    }
}

/// Copies `n` blocks of `len` bytes; both addresses move on by their stride after each.
///
/// # Safety
/// Every block is valid for reading at its source and for writing at its destination, and they do
/// not overlap.
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

/// Records packed together, member by member, such that their bytes stay in the first-level cache:
/// a built-in value, like the two below.
const TILE: u64 = 8192;

/// Cuts records into tiles: `(displacement, packed offset, how many)`.
fn tiles(stride: i64, size: u64, n: u64) -> impl Iterator<Item = (usize, usize, u64)> {
    let tile = (TILE / size).clamp(1, 512);
    (0..n).step_by(tile as usize).map(move |i| {
        let at = (i as i64).wrapping_mul(stride) as usize;
        (at, (i * size) as usize, tile.min(n - i))
    })
}

/// Columns of a grid that are copied side by side when its blocks are closer across the stream than
/// along it, as in a transposition, such that each cache line is fetched once.
const COLUMNS: u64 = 8;
/// Rows of such columns that are copied before continuing with the next columns, such that their
/// pages stay mapped.
const ROWS: u64 = 128;

/// Strides of one side of a crossed copy.
#[derive(Clone, Copy)]
struct Side {
    at: usize,
    /// From row to row.
    row: usize,
    /// From column to column.
    column: usize,
}

impl Side {
    fn new(at: usize, row: u64, column: u64) -> Side {
        Side {
            at,
            row: row as usize,
            column: column as usize,
        }
    }

    fn place(self, row: u64, column: u64) -> Side {
        let at = self
            .at
            .wrapping_add(self.row.wrapping_mul(row as usize))
            .wrapping_add(self.column.wrapping_mul(column as usize));
        Side { at, ..self }
    }
}

/// Copies a grid of blocks of `len` bytes in tiles of rows and columns.
///
/// # Safety
/// Every block is valid for reading on one side and for writing on the other, and they do not
/// overlap.
unsafe fn crossed(from: Side, to: Side, len: u64, rows: u64, columns: u64) {
    for row in (0..rows).step_by(ROWS as usize) {
        let r = ROWS.min(rows - row);
        for column in (0..columns).step_by(COLUMNS as usize) {
            let c = COLUMNS.min(columns - column);
            let (f, t) = (from.place(row, column), to.place(row, column));
            // SAFETY: promised by the caller.
            unsafe {
                match len {
                    8 => tile(f, t, 8, r, c),
                    4 => tile(f, t, 4, r, c),
                    16 => tile(f, t, 16, r, c),
                    _ => tile(f, t, len as usize, r, c),
                }
            }
        }
    }
}

/// One tile of [`crossed`].
///
/// # Safety
/// As for [`crossed`].
#[inline(always)]
unsafe fn tile(from: Side, to: Side, len: usize, rows: u64, columns: u64) {
    let (mut f, mut t) = (from.at, to.at);
    for _ in 0..rows {
        // SAFETY: promised by the caller.
        unsafe {
            if columns == COLUMNS {
                blocks(f, from.column, t, to.column, len, COLUMNS);
            } else {
                blocks(f, from.column, t, to.column, len, columns);
            }
        }
        f = f.wrapping_add(from.row);
        t = t.wrapping_add(to.row);
    }
}

/// The two sides of a grid: in memory that starts at `base`, and packed from `stream` on.
fn sides(g: &Grid, base: usize, stream: usize) -> (Side, Side) {
    let start = base.wrapping_add(g.at as usize);
    (
        Side::new(start, g.inner.0 as u64, g.outer.0 as u64),
        Side::new(stream, g.len, g.inner.1 * g.len),
    )
}

/// Whether a grid is better copied across than along.
fn crosses(g: &Grid) -> bool {
    g.len <= 32 && g.outer.0.unsigned_abs() < 64 && g.inner.0.unsigned_abs() >= 64
}

impl<const PACKS: bool> Visit for Packer<PACKS> {
    #[inline]
    fn strided(&mut self, at: i64, len: u64, stride: i64, n: u64) {
        let memory = (self.base.wrapping_add(at as usize), stride as usize);
        let (from, to) = Self::direction(memory, (self.stream, len as usize));
        // SAFETY: promised in `new`.
        unsafe { strided(from.0, from.1, to.0, to.1, len, n) };
        self.stream = self.stream.wrapping_add((len * n) as usize);
    }

    #[inline]
    fn scattered(&mut self, base: i64, len: u64, ats: &[i64]) {
        let base = self.base.wrapping_add(base as usize);
        let mut stream = self.stream;
        let mut each = |len: usize| {
            for at in ats {
                let memory = base.wrapping_add(*at as usize);
                let (from, to) = Self::direction(memory, stream);
                // SAFETY: promised in `new`.
                unsafe { blocks(from, 0, to, 0, len, 1) };
                stream += len;
            }
        };
        match len {
            4 => each(4),
            8 => each(8),
            16 => each(16),
            _ => each(len as usize),
        }
        self.stream = stream;
    }

    #[inline]
    fn grid(&mut self, g: &Grid) {
        if crosses(g) {
            let (memory, stream) = sides(g, self.base, self.stream);
            let (from, to) = Self::direction(memory, stream);
            // SAFETY: promised in `new`.
            unsafe { crossed(from, to, g.len, g.inner.1, g.outer.1) };
            let bytes = (g.len * g.inner.1 * g.outer.1) as usize;
            self.stream = self.stream.wrapping_add(bytes);
            return;
        }
        for i in 0..g.outer.1 {
            let at = g.at.wrapping_add((i as i64).wrapping_mul(g.outer.0));
            self.strided(at, g.len, g.inner.0, g.inner.1);
        }
    }

    #[inline]
    fn records(&mut self, base: i64, members: &[Block], size: u64, stride: i64, n: u64) {
        let base = self.base.wrapping_add(base as usize);
        for (at, start, n) in tiles(stride, size, n) {
            for b in members {
                let memory = base.wrapping_add(at).wrapping_add(b.at as usize);
                let stream = self.stream + start + b.start as usize;
                let (from, to) =
                    Self::direction((memory, stride as usize), (stream, size as usize));
                // SAFETY: promised in `new`.
                unsafe { strided(from.0, from.1, to.0, to.1, b.len, n) };
            }
        }
        self.stream = self.stream.wrapping_add((size * n) as usize);
    }
}
