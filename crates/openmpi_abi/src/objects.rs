//! The predefined objects: symbols whose addresses are the handles, and the values of these
//! addresses.
//!
//! A program that was not compiled as position-independent has a copy of each object that it names:
//! the dynamic linker reserves as many bytes as the symbol has here, and the copy's address becomes
//! that of the symbol for all libraries. So addresses are obtained through the dynamic linker (each
//! object is a symbol that others may define, and [`OBJECTS`] has a relocation for it), and sizes
//! are those of the original. The contents are never read.

use kw_abi_shim::Address;
use kw_base::sync::atomic::{AtomicUsize, Ordering};
use std::cell::UnsafeCell;
use std::ffi::c_int;

/// An object behind a symbol.
#[derive(Debug)]
#[repr(C, align(32))]
pub struct Object<const SIZE: usize>(UnsafeCell<[u8; SIZE]>);
// SAFETY: it is never read or written.
unsafe impl<const SIZE: usize> Sync for Object<SIZE> {}

macro_rules! objects {
    ($($name:ident $size:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub static $name: Object<$size> = Object(UnsafeCell::new([0; $size]));
    )*};
}

macro_rules! kinds {
    ($name:ident $null:literal $of_integer:ident) => {
        impl crate::handle::Fortran for crate::handle::$name {
            const NULL: usize = $null;

            fn of_integer(v: c_int) -> usize {
                $of_integer(v)
            }
        }
    };
}

#[allow(missing_docs, non_upper_case_globals, clippy::all)]
mod generated {
    use super::*;
    include!(concat!(env!("OUT_DIR"), "/predefined.rs"));
}
pub use generated::*;

/// Objects are at least as large as this, so no two of them begin in the same piece of memory of this size.
const GRAIN: usize = 256;
const CELLS: usize = 1024;
/// A cell: the address in the lower bits, the standard handle above.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: usize = (1 << ADDRESS_BITS) - 1;
/// Standard handles below this are constants.
const CONSTANTS: usize = INTEGERS.len();

/// Standard handles by addresses: a handle is in the first free cell from its place on.
static HANDLES: [AtomicUsize; CELLS] = [const { AtomicUsize::new(0) }; CELLS];
/// Addresses by standard handles.
static ADDRESSES: [AtomicUsize; CONSTANTS] = [const { AtomicUsize::new(0) }; CONSTANTS];

/// Called when the library is loaded, before any other function of it.
extern "C" fn fill() {
    for (handle, address) in &OBJECTS {
        let address = address.number();
        ADDRESSES[*handle].store(address, Ordering::Relaxed);
        let mut at = address / GRAIN % CELLS;
        while HANDLES[at].load(Ordering::Relaxed) != 0 {
            at = (at + 1) % CELLS;
        }
        HANDLES[at].store(address | handle << ADDRESS_BITS, Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static FILL: extern "C" fn() = fill;

/// The standard handle of an object; none if the address is not that of an object.
#[inline(always)]
pub fn handle_at(address: usize) -> Option<usize> {
    let mut at = address / GRAIN % CELLS;
    loop {
        let cell = HANDLES[at].load(Ordering::Relaxed);
        if cell & ADDRESS == address {
            return (address != 0).then_some(cell >> ADDRESS_BITS);
        }
        if cell == 0 {
            return None;
        }
        at = (at + 1) % CELLS;
    }
}

/// The address of a predefined standard handle; 0 if this ABI has no object for it, and none if the
/// handle is not predefined.
#[inline(always)]
pub fn address_of(handle: usize) -> Option<usize> {
    Some(ADDRESSES.get(handle)?.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_known_by_its_address() {
        for (handle, address) in &OBJECTS {
            assert_eq!(handle_at(address.number()), Some(*handle));
            assert_eq!(handle_at(address.number() + 8), None);
            let last = OBJECTS.iter().rev().find(|o| o.0 == *handle);
            assert_eq!(address_of(*handle), last.map(|o| o.1.number()));
        }
        assert_eq!(handle_at(0), None);
        assert_eq!(address_of(CONSTANTS), None);
    }
}
