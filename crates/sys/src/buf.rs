//! Message buffers: memory lent by a caller of MPI, or the library's own memory, with the layout of
//! the data in it.
//!
//! A [`Buf`] of the caller's memory is made from an [`Addr`], and an `Addr` carries the promise of
//! its creator (the C shells) that the bytes described by the datatype stay valid until the
//! operation completes. A buffer of the library's own keeps its memory, and parts of it lie inside.
//! Everything after that is safe code.

use crate::pack::Packer;
use kw_proto::wire::RemoteRegion;
use kw_types::layout::{Layout, Visit, message};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// An address given to us by the caller of an MPI function, with the promise that goes with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Addr(usize);

/// MPI_IN_PLACE of the standard ABI.
pub const IN_PLACE: usize = 1;
/// MPI_BUFFER_AUTOMATIC of the standard ABI.
pub const BUFFER_AUTOMATIC: usize = 2;

impl Addr {
    /// Takes an address from outside.
    ///
    /// # Safety
    /// Memory described by this address together with the count and datatype it is used with must
    /// be valid, for reading or writing as the operation does, until that operation is complete
    /// (MPI 5.0, 2.4 and 3.7).
    #[inline]
    pub unsafe fn new(p: *const std::ffi::c_void) -> Addr {
        Addr(p as usize)
    }

    /// MPI_BOTTOM / null.
    pub const NULL: Addr = Addr(0);

    /// The number itself, for comparison and arithmetic.
    #[inline]
    pub fn bits(self) -> usize {
        self.0
    }

    /// Whether this is MPI_IN_PLACE.
    #[inline]
    pub fn is_in_place(self) -> bool {
        self.0 == IN_PLACE
    }

    /// The address `by` bytes further on; the promise covers the whole buffer. Nothing is read or
    /// written before a [`Buf`], a [`Region`](crate::region::Region) or
    /// [`Elements`](crate::elements::Elements) are made of it.
    #[inline]
    pub fn assume_offset(self, by: i64) -> Addr {
        Addr(self.0.wrapping_add(by as usize))
    }
}

/// Copies contiguous bytes; a single number is not worth a call.
///
/// # Safety
/// `from` is valid for reading `n` bytes and `to` for writing them.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: promised by the caller. No bytes need no address.
    unsafe {
        match n {
            8 => std::ptr::copy(from, to, 8),
            4 => std::ptr::copy(from, to, 4),
            0 => {}
            _ => std::ptr::copy(from, to, n),
        }
    }
}

/// `n` runs of `len` bytes of a buffer, each `stride` bytes behind the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// First byte.
    pub at: u64,
    /// Bytes of a run.
    pub len: u64,
    /// Distance between the beginnings of two runs.
    pub stride: u64,
    /// Number of runs.
    pub n: u64,
}

impl Row {
    /// End of the last byte.
    fn end(&self) -> u64 {
        let far = self.stride.saturating_mul(self.n.saturating_sub(1));
        self.at.saturating_add(far).saturating_add(self.len)
    }
}

/// Memory of the library, kept alive by the buffers that point into it.
#[derive(Debug)]
pub struct Block {
    bytes: Box<[Byte]>,
}

/// A byte that other processes write at any time, and that may be uninitialised.
type Byte = UnsafeCell<MaybeUninit<u8>>;

// SAFETY: a Block is plain bytes; the protocols decide which side may touch them when (one owner of
// the lock at a time).
unsafe impl Send for Block {}
// SAFETY: the same holds for shared access.
unsafe impl Sync for Block {}

#[derive(Clone, Debug)]
enum Shape {
    /// `len` contiguous bytes.
    Contiguous,
    /// `count` elements of a layout, without the first `skip` bytes of packed data.
    Typed {
        layout: Arc<Layout>,
        count: u64,
        skip: u64,
    },
    /// Contiguous bytes at an address that is known only while they are held, without the first
    /// `skip`; the base is the address of a [`moving::Holder`].
    Moving { skip: u64 },
}

/// A message buffer: `len` bytes of packed data, wherever they lie in memory.
#[derive(Clone, Debug)]
pub struct Buf {
    base: usize,
    len: u64,
    shape: Shape,
    pub(crate) keep: Option<Arc<Block>>,
}

impl Buf {
    /// No bytes at all.
    pub const EMPTY: Buf = Buf {
        base: 0,
        len: 0,
        shape: Shape::Contiguous,
        keep: None,
    };

    /// `len` contiguous bytes at `addr`.
    #[inline]
    pub fn bytes(addr: Addr, len: u64) -> Buf {
        Buf {
            base: addr.0,
            len,
            shape: Shape::Contiguous,
            keep: None,
        }
    }

