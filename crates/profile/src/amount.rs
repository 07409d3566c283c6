//! The bytes that a call transfers: a number of elements times the size of their datatype.
//!
//! These functions are called after a successful call. Arguments that the call did not examine (the
//! datatype of no elements, for instance) are not examined here either: MPI would call its error
//! handler.

use crate::next::{Asked, asked};
use crate::record::size_of;
use kw_base::sync::atomic::{AtomicU64, Ordering};

/// Number of freed datatypes: a known handle may belong to a new datatype.
static FREED: AtomicU64 = AtomicU64::new(1);

/// Notes that a datatype was freed.
pub(crate) fn type_freed() {
    // SYNC: a thread that uses the handle again has been synchronised by other means.
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// Sizes of datatypes that a thread has seen.
#[derive(Default)]
pub(crate) struct Sizes {
    seen: [(usize, u64, u64); 16],
}

impl Sizes {
    #[inline(always)]
    pub(crate) fn of(&mut self, datatype: usize) -> u64 {
        let now = FREED.load(Ordering::Relaxed);
        // handles are small numbers or addresses
        let place = (datatype ^ datatype >> 4) & 15;
        let (known, then, size) = self.seen[place];
        if known == datatype && then == now {
            return size;
        }
        let size = ask_size(datatype);
        self.seen[place] = (datatype, now, size);
        size
    }
}

#[cold]
fn ask_size(datatype: usize) -> u64 {
    let mut size = 0;
    // SAFETY: the call that has just ended has accepted the datatype.
    match asked().map(|a| unsafe { (a.type_size)(datatype, &mut size) }) {
        Some(0) => size.max(0) as u64,
        _ => 0,
    }
}

/// Whether the data are in the buffer of the result: MPI_IN_PLACE is 1 or -1, depending on the ABI.
#[inline(always)]
pub(crate) fn in_place(buffer: usize) -> bool {
    buffer == 1 || buffer == usize::MAX
}

/// This many elements.
#[inline(always)]
pub(crate) fn of(count: i64, datatype: usize) -> u64 {
    if count <= 0 {
        return 0;
    }
    size_of(datatype).saturating_mul(count as u64)
}

fn int(f: unsafe extern "C-unwind" fn(usize, *mut i32) -> i32, comm: usize) -> usize {
    let mut answer = 0;
    // SAFETY: the call that has just ended has accepted the communicator.
    match unsafe { f(comm, &mut answer) } {
        0 => answer.max(0) as usize,
        _ => 0,
    }
}

/// Number of processes to which a collective call gives data.
fn others(asked: &Asked, comm: usize) -> usize {
    match int(asked.is_inter, comm) {
        0 => int(asked.size, comm),
        _ => int(asked.remote_size, comm),
    }
}

/// This many elements for each process.
pub(crate) fn for_each(count: i64, datatype: usize, comm: usize) -> u64 {
    let processes = asked().map_or(0, |a| others(a, comm)) as u64;
    of(count, datatype).saturating_mul(processes)
}

/// An element of an array of counts.
///
/// # Safety
/// The array has this element.
unsafe fn count(counts: usize, wide: bool, at: usize) -> i64 {
    // SAFETY: the caller's promise.
    unsafe {
        match wide {
            true => (counts as *const i64).add(at).read(),
            false => (counts as *const i32).add(at).read().into(),
        }
    }
}

/// A separate number of elements for each process.
pub(crate) fn sum(counts: usize, wide: bool, datatype: usize, comm: usize) -> u64 {
    let processes = asked().map_or(0, |a| others(a, comm));
    // SAFETY: the call has read one count for each process.
    let all = (0..processes).map(|at| unsafe { count(counts, wide, at) });
    of(all.fold(0, i64::saturating_add), datatype)
}

/// A separate number of elements and datatype for each process.
pub(crate) fn sum_of_types(counts: usize, wide: bool, datatypes: usize, comm: usize) -> u64 {
    let Some(asked) = asked() else { return 0 };
    let each = (0..others(asked, comm)).map(|at| {
        // SAFETY: the call has read one count and one datatype for each process.
        unsafe {
            let datatype = match asked.handle {
                4 => (datatypes as *const u32).add(at).read() as usize,
                _ => (datatypes as *const usize).add(at).read(),
            };
            of(count(counts, wide, at), datatype)
        }
    });
    each.fold(0, u64::saturating_add)
}

/// This process's share of a number of elements for each.
pub(crate) fn own(counts: usize, wide: bool, datatype: usize, comm: usize) -> u64 {
    let Some(asked) = asked() else { return 0 };
    let rank = int(asked.rank, comm);
    // SAFETY: the call has read one count for each process.
    of(unsafe { count(counts, wide, rank) }, datatype)
}
