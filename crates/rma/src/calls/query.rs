//! Calls that query a window: its group, its hints, the memory that it shares (MPI 5.0, 12.2).

use crate::hints;
use crate::window::on;
use kw_engine::windows::Windows;
use kw_objects::error::{Res, fail};
use kw_objects::handle::{GroupH, InfoH, WinH};
use kw_objects::state::Mpi;
use kw_objects::window::{Flavor, Part, Window};
use kw_sys::args::{Out, OutInt};

/// MPI_Win_get_group
pub fn win_get_group(mpi: &Mpi, win: WinH, group: Out<GroupH>) -> Res {
    let (mut guard, (found, session)) = on(mpi, win, |on| {
        let session = on.tables.comms.get(on.window.comm)?.session;
        Ok((on.window.group.clone(), session))
    })?;
    group.set(guard.above.add_group(found, session));
    Ok(())
}

/// MPI_Win_set_info: unknown hints, and hints that only count at creation, are ignored.
pub fn win_set_info(mpi: &Mpi, win: WinH, info: InfoH) -> Res {
    let (mut guard, given) = on(mpi, win, |on| Ok(on.tables.infos.get(info)?.clone()))?;
    hints::change(&mut guard.above.window_mut(win)?.info, &given);
    Ok(())
}

/// MPI_Win_get_info
pub fn win_get_info(mpi: &Mpi, win: WinH, info_used: Out<InfoH>) -> Res {
    let (mut guard, info) = on(mpi, win, |on| Ok(on.window.info.clone()))?;
    info_used.set(guard.above.infos.add(info));
    Ok(())
}

/// MPI_Win_shared_query: memory of a rank that cannot be accessed directly has no bytes and no
/// address.
pub fn win_shared_query(
    mpi: &Mpi,
    win: WinH,
    rank: i32,
    size: Out<i64>,
    disp_unit: OutInt,
    baseptr: Out<usize>,
) -> Res {
    on(mpi, win, |on| {
        if on.window.flavor == Flavor::Dynamic {
            return fail!(RmaFlavor: "the window was created by MPI_Win_create_dynamic; its memory cannot be queried");
        }
        let part = match on.rank(rank)? {
            Some(rank) => part_of(on.window, rank),
            None => {
                let lowest = lowest_with_memory(on.windows, on.window);
                part_of(on.window, lowest)
            }
        };
        if !disp_unit.set(part.unit as i64) {
            return fail!(ValueTooLarge: "disp_unit would be {}; use the large-count function", part.unit);
        }
        size.set(part.size as i64);
        baseptr.set(part.base);
        Ok(())
    })
    .map(drop)
}

/// The lowest rank that has memory; rank 0 if none has.
fn lowest_with_memory(windows: &mut Windows, window: &Window) -> u32 {
    let has = |&rank: &u32| windows.extent(window.id, rank).is_some_and(|e| e.size > 0);
    (0..window.group.size()).find(has).unwrap_or(0)
}

/// The part of a rank.
fn part_of(window: &Window, rank: u32) -> Part {
    let found = window.shared.iter().find(|part| part.rank == rank);
    found.copied().unwrap_or(Part {
        rank,
        base: 0,
        size: 0,
        unit: 1,
    })
}