    /// `count` elements of `layout` at `addr`.
    #[inline]
    pub fn typed(addr: Addr, count: u64, layout: &Arc<Layout>) -> Buf {
        let len = layout.size() * count;
        match layout.contiguous(count) {
            Some(at) => Buf {
                base: addr.0.wrapping_add(at as usize),
                len,
                shape: Shape::Contiguous,
                keep: None,
            },
            None => Buf {
                base: addr.0,
                len,
                shape: Shape::Typed {
                    layout: layout.clone(),
                    count,
                    skip: 0,
                },
                keep: None,
            },
        }
    }

    /// Like [`Buf::typed`], for users that need the types of the data even if its bytes are
    /// contiguous (KW_CHECK).
    pub fn with_types(addr: Addr, count: u64, layout: &Arc<Layout>) -> Buf {
        Buf {
            base: addr.0,
            len: layout.size() * count,
            shape: Shape::Typed {
                layout: layout.clone(),
                count,
                skip: 0,
            },
            keep: None,
        }
    }

    /// Fresh memory of the library, zeroed, `len` bytes; freed with the last `Buf` that points into
    /// it.
    ///
    /// # Panics
    /// If there is not enough memory; [`Buf::try_alloc`] returns `None` instead.
    pub fn alloc(len: usize) -> Buf {
        // The caller of `alloc` asks for memory that it cannot do without.
        Buf::try_alloc(len).expect("memory for a buffer of the library's own")
    }

    /// Like [`Buf::alloc`]; `None` if there is not enough memory.
    pub fn try_alloc(len: usize) -> Option<Buf> {
        let buf = Buf::try_alloc_unwritten(len)?;
        // SAFETY: these are its bytes, and no other code knows of them yet.
        unsafe { std::ptr::write_bytes(buf.base as *mut u8, 0, len) };
        Some(buf)
    }

