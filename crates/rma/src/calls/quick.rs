//! Quick paths of ordinary operations, without the lock of the library.
//!
//! The data is a contiguous range of bytes of a predefined datatype, the target's memory is
//! directly accessible, and the epoch is open. All other calls, those with wrong arguments
//! included, are left to the ordinary path, which starts from the beginning and reports errors;
//! this path has no effect then.

use super::access::{LocalElements, TargetElements, compares};
use crate::window::on;
use kw_base::sync::atomic::{self, Ordering};
use kw_engine::windows::{LockMode, Reachable};
use kw_objects::error::Res;
use kw_objects::handle::{CommH, OpH, TypeH, WinH};
use kw_objects::state::Mpi;
use kw_sys::buf::Addr;
use kw_sys::reduce::Op;
use kw_sys::region::Region;
use kw_types::layout::{Basic, basic};

/// Bytes of elements of a predefined datatype without padding.
#[inline(always)]
fn row_len(count: i64, datatype: TypeH) -> Option<u64> {
    let size = basic::plain_size(datatype.0)?;
    u64::try_from(count).ok()?.checked_mul(size)
}

impl LocalElements {
    /// The contiguous bytes of these elements.
    #[inline(always)]
    fn row(&self) -> Option<Region<'static>> {
        let len = row_len(self.count, self.datatype)?;
        let there = self.addr != Addr::NULL && !self.addr.is_in_place();
        there.then(|| Region::assume_lent(self.addr, len))
    }
}

impl TargetElements {
    #[inline(always)]
    fn row_len(&self) -> Option<u64> {
        row_len(self.count, self.datatype)
    }
}

/// MPI_Put
#[inline(always)]
pub fn put(
    mpi: &Mpi,
    win: WinH,
    from: &LocalElements,
    rank: i32,
    there: &TargetElements,
) -> Option<()> {
    let reachable = mpi.reachable.get(win.0)?;
    reachable.put(from.row()?, (rank, there.disp), there.row_len()?)
}

/// MPI_Get
#[inline(always)]
pub fn get(
    mpi: &Mpi,
    win: WinH,
    into: &LocalElements,
    rank: i32,
    there: &TargetElements,
) -> Option<()> {
    let reachable = mpi.reachable.get(win.0)?;
    reachable.get(into.row()?, (rank, there.disp), there.row_len()?)
}

/// An accumulate of elements of one datatype; the old value is written `into` memory other than its
/// operand's. `op` must not be MPI_NO_OP if there is no `into`.
#[inline(always)]
pub fn accumulate(
    mpi: &Mpi,
    win: WinH,
    (from, into): (&LocalElements, Option<&LocalElements>),
    rank: i32,
    there: &TargetElements,
    op: OpH,
) -> Option<()> {
    let reachable = mpi.reachable.get(win.0)?;
    let op = Op::by_handle(op.0)?;
    let len = there.row_len()?;
    let alike = |side: &LocalElements| side.datatype == there.datatype && side.count == there.count;
    let result = match into {
        Some(into) if alike(into) => Some(into.row()?),
        None if op != Op::NoOp => None,
        _ => return None,
    };
    let operand = match op {
        Op::NoOp => Region::EMPTY,
        _ if alike(from) => from.row()?,
        _ => return None,
    };
    let apart = into.is_none_or(|into| into.addr != from.addr);
    if !apart {
        return None;
    }
    let basic = basic::by_handle(there.datatype.0)?.basic;
    reachable.combine((op, basic), operand, result, (rank, there.disp), len)
}

/// MPI_Compare_and_swap
#[inline(always)]
pub fn compare_and_swap(
    mpi: &Mpi,
    win: WinH,
    (from, with, into): (&LocalElements, &LocalElements, &LocalElements),
    rank: i32,
    disp: i64,
) -> Option<()> {
    let reachable = mpi.reachable.get(win.0)?;
    let (new, old, result) = (from.row()?, with.row()?, into.row()?);
    let apart = from.addr != into.addr && with.addr != into.addr;
    let basic: Basic = basic::by_handle(into.datatype.0)?.basic;
    if !apart || !compares(basic) {
        return None;
    }
    let (values, at) = ((new, old), (rank, disp));
    match result.len() {
        1 => swap::<1>(reachable, values, result, at),
        2 => swap::<2>(reachable, values, result, at),
        4 => swap::<4>(reachable, values, result, at),
        8 => swap::<8>(reachable, values, result, at),
        16 => swap::<16>(reachable, values, result, at),
        _ => None,
    }
}

/// The compare-and-swap of an element with this many bytes.
#[inline(always)]
fn swap<const N: usize>(
    reachable: &Reachable,
    (new, old): (Region<'_>, Region<'_>),
    result: Region<'_>,
    at: (i32, i64),
) -> Option<()> {
    let (mut swap, mut compare) = ([0; N], [0; N]);
    new.read(&mut swap);
    old.read(&mut compare);
    reachable.compare_and_swap((compare, swap), result, at)
}

/// MPI_Win_flush of a rank, or MPI_Win_flush_all.
#[inline(always)]
pub fn flush(mpi: &Mpi, win: WinH, rank: Option<i32>) -> Option<()> {
    mpi.reachable.get(win.0)?.flush(rank)?;
    atomic::fence(Ordering::SeqCst);
    Some(())
}

/// MPI_Win_flush_local of a rank, or MPI_Win_flush_local_all.
#[inline(always)]
pub fn flush_local(mpi: &Mpi, win: WinH, rank: Option<i32>) -> Option<()> {
    mpi.reachable.get(win.0)?.flush(rank)
}

/// MPI_Win_lock, if no epoch is open and the lock is free.
#[inline(always)]
pub fn lock(mpi: &Mpi, win: WinH, rank: i32, mode: LockMode) -> Option<()> {
    mpi.reachable.get(win.0)?.lock(rank, mode)
}

/// MPI_Win_unlock of a lock taken by [`lock`].
#[inline(always)]
pub fn unlock(mpi: &Mpi, win: WinH, rank: i32) -> Option<Res> {
    let reachable = mpi.reachable.get(win.0)?;
    Some(match reachable.unlock(rank)? {
        false => Ok(()),
        true => wake(mpi, win, rank),
    })
}

/// Tells a rank that another one waits for the released lock.
#[cold]
fn wake(mpi: &Mpi, win: WinH, rank: i32) -> Res {
    on(mpi, win, |on| {
        let id = on.id();
        Ok(on.windows.wake(on.messages, id, rank as u32)?)
    })
    .map(drop)
}

/// MPI_Win_fence between two fences, if all memory is directly accessible: the ranks still have to
/// synchronise.
#[inline(always)]
pub fn fence(mpi: &Mpi, win: WinH) -> Option<CommH> {
    mpi.reachable.get(win.0)?.fence().map(CommH)
}
