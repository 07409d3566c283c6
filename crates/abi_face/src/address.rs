//! Addresses in memory that is never written.

/// An address that the dynamic linker fills in when it loads the library.
#[derive(Debug)]
#[repr(transparent)]
pub struct Address(*const ());
// SAFETY: an address, which nobody writes, nor what is there by it.
unsafe impl Sync for Address {}

impl Address {
    /// Of what stands there.
    pub const fn of<T>(at: *const T) -> Address {
        Address(at.cast())
    }

    /// As a number.
    pub fn number(&self) -> usize {
        self.0 as usize
    }
}
