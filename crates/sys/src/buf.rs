//! Message buffers: memory a caller of MPI lent us, or memory of our own, with the layout of the data in it.
//!
//! A [`Buf`] is made from an [`Addr`], and an `Addr` is the promise of whoever made it (the C shells, or ourselves for
//! memory we own) that the bytes which the datatype describes stay valid until the operation completes. Everything
//! after that is safe code.

use kw_core::layout::Layout;
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
    /// Memory described by this address together with the count and datatype it is used with must be valid, for reading
    /// or writing as the operation does, until that operation is complete (MPI 5.0, 2.4 and 3.7).
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

    /// The address `by` bytes further on; the promise covers the whole buffer.
    #[inline]
    pub fn offset(self, by: i64) -> Addr {
        Addr(self.0.wrapping_add(by as usize))
    }
}

/// Memory of our own, kept alive by the buffers that point into it.
#[derive(Debug)]
pub struct Block {
    bytes: Box<[std::cell::UnsafeCell<u8>]>,
}

// SAFETY: a Block is plain bytes; who may touch them when is decided by the protocols (one owner of the lane at a time).
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

#[derive(Clone, Debug)]
enum Shape {
    /// `len` bytes in a row.
    Contiguous,
    /// `count` elements of a layout.
    Typed { layout: Arc<Layout>, count: u64 },
}

/// A message buffer: `len` bytes of packed data, wherever they lie in memory.
#[derive(Clone, Debug)]
pub struct Buf {
    base: usize,
    len: u64,
    shape: Shape,
    keep: Option<Arc<Block>>,
}

impl Buf {
    /// No bytes at all.
    pub const EMPTY: Buf = Buf {
        base: 0,
        len: 0,
        shape: Shape::Contiguous,
        keep: None,
    };

    /// `len` bytes in a row at `addr`.
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
                },
                keep: None,
            },
        }
    }

    /// Fresh memory of our own, zeroed, `len` bytes; freed with the last `Buf` that points into it.
    pub fn alloc(len: usize) -> Buf {
        let bytes: Box<[u8]> = vec![0u8; len].into_boxed_slice();
        // SAFETY: UnsafeCell<u8> has the layout of u8, and the box is unique.
        let bytes =
            unsafe { Box::from_raw(Box::into_raw(bytes) as *mut [std::cell::UnsafeCell<u8>]) };
        let block = Arc::new(Block { bytes });
        Buf {
            base: block.bytes.as_ptr() as usize,
            len: len as u64,
            shape: Shape::Contiguous,
            keep: Some(block),
        }
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

    /// The bytes' address, when they lie in a row.
    #[inline]
    pub fn contiguous(&self) -> Option<usize> {
        matches!(self.shape, Shape::Contiguous).then_some(self.base)
    }

    /// An address for memory of our own (only for buffers made by [`Buf::alloc`] and slices of them).
    pub fn addr(&self) -> Addr {
        Addr(self.base)
    }

    /// Bytes `from..from+len` of a contiguous buffer, as a buffer that keeps the same memory alive.
    ///
    /// # Panics
    /// When the buffer is not contiguous or the range lies outside it (a fault of our own).
    pub fn slice(&self, from: u64, len: u64) -> Buf {
        assert!(
            self.contiguous().is_some() && from + len <= self.len,
            "slice {from}+{len} of {}",
            self.len
        );
        Buf {
            base: self.base.wrapping_add(from as usize),
            len,
            shape: Shape::Contiguous,
            keep: self.keep.clone(),
        }
    }

    /// Calls `run(address, length)` for each run of memory holding bytes `from..from+len` of the packed data.
    #[inline]
    pub fn runs(&self, from: u64, len: u64, run: &mut dyn FnMut(usize, usize)) {
        let to = (from + len).min(self.len);
        if from >= to {
            return;
        }
        match &self.shape {
            Shape::Contiguous => run(self.base.wrapping_add(from as usize), (to - from) as usize),
            Shape::Typed { layout, count } => {
                layout.for_each_run(*count, from, to, &mut |at, n| {
                    run(self.base.wrapping_add(at as usize), n as usize)
                })
            }
        }
    }

    /// Packs bytes `from..` into `out`; returns how many there were.
    #[inline]
    pub fn read(&self, from: u64, out: &mut [u8]) -> usize {
        let mut done = 0;
        self.runs(from, out.len() as u64, &mut |p, n| {
            // SAFETY: the run lies in memory promised by `Addr` or kept by `keep`; `out` is ours and long enough.
            unsafe {
                std::ptr::copy_nonoverlapping(p as *const u8, out[done..done + n].as_mut_ptr(), n)
            };
            done += n;
        });
        done
    }

    /// Unpacks `data` to bytes `from..`; returns how many fitted.
    #[inline]
    pub fn write(&self, from: u64, data: &[u8]) -> usize {
        let mut done = 0;
        self.runs(from, data.len() as u64, &mut |p, n| {
            // SAFETY: as in `read`, and the protocol gives the lane's owner the only right to write here.
            unsafe {
                std::ptr::copy_nonoverlapping(data[done..done + n].as_ptr(), p as *mut u8, n)
            };
            done += n;
        });
        done
    }

    /// Copies bytes from this buffer to another (which may not overlap it), both packed; returns how many.
    pub fn copy_to(&self, from: u64, to: &Buf, at: u64, len: u64) -> u64 {
        let mut done = 0;
        self.runs(from, len, &mut |p, n| {
            // SAFETY: the run is valid for reading as above; the slice does not outlive the call.
            let piece = unsafe { std::slice::from_raw_parts(p as *const u8, n) };
            done += to.write(at + done, piece) as u64;
        });
        done
    }
}
