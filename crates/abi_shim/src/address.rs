//! Addresses in memory that is never written.

/// An address that the dynamic linker fills in when it loads the library.
#[derive(Debug)]
#[repr(transparent)]
pub struct Address(*const ());
// SAFETY: an address, which is never written, nor is the memory behind it.
unsafe impl Sync for Address {}

impl Address {
    /// The address of this object.
    pub const fn of<T>(at: *const T) -> Address {
        Address(at.cast())
    }

    /// The address as a number.
    pub fn number(&self) -> usize {
        self.0 as usize
    }
}
