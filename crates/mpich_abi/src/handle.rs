//! Handles: an `int` that contains its kind here, a pointer-sized value in the standard ABI.
//!
//! In an `int` of MPICH the two highest bits tell how the object is stored, the four below its
//! kind, and 26 are free for its place. A handle created at run time has `11` on top, then 4 bits
//! of the generation and 22 of the index of Kittiwake's handle ([`Key`]). The rest of that handle
//! is at this index in the table of the kind, from the time when it was returned. So a conversion
//! in either direction is one access to a table that is never searched, copied or locked, and a
//! freed handle is detected as in the library itself.

use kw_abi_shim::Key;
use kw_abi_shim::constants::MPI_FILE_NULL;
use kw_abi_shim::handle::{Kind, UNKNOWN};
use kw_base::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::ptr::null_mut;

const INDEX_BITS: u32 = 22;
const GENERATION_BITS: u32 = 4;
const KIND_SHIFT: u32 = 26;
/// Handles made at run time have these bits.
const MADE: u32 = 0b11 << 30;
/// Objects of a chunk of a table.
const CHUNK: usize = 4096;
const CHUNKS: usize = (1 << INDEX_BITS) / CHUNK;

/// The library's handles by their index.
struct Table {
    chunks: [AtomicPtr<[AtomicUsize; CHUNK]>; CHUNKS],
}

/// Conversion of an `int` that is not a handle of its kind.
#[cold]
fn unknown(value: u32) -> usize {
    UNKNOWN | value as usize
}

/// Index and lowest bits of the generation, in their positions in an `int`.
fn place(handle: usize) -> Option<u32> {
    let key = Key::from_bits(handle as u64);
    let generation = key.generation & ((1 << GENERATION_BITS) - 1);
    (key.index >> INDEX_BITS == 0).then_some(generation << INDEX_BITS | key.index)
}

impl Table {
    const fn new() -> Table {
        Table {
            chunks: [const { AtomicPtr::new(null_mut()) }; CHUNKS],
        }
    }

    #[inline(always)]
    fn get(&self, kind: u32, value: u32) -> usize {
        if value >> KIND_SHIFT != MADE >> KIND_SHIFT | kind {
            return unknown(value);
        }
        let index = (value & ((1 << INDEX_BITS) - 1)) as usize;
        // SYNC: handle chunk
        let chunk = self.chunks[index / CHUNK].load(Ordering::Acquire);
        if chunk.is_null() {
            return unknown(value);
        }
        // SAFETY: a chunk is complete when its pointer is visible, and is never freed.
        let cell = unsafe { &(*chunk)[index % CHUNK] };
        let handle = cell.load(Ordering::Relaxed);
        // entries have an index below 2^22, so their place is the sum of two fields
        let generation = (handle >> 32) as u32 & ((1 << GENERATION_BITS) - 1);
        let is_same = generation << INDEX_BITS | handle as u32 == value & ((1 << KIND_SHIFT) - 1);
        if handle == 0 || !is_same {
            return unknown(value);
        }
        handle
    }

    #[inline(always)]
    fn put(&self, kind: u32, handle: usize) -> u32 {
        if handle & UNKNOWN != 0 {
            return handle as u32;
        }
        let Some(place) = place(handle) else {
            too_many();
        };
        let index = (place & ((1 << INDEX_BITS) - 1)) as usize;
        // SYNC: handle chunk
        let mut chunk = self.chunks[index / CHUNK].load(Ordering::Acquire);
        if chunk.is_null() {
            chunk = self.grow(index / CHUNK);
        }
        // SAFETY: as above.
        let cell = unsafe { &(*chunk)[index % CHUNK] };
        cell.store(handle, Ordering::Relaxed);
        MADE | kind << KIND_SHIFT | place
    }

    #[cold]
    fn grow(&self, at: usize) -> *mut [AtomicUsize; CHUNK] {
        let new = Box::into_raw(Box::new([const { AtomicUsize::new(0) }; CHUNK]));
        // SYNC: handle chunk
        let set =
            self.chunks[at].compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        match set {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made above, and not yet visible to another thread.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        }
    }
}

