//! Creating and freeing windows, memory of dynamic windows (MPI 5.0, 12.2).

use crate::make::{self, Share};
use crate::memory::Wish;
use crate::window::on;
use kw_engine::windows::Extent;
use kw_mpi::chapter::{Members, Purpose, delete_all, forget, running};
use kw_objects::attributes::Owner;
use kw_objects::error::{Res, Scope, fail};
use kw_objects::handle::{CommH, InfoH, WinH};
use kw_objects::state::Mpi;
use kw_objects::window::Flavor;
use kw_sys::args::Out;
use kw_sys::buf::Addr;

/// The size and the unit of a rank's memory.
fn extent(size: i64, disp_unit: i64) -> Res<Extent> {
    let Ok(bytes) = u64::try_from(size) else {
        return fail!(Size: "size is {size}, but must not be negative");
    };
    match u64::try_from(disp_unit) {
        Ok(unit) if unit > 0 => Ok(Extent { size: bytes, unit }),
        _ => fail!(Disp: "disp_unit is {disp_unit}, but must be positive"),
    }
}

/// Refuses missing memory.
fn check_memory(base: Addr, size: u64) -> Res {
    if base == Addr::NULL && size > 0 {
        return fail!(Buffer: "base is a null pointer, but size is {size}");
    }
    if (base.bits() as u64).checked_add(size).is_none() {
        return fail!(Size: "size is {size}, which exceeds the memory after base");
    }
    Ok(())
}

/// MPI_Win_create
pub fn win_create(
    mpi: &Mpi,
    base: Addr,
    size: i64,
    disp_unit: i64,
    info: InfoH,
    comm: CommH,
    win: Out<WinH>,
) -> Res {
    make::window(mpi, (comm, info), Flavor::Create, win, || {
        let extent = extent(size, disp_unit)?;
        check_memory(base, extent.size)?;
        let wish = Wish::Lent(base);
        Ok(Share { extent, wish })
    })
    .map(drop)
}

/// MPI_Win_allocate
pub fn win_allocate(
    mpi: &Mpi,
    size: i64,
    disp_unit: i64,
    info: InfoH,
    comm: CommH,
    baseptr: Out<usize>,
    win: Out<WinH>,
) -> Res {
    let what = (Flavor::Allocate, Wish::Allocated);
    allocate(mpi, (comm, info), what, (size, disp_unit), baseptr, win)
}

/// MPI_Win_allocate_shared
pub fn win_allocate_shared(
    mpi: &Mpi,
    size: i64,
    disp_unit: i64,
    info: InfoH,
    comm: CommH,
    baseptr: Out<usize>,
    win: Out<WinH>,
) -> Res {
    let what = (Flavor::Shared, Wish::Shared);
    allocate(mpi, (comm, info), what, (size, disp_unit), baseptr, win)
}

/// A window with memory of this library.
fn allocate(
    mpi: &Mpi,
    among: (CommH, InfoH),
    (flavor, wish): (Flavor, Wish),
    (size, disp_unit): (i64, i64),
    baseptr: Out<usize>,
    win: Out<WinH>,
) -> Res {
    let base = make::window(mpi, among, flavor, win, || {
        let extent = extent(size, disp_unit)?;
        Ok(Share { extent, wish })
    })?;
    baseptr.set(base);
    Ok(())
}

/// MPI_Win_create_dynamic
pub fn win_create_dynamic(mpi: &Mpi, info: InfoH, comm: CommH, win: Out<WinH>) -> Res {
    make::window(mpi, (comm, info), Flavor::Dynamic, win, || {
        let (extent, wish) = (Extent::DYNAMIC, Wish::Dynamic);
        Ok(Share { extent, wish })
    })
    .map(drop)
}

/// MPI_Win_free
pub fn win_free(mpi: &Mpi, win: Out<WinH>) -> Res {
    let handle = win.get();
    free(mpi, handle).map_err(|mut fault| {
        fault.scope = Scope::Win(handle);
        fault
    })?;
    win.set(WinH::NULL);
    Ok(())
}

fn free(mpi: &Mpi, win: WinH) -> Res {
    let (guard, comm) = on(mpi, win, |on| {
        on.windows.may_free(on.id())?;
        Ok(on.window.comm)
    })?;
    drop(guard);
    delete_all(mpi, Owner::Win(win))?;
    // No rank frees its memory while others still use it.
    barrier(mpi, comm).map_err(|fault| mpi.lock().above.window_fault(win, fault))?;
    let mut guard = mpi.lock();
    mpi.reachable.withdraw(win.0);
    let (engine, tables) = running(&mut guard)?;
    let window = tables.remove_window(win)?;
    engine.parts.windows.free(&mut engine.messages, window.id)?;
    drop(guard);
    forget(mpi, comm)
}

fn barrier(mpi: &Mpi, comm: CommH) -> Res {
    let guard = mpi.lock();
    let comm = guard.above.comms.get(comm)?;
    let members = Members {
        purpose: Purpose::Local,
        ..Members::of(mpi, comm)
    };
    drop(guard);
    members.all(true).map(drop)
}

/// Checks that the window is dynamic: only then memory can be attached and detached.
fn check_dynamic(flavor: Flavor) -> Res {
    if flavor == Flavor::Dynamic {
        return Ok(());
    }
    fail!(RmaFlavor: "the window was made by {}, but only one of MPI_Win_create_dynamic has memory attached to it",
        flavor.maker())
}

/// MPI_Win_attach
pub fn win_attach(mpi: &Mpi, win: WinH, base: Addr, size: i64) -> Res {
    on(mpi, win, |on| {
        check_dynamic(on.window.flavor)?;
        let Extent { size, .. } = extent(size, 1)?;
        check_memory(base, size)?;
        Ok(on.windows.attach(on.id(), base, size)?)
    })
    .map(drop)
}

/// MPI_Win_detach
pub fn win_detach(mpi: &Mpi, win: WinH, base: Addr) -> Res {
    on(mpi, win, |on| {
        check_dynamic(on.window.flavor)?;
        Ok(on.windows.detach(on.id(), base)?)
    })
    .map(drop)
}
