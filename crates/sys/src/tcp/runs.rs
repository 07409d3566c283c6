//! Pieces of memory that one system call gathers or scatters.

use crate::buf::Buf;
use std::mem::MaybeUninit;

/// Most pieces of memory that one system call gathers or scatters.
const MAX_RUNS: usize = 64;
/// How much of a buffer in pieces one system call covers.
const RUN_WINDOW: u64 = 256 << 10;
/// How much of a buffer in pieces is examined to judge the rest.
const PROBE: u64 = 16 << 10;
/// Pieces shorter than this on average are packed: the kernel's work for a piece exceeds a copy.
const SMALL_RUN: u64 = 512;

/// Pieces of memory for one system call, on the stack.
pub struct Runs {
    list: [MaybeUninit<libc::iovec>; MAX_RUNS + 2],
    len: usize,
    bytes: usize,
}

impl Runs {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no room for pieces between pieces of a buffer.
    pub fn is_full(&self) -> bool {
        self.len >= MAX_RUNS
    }

    /// None.
    pub fn new() -> Runs {
        Runs {
            list: [const { MaybeUninit::uninit() }; MAX_RUNS + 2],
            len: 0,
            bytes: 0,
        }
    }

    /// Adds a piece.
    pub fn push(&mut self, at: usize, len: usize) {
        self.list[self.len].write(libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: len,
        });
        self.len += 1;
        self.bytes += len;
    }

    /// Adds a range of a buffer; for one that is in pieces only as much as there is room for.
    /// `false`, and nothing added, if the pieces are so small that copying is cheaper.
    pub fn gather(&mut self, buf: &Buf, from: u64, len: u64) -> bool {
        if let Some(base) = buf.contiguous() {
            self.push(base.wrapping_add(from as usize), fits(buf, from, len));
            return true;
        }
        let mut pieces = 0;
        let probe = len.min(PROBE);
        buf.runs(from, probe, &mut |_, _| pieces += 1);
        if probe / pieces.max(1) < SMALL_RUN {
            return false;
        }
        let room = self.len + MAX_RUNS;
        buf.runs(from, len.min(RUN_WINDOW), &mut |p, n| {
            if self.len < room {
                self.push(p, n);
            }
        });
        true
    }

    /// The list in the kernel's form.
    pub fn as_mut_ptr(&mut self) -> *mut libc::iovec {
        self.list.as_mut_ptr().cast()
    }
}

/// How many of `len` bytes at `at` a buffer has.
pub fn fits(buf: &Buf, at: u64, len: u64) -> usize {
    len.min(buf.len().saturating_sub(at)) as usize
}