    /// Like [`Buf::try_alloc`], but uninitialised: bytes that are read before they are written have
    /// arbitrary values.
    fn try_alloc_unwritten(len: usize) -> Option<Buf> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        // SAFETY: there is room for `len` bytes of this kind, which may be uninitialised.
        unsafe { bytes.set_len(len) };
        let block = Arc::new(Block {
            bytes: bytes.into_boxed_slice(),
        });
        Some(Buf {
            base: block.bytes.as_ptr() as usize,
            len: len as u64,
            shape: Shape::Contiguous,
            keep: Some(block),
        })
    }

    /// A copy of the data in memory of its own, packed; `types`: those of the data are known
    /// ([`Buf::with_types`]), and are those of the copy, too.
    ///
    /// # Panics
    /// As [`Buf::alloc`].
    pub fn packed(&self, types: bool) -> Buf {
        let mut copy = Buf::alloc(self.len as usize);
        self.copy_to(0, &copy, 0, self.len);
        if let Shape::Typed {
            layout,
            count,
            skip: 0,
        } = &self.shape
            && types
            && self.len == layout.size() * count
            && let Ok(packed) = layout.packed(*count)
        {
            copy.shape = Shape::Typed {
                layout: Arc::new(packed),
                count: 1,
                skip: 0,
            };
        }
        copy
    }

    /// Bytes of packed data.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes' address, if they are contiguous.
    #[inline]
    pub fn contiguous(&self) -> Option<usize> {
        matches!(self.shape, Shape::Contiguous).then_some(self.base)
    }

    /// `count` elements of `layout` in these bytes, which are contiguous; displacement 0 of the
    /// first is byte `at`. The buffer keeps the same memory alive.
    ///
    /// # Panics
    /// If one of their bytes is outside (a fault of our own).
    pub fn typed_at(&self, at: i64, count: u64, layout: &Arc<Layout>) -> Buf {
        Buf {
            keep: self.keep.clone(),
            ..Buf::typed(Addr(self.origin(at, count, layout)), count, layout)
        }
    }

    /// The address of byte `at`, where displacement 0 of the first of `count` elements is.
    ///
    /// # Panics
    /// If a byte of the elements is outside of these bytes, which are contiguous.
    pub(crate) fn origin(&self, at: i64, count: u64, layout: &Layout) -> usize {
        let whole = self.contiguous().expect("memory of our own lies in a row");
        let far = layout.extent() as i128 * count.saturating_sub(1) as i128;
        let first = at as i128 + layout.true_lb() as i128 + far.min(0);
        let end = first + far.abs() + layout.true_extent() as i128;
        let inside = count == 0 || first >= 0 && end <= self.len as i128;
        assert!(inside, "bytes {first} to {end} of {}", self.len);
        whole.wrapping_add(at as usize)
    }

    /// Bytes `from..from+len` of the packed data, as a buffer that keeps the same memory alive.
    ///
    /// # Panics
    /// When the range lies outside the buffer (a fault of our own).
    pub fn slice(&self, from: u64, len: u64) -> Buf {
        assert!(from + len <= self.len, "slice {from}+{len} of {}", self.len);
        let (mut base, mut shape) = (self.base, self.shape.clone());
        match &mut shape {
            Shape::Contiguous => base = base.wrapping_add(from as usize),
            Shape::Typed { skip, .. } | Shape::Moving { skip } => *skip += from,
        }
        let keep = self.keep.clone();
        Buf {
            base,
            len,
            shape,
            keep,
        }
    }

    /// Calls `run(address, length)` for each run of memory holding bytes `from..from+len` of the
    /// packed data.
    ///
    /// # Panics
    /// If the memory moves and was not [fixed](Buf::fixed) (a fault of our own).
    #[inline]
    pub fn runs(&self, from: u64, len: u64, run: &mut dyn FnMut(usize, usize)) {
        let to = (from + len).min(self.len);
        if from >= to {
            return;
        }
        match &self.shape {
            Shape::Contiguous => run(self.base.wrapping_add(from as usize), (to - from) as usize),
            Shape::Typed {
                layout,
                count,
                skip,
            } => layout.for_each_run(*count, skip + from, skip + to, &mut |at, n| {
                run(self.base.wrapping_add(at as usize), n as usize)
            }),
            Shape::Moving { .. } => panic!("memory that moves has no address"),
        }
    }

    /// How many bytes of a range of `len` bytes at `from` exist.
    #[inline]
    pub(crate) fn within(&self, from: u64, len: u64) -> u64 {
        len.min(self.len.saturating_sub(from))
    }

    /// Packs bytes `from..` into `out`; returns how many there were.
    #[inline]
    pub fn read(&self, from: u64, out: &mut [u8]) -> usize {
        let n = self.within(from, out.len() as u64);
        // SAFETY: `out` is ours and has at least `n` bytes.
        unsafe { self.read_raw(from, n, out.as_mut_ptr()) };
        n as usize
    }

    /// Packs bytes `from..from+n`, which exist.
    ///
    /// # Safety
    /// `out` is valid for writing `n` bytes.
    #[inline]
    pub(crate) unsafe fn read_raw(&self, from: u64, n: u64, out: *mut u8) {
        // SAFETY: promised by the caller.
        unsafe { self.transfer::<true>(from, n, out as usize) }
    }

    /// Copies bytes `from..from+n`, which exist, to or from a packed stream.
    ///
    /// # Safety
    /// `stream` is valid for `n` bytes: for writing if it `PACKS`, else for reading.
    #[inline]
    unsafe fn transfer<const PACKS: bool>(&self, from: u64, n: u64, stream: usize) {
        if n == 0 {
            return;
        }
        match &self.shape {
            Shape::Contiguous => {
                let at = self.base.wrapping_add(from as usize);
                let (a, b) = if PACKS { (at, stream) } else { (stream, at) };
                // SAFETY: the bytes lie in memory promised by `Addr` or kept by `keep`, where the
                // protocol gives the lock's owner the only right to write; the caller promises
                // `stream`.
                unsafe { copy(a as *const u8, b as *mut u8, n as usize) }
            }
            Shape::Typed {
                layout,
                count,
                skip,
            } => {
                let from = skip + from;
                // SAFETY: the bytes lie in memory promised by `Addr` or kept by `keep`, and the
                // caller promises `stream`; the walk visits `n` bytes.
                let mut packer = unsafe { Packer::<PACKS>::new(self.base, stream) };
                layout.walk(*count, from, from + n, &mut packer);
            }
            // SAFETY: promised by the caller.
            Shape::Moving { .. } => unsafe { self.transfer_held::<PACKS>(from, n, stream) },
        }
    }

    /// Unpacks `data` to bytes `from..`; returns how many fitted. A byte of memory that the layout
    /// names more than once ends with one of the values written to it, not necessarily the last.
    #[inline]
    pub fn write(&self, from: u64, data: &[u8]) -> usize {
        let n = self.within(from, data.len() as u64);
        // SAFETY: `data` has at least `n` bytes.
        unsafe { self.write_raw(from, n, data.as_ptr()) };
        n as usize
    }

    /// Unpacks to bytes `from..from+n`, which exist.
    ///
    /// # Safety
    /// `data` is valid for reading `n` bytes.
    #[inline]
    pub(crate) unsafe fn write_raw(&self, from: u64, n: u64, data: *const u8) {
        // SAFETY: promised by the caller.
        unsafe { self.transfer::<false>(from, n, data as usize) }
    }

    /// Copies `len` bytes at `from` of this buffer to `at` of another (which may not overlap it),
    /// both packed; returns how many there were and fitted.
    pub fn copy_to(&self, from: u64, to: &Buf, at: u64, len: u64) -> u64 {
        let n = to.within(at, self.within(from, len));
        match (self.contiguous(), to.contiguous()) {
            (_, Some(p)) => {
                let out = p.wrapping_add(at as usize) as *mut u8;
                // SAFETY: `n` bytes of the other buffer, valid by its own promise.
                unsafe { self.read_raw(from, n, out) }
            }
            (Some(p), None) => {
                let data = p.wrapping_add(from as usize) as *const u8;
                // SAFETY: `n` bytes of this buffer, valid by its own promise.
                unsafe { to.write_raw(at, n, data) }
            }
            (None, None) => self.copy_through(from, to, at, n),
        }
        n
    }

    /// Copies `row.n` runs of this buffer, packed, to `at` of another, which may not overlap it.
    ///
    /// # Panics
    /// When a byte lies outside of either buffer (a fault of our own).
    pub fn copy_row_to(&self, row: Row, to: &Buf, at: u64) {
        let bytes = row.len.saturating_mul(row.n);
        let fits = row.end() <= self.len && at.saturating_add(bytes) <= to.len;
        assert!(fits, "{row:?} of {} to {at} of {}", self.len, to.len);
        let (Some(memory), Some(stream)) = (self.contiguous(), to.contiguous()) else {
            for i in 0..row.n {
                self.copy_to(row.at + i * row.stride, to, at + i * row.len, row.len);
            }
            return;
        };
        let stream = stream.wrapping_add(at as usize);
        // SAFETY: all runs and `bytes` bytes at `stream` lie in the buffers, as was just seen.
        let mut packer = unsafe { Packer::<true>::new(memory, stream) };
        packer.strided(row.at as i64, row.len, row.stride as i64, row.n);
    }

    /// The reverse of [`Buf::copy_row_to`]: bytes of another buffer, which may not overlap this one,
    /// from `at` on, to runs of this one.
    ///
    /// # Panics
    /// As there.
    pub fn copy_row_from(&self, row: Row, from: &Buf, at: u64) {
        let bytes = row.len.saturating_mul(row.n);
        let fits = row.end() <= self.len && at.saturating_add(bytes) <= from.len;
        assert!(fits, "{row:?} of {} from {at} of {}", self.len, from.len);
        let (Some(memory), Some(stream)) = (self.contiguous(), from.contiguous()) else {
            for i in 0..row.n {
                from.copy_to(at + i * row.len, self, row.at + i * row.stride, row.len);
            }
            return;
        };
        let stream = stream.wrapping_add(at as usize);
        // SAFETY: all runs and `bytes` bytes at `stream` lie in the buffers, as was just checked.
        let mut packer = unsafe { Packer::<false>::new(memory, stream) };
        packer.strided(row.at as i64, row.len, row.stride as i64, row.n);
    }

    /// Copies between two typed buffers, a little packed piece at a time.
    fn copy_through(&self, from: u64, to: &Buf, at: u64, n: u64) {
        let mut piece = [0u8; 8192];
        let mut done = 0;
        while done < n {
            let some = (n - done).min(piece.len() as u64) as usize;
            self.read(from + done, &mut piece[..some]);
            to.write(at + done, &piece[..some]);
            done += some as u64;
        }
    }
}

