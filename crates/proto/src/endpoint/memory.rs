//! Message buffers as the protocols see them: they never touch the user's memory themselves.

use crate::wire::RemoteRegion;

/// A message buffer as the protocols see it: a length, an optional address, and copying.
pub trait Memory: Clone {
    /// Bytes of packed data.
    fn len(&self) -> u64;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Memory from which a peer may read the bytes, if they are contiguous.
    fn region(&self) -> Option<RemoteRegion>;
    /// Fresh memory of the library, to be written before it is read; `None` if there is not enough.
    fn alloc(len: u64) -> Option<Self>;
    /// A buffer of no bytes.
    fn nothing() -> Self;
    /// Writes `data` from byte `at` on, as far as it fits.
    fn write(&self, at: u64, data: &[u8]);
    /// Copies the first `len` bytes to another buffer.
    fn copy_to(&self, to: &Self, len: u64);
    /// Type signature of the data (KW_CHECK); 0: it is not known.
    fn signature(&self) -> u32 {
        0
    }
    /// The mismatch, if any, between a message of `len` bytes with this signature and this receive
    /// buffer.
    fn mismatch(&self, _signature: u32, _len: u64) -> Option<String> {
        None
    }
    /// Whether bytes of this and of the other buffer are the same memory.
    fn overlaps(&self, _other: &Self) -> bool {
        false
    }
}

/// For tests that do not check payload.
#[cfg(test)]
impl Memory for () {
    fn len(&self) -> u64 {
        0
    }
    fn region(&self) -> Option<RemoteRegion> {
        None
    }
    fn alloc(_len: u64) -> Option<()> {
        Some(())
    }
    fn nothing() {}
    fn write(&self, _at: u64, _data: &[u8]) {}
    fn copy_to(&self, _to: &(), _len: u64) {}
}
