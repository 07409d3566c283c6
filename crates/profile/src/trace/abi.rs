//! Differences between the three ABIs that matter for a trace: offsets of the fields of a status,
//! and the values of a few constants (MPI 5.0, chapter 20; `api/abi`).

use std::ffi::c_int;

use crate::next;
use kw_start::trace::ABSENT;

/// Bytes of the largest status of all.
pub(super) const STATUS: usize = 32;

/// An ABI.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abi {
    /// Bytes of a handle.
    pub handle: usize,
    pub status: Status,
    any_source: c_int,
    any_tag: c_int,
    proc_null: c_int,
    /// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
    pub ignore: usize,
    pub world: usize,
    pub this: usize,
    pub null: usize,
    /// MPI_THREAD_MULTIPLE.
    multiple: c_int,
    /// MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED.
    locks: [c_int; 2],
    /// MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH.
    pub topologies: [c_int; 3],
    /// The bits of a word that hold a handle.
    mask: usize,
}

/// Layout of a status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub bytes: usize,
    source: usize,
    tag: usize,
    count: Count,
}

/// Where a status has the number of bytes and the cancelled flag.
#[derive(Clone, Copy, Debug)]
enum Count {
    /// Two ints at 12, low and high; the flag is bit 0 of the int at 20.
    Standard,
    /// Two ints at 0, low and high; the flag is bit 0 of the second.
    Mpich,
    /// A word at 16; the flag is an int at 12.
    OpenMpi,
}

/// Contents of a status.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    /// The rank in the communicator.
    pub source: c_int,
    pub tag: c_int,
    pub bytes: u64,
    pub cancelled: bool,
}

const STANDARD: Abi = Abi {
    handle: 8,
    status: Status {
        bytes: 32,
        source: 0,
        tag: 4,
        count: Count::Standard,
    },
    any_source: -1,
    any_tag: -2,
    proc_null: -3,
    ignore: 0,
    world: 0x101,
    this: 0x102,
    null: 0x100,
    multiple: 4096,
    locks: [301, 302],
    topologies: [211, 212, 213],
    mask: usize::MAX,
};

const MPICH: Abi = Abi {
    handle: 4,
    status: Status {
        bytes: 20,
        source: 8,
        tag: 12,
        count: Count::Mpich,
    },
    any_source: -2,
    any_tag: -1,
    proc_null: -1,
    ignore: 1,
    world: 0x4400_0000,
    this: 0x4400_0001,
    null: 0x0400_0000,
    multiple: 3,
    locks: [234, 235],
    topologies: [2, 1, 3],
    mask: u32::MAX as usize,
};

/// An ABI without the addresses of its handles.
const OPEN_MPI: Abi = Abi {
    handle: 8,
    status: Status {
        bytes: 24,
        source: 0,
        tag: 4,
        count: Count::OpenMpi,
    },
    any_source: -1,
    any_tag: -1,
    proc_null: -2,
    ignore: 0,
    world: 0,
    this: 0,
    null: 0,
    multiple: 3,
    locks: [1, 2],
    topologies: [1, 2, 3],
    mask: usize::MAX,
};

impl Abi {
    /// The ABI of the library in use.
    pub fn of(library: &str) -> Abi {
        let file = library.rsplit('/').next().unwrap_or(library);
        match file {
            f if f.starts_with("libmpi.so.12") => MPICH,
            f if f.starts_with("libmpi.so.40") => Abi {
                world: next::object(c"ompi_mpi_comm_world"),
                this: next::object(c"ompi_mpi_comm_self"),
                null: next::object(c"ompi_mpi_comm_null"),
                ..OPEN_MPI
            },
            _ => STANDARD,
        }
    }

    /// The handle in a word: the upper half of the word of an int is undefined.
    #[inline(always)]
    pub fn handle(&self, word: usize) -> usize {
        word & self.mask
    }

    /// Whether threads may call MPI at the same time; MPI has been initialised.
    pub fn calls_at_once(&self) -> bool {
        let ask = next::find(c"PMPI_Query_thread");
        if ask == 0 {
            return true;
        }
        let mut provided = self.multiple;
        // SAFETY: the function of this name has this parameter in every ABI.
        unsafe {
            let ask: unsafe extern "C-unwind" fn(*mut c_int) -> c_int = std::mem::transmute(ask);
            ask(&mut provided) != 0 || provided == self.multiple
        }
    }

    /// The handle at an index of an array; 0 without an array.
    ///
    /// # Safety
    /// The array is null or has this element.
    #[inline(always)]
    pub unsafe fn handle_at(&self, array: usize, at: usize) -> usize {
        if array == 0 {
            return 0;
        }
        // SAFETY: the caller's promise.
        unsafe {
            match self.handle {
                4 => (array as *const u32).add(at).read_unaligned() as usize,
                _ => (array as *const usize).add(at).read_unaligned(),
            }
        }
    }

    /// A tag of a receive: -1 is any.
    #[inline(always)]
    pub fn tag(&self, tag: c_int) -> c_int {
        match tag == self.any_tag {
            true => kw_start::trace::ANY,
            false => tag,
        }
    }

    /// A type of lock of a window, as a record has it; 0 is none.
    #[inline(always)]
    pub fn lock(&self, lock: c_int) -> i32 {
        match self.locks {
            [exclusive, _] if lock == exclusive => kw_start::trace::EXCLUSIVE,
            [_, shared] if lock == shared => kw_start::trace::SHARES,
            _ => 0,
        }
    }

    #[inline(always)]
    pub fn is_any_source(&self, rank: c_int) -> bool {
        rank == self.any_source
    }

    #[inline(always)]
    pub fn is_nobody(&self, rank: c_int) -> bool {
        rank == self.proc_null || rank == ABSENT
    }

    /// Contents of a status.
    ///
    /// # Safety
    /// MPI has written a status there.
    #[inline(always)]
    pub unsafe fn received(&self, status: usize) -> Received {
        // SAFETY: all offsets lie inside a status of this ABI.
        unsafe {
            let int = |at: usize| ((status + at) as *const c_int).read_unaligned();
            let word = |at: usize| u64::from(int(at) as u32);
            let (bytes, cancelled) = match self.status.count {
                Count::Standard => (word(12) | word(16) << 32, int(20) & 1 != 0),
                Count::Mpich => (word(0) | (word(4) >> 1) << 32, int(4) & 1 != 0),
                Count::OpenMpi => (word(16) | word(20) << 32, int(12) != 0),
            };
            Received {
                source: int(self.status.source),
                tag: int(self.status.tag),
                bytes,
                cancelled,
            }
        }
    }
}

#[cfg(test)]
mod tests;