impl kw_proto::endpoint::Memory for Buf {
    #[inline]
    fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    fn region(&self) -> Option<RemoteRegion> {
        self.contiguous().map(|a| RemoteRegion::at(a as u64))
    }

    fn alloc(len: u64) -> Option<Buf> {
        Buf::try_alloc_unwritten(usize::try_from(len).ok()?)
    }

    #[inline]
    fn nothing() -> Buf {
        Buf::EMPTY
    }

    #[inline]
    fn write(&self, at: u64, data: &[u8]) {
        Buf::write(self, at, data);
    }

    fn copy_to(&self, to: &Buf, len: u64) {
        Buf::copy_to(self, 0, to, 0, len);
    }

    fn signature(&self) -> u32 {
        match &self.shape {
            Shape::Typed {
                layout,
                count,
                skip: 0,
            } => layout.signature().of_message(*count),
            _ => message::ANY,
        }
    }

    fn mismatch(&self, signature: u32, len: u64) -> Option<String> {
        match &self.shape {
            Shape::Typed {
                layout, skip: 0, ..
            } => layout.signature().mismatch(signature, len),
            _ => None,
        }
    }

    fn overlaps(&self, other: &Buf) -> bool {
        self.shares_memory(other)
    }
}

pub(crate) mod moving;
mod overlap;
#[cfg(test)]
mod tests;

pub use moving::{Fixed, HELD_BY_CALL, Pieces};