#[cold]
fn too_many() -> ! {
    eprintln!(
        "process {}: more than {} objects of a kind live at once, which is more than libmpi.so.12 has handles for",
        std::process::id(),
        1u32 << INDEX_BITS
    );
    std::process::abort()
}

/// Makes kinds: name, null handle of this ABI and of the standard one, and the function for the
/// predefined handles.
macro_rules! kinds {
    ($name:ident $theirs:literal $null:literal $known:ident) => {
        #[doc = concat!("Handles of this kind: ", stringify!($name), ".")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Kind for $name {
            type Value = i32;
            const NULL: usize = $null;

            #[inline(always)]
            fn to_standard(value: i32) -> usize {
                match $known(value as u32) {
                    0 => Self::table().get(Self::NUMBER, value as u32),
                    predefined => predefined,
                }
            }

            #[inline(always)]
            fn of_standard(handle: usize) -> i32 {
                let value = match PREDEFINED.get(handle) {
                    Some(predefined) => *predefined,
                    None => Self::table().put(Self::NUMBER, handle),
                };
                value as i32
            }
        }

        impl $name {
            const NUMBER: u32 = $theirs >> KIND_SHIFT & 0xf;

            #[inline(always)]
            fn table() -> &'static Table {
                static TABLE: Table = Table::new();
                &TABLE
            }
        }
    };
}

#[allow(missing_docs, clippy::all)]
mod predefined {
    //! The predefined handles, and a type for each kind (generated).
    use super::{KIND_SHIFT, Kind, Table};
    include!(concat!(env!("OUT_DIR"), "/predefined.rs"));
}
pub use predefined::*;

/// Files: a pointer. Null is not a file; others are the library's own handles.
#[derive(Clone, Copy, Debug)]
pub struct File;

impl Kind for File {
    type Value = usize;
    const NULL: usize = MPI_FILE_NULL;

    fn to_standard(value: usize) -> usize {
        if value == 0 { Self::NULL } else { value }
    }

    fn of_standard(handle: usize) -> usize {
        if handle == Self::NULL { 0 } else { handle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLD: i32 = 0x4400_0000;

    #[test]
    fn predefined_handles_are_those_of_the_table() {
        assert_eq!(Comm::to_standard(WORLD), 0x101);
        assert_eq!(Comm::of_standard(0x101), WORLD);
        assert_eq!(Datatype::to_standard(0x4c00_0405), 0x209);
        assert_eq!(Datatype::to_standard(0x8c00_0004u32 as i32), 0x22d);
        assert_eq!(Datatype::of_standard(0x209), 0x4c00_0405);
        assert_eq!(Request::to_standard(0x2c00_0000), 0x180);
        assert_eq!(Message::to_standard(0x2c00_0000), 0x128);
        assert_eq!(File::of_standard(0x118), 0);
    }

    #[test]
    fn a_handle_made_at_run_time_comes_back_whole() {
        for (index, generation) in [(0usize, 0usize), (1, 5), (4096, 0xff_ffff), (4_000_000, 17)] {
            let handle = 5 << 56 | generation << 32 | index;
            let value = Request::of_standard(handle);
            assert_eq!(Request::to_standard(value), handle);
            assert_eq!(value as u32 >> 26 & 0xf, 0xb, "a request, by its bits");
            // another kind, and another generation
            assert!(Comm::to_standard(value) >> 63 == 1);
            assert!(Request::to_standard(value ^ 1 << 22) >> 63 == 1);
        }
    }

    #[test]
    fn what_is_no_handle_names_nothing() {
        for value in [0, 1, 5, 0x101, -1, 0x4400_0002, 0x7fff_ffff, i32::MIN] {
            assert!(Comm::to_standard(value) >> 63 == 1, "{value:#x}");
            let foreign = Datatype::to_standard(value);
            assert!(foreign >> 63 == 1, "{value:#x}");
            assert_eq!(
                Datatype::of_standard(foreign),
                value,
                "it stays what it was"
            );
        }
    }
}
