//! Views, file pointers, consistency (MPI 5.0, 14.3, 14.4 and 14.6).

use crate::access::offset_in_data;
use crate::agree::{Talk, all_tell, bytes_of, other_than_first};
use crate::calls::open::{hints_text, same_hints, with_info};
use crate::fault::failed;
use crate::open::{Kept, Open, Seen, find};
use crate::representation::{Registered, Representation};
use kw_io_plan::{Hints, View};
use kw_mpi::chapter::hash;
use kw_objects::datatype::Datatype;
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::handle::{FileH, InfoH, TypeH};
use kw_objects::state::{Mpi, Tables};
use kw_sys::args::{Out, OutInt, OutText, Text};
use std::sync::Arc;

/// MPI_DISPLACEMENT_CURRENT
const DISPLACEMENT_CURRENT: i64 = -1;
/// MPI_MAX_DATAREP_STRING
const MAX_DATAREP: usize = 128;
const SEEK_CUR: i32 = 401;
const SEEK_END: i32 = 402;
const SEEK_SET: i32 = 403;

/// User-defined representations.
pub(crate) fn registered(tables: &Tables) -> Vec<Arc<Registered>> {
    let all = tables.representations.iter();
    all.filter_map(|r| r.clone().downcast::<Registered>().ok())
        .collect()
}

/// MPI_File_set_view
pub fn file_set_view(
    mpi: &'static Mpi,
    fh: FileH,
    disp: i64,
    etype: TypeH,
    filetype: TypeH,
    datarep: Text,
    info: InfoH,
) -> Res {
    let open = find(mpi, fh)?;
    let talk = open.in_turn(mpi);
    let made = view_of(mpi, &open, disp, (etype, filetype), datarep, info);
    let record = made.as_ref().map_or([0; 3], |(seen, hints)| {
        let name = seen.representation.name();
        let hints = hints_text(hints);
        [
            hash(hints.as_bytes()),
            seen.view.etype(),
            hash(name.as_bytes()),
        ]
    });
    let record = bytes_of(record);
    let ((seen, hints), all) = all_tell(&talk.members(), made, &record)?;
    if other_than_first(&all, record.len()).is_some() {
        compare(&talk, &seen, &hints)?;
    }
    let mut cursor = open.cursor();
    cursor.seen = Arc::new(seen);
    cursor.pointer = 0;
    cursor.hints = hints;
    drop(cursor);
    open.set_shared(mpi, &talk, 0)
}

/// Values of a view that must be the same on all ranks, one after the other.
fn compare(talk: &Talk<'_>, seen: &Seen, hints: &Hints) -> Res {
    same_hints(talk, hints)?;
    let etype = seen.view.etype();
    talk.same(
        Class::NotSame,
        "the extent of etype in the file",
        etype,
        etype.to_le_bytes(),
    )?;
    let name = seen.representation.name();
    talk.members().alike_or(Class::NotSame, "datarep", name)
}

fn view_of(
    mpi: &'static Mpi,
    open: &Open,
    disp: i64,
    (etype, filetype): (TypeH, TypeH),
    datarep: Text,
    info: InfoH,
) -> Res<(Seen, Hints)> {
    let hints = open.cursor().hints.clone();
    let hints = with_info(hints, mpi, info)?;
    let guard = mpi.lock();
    let (etype, filetype) = (
        Kept::of(&guard.above, etype)?,
        Kept::of(&guard.above, filetype)?,
    );
    let representations = registered(&guard.above);
    drop(guard);
    let name = datarep.to_text().unwrap_or_default();
    let representation = Representation::named(&name, &representations)?;
    let mut start = disp;
    if disp == DISPLACEMENT_CURRENT {
        if open.amode & crate::open::amode::SEQUENTIAL == 0 {
            return fail!(Arg:
                "disp is MPI_DISPLACEMENT_CURRENT, which is valid only for a file opened with MPI_MODE_SEQUENTIAL");
        }
        let at = open.shared.get(mpi)?;
        let seen = open.seen();
        seen.check_reach(at, 1)?;
        start = seen.view.offset_of(at) as i64;
    }
    let unit = representation.in_file(&etype)?;
    let pattern = representation.in_file(&filetype)?;
    let view = View::new(start, &unit, &pattern).map_err(|e| {
        let class = match e {
            kw_io_plan::Unfit::Displacement(_) => Class::Arg,
            _ => Class::Type,
        };
        Fault::new(class, e.to_string())
    })?;
    Ok((Seen::new(view, etype, filetype, representation), hints))
}

/// MPI_File_get_view
pub fn file_get_view(
    mpi: &'static Mpi,
    fh: FileH,
    disp: Out<i64>,
    etype: Out<TypeH>,
    filetype: Out<TypeH>,
    datarep: OutText,
) -> Res {
    let seen = find(mpi, fh)?.seen();
    let mut guard = mpi.lock();
    disp.set(seen.view.displacement() as i64);
    etype.set(give(&mut guard.above, &seen.etype));
    filetype.set(give(&mut guard.above, &seen.filetype));
    datarep.set(seen.representation.name().as_bytes(), MAX_DATAREP);
    Ok(())
}

/// A handle for a datatype of a view; a new one if it is derived.
fn give(tables: &mut Tables, kept: &Kept) -> TypeH {
    match (&kept.predefined, &kept.recipe) {
        (None, Some(recipe)) => {
            let mut made = Datatype::derived(kept.layout.clone(), recipe.clone());
            made.committed = true;
            TypeH::from_key(tables.types.derived.insert(made))
        }
        (handle, _) => handle.unwrap_or(TypeH::NULL),
    }
}

/// Target of a seek, in bytes of the view's data.
fn seek(open: &Open, offset: i64, whence: i32, current: u64) -> Res<u64> {
    let seen = open.seen();
    let etype = seen.view.etype();
    let base = match whence {
        SEEK_SET => 0,
        SEEK_CUR => current / etype,
        SEEK_END => {
            let size = open.storage.size();
            let size =
                size.map_err(|e| failed(open.ranks.rank, "find the end of", &open.path, &e))?;
            seen.view.data_before(size).div_ceil(etype)
        }
        _ => {
            return fail!(Arg: "whence is {whence}, but must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END");
        }
    };
    match (base as i64).checked_add(offset) {
        Some(at) if at >= 0 => offset_in_data(at, etype),
        _ => fail!(Arg: "offset is {offset}, which leads in front of the view's beginning"),
    }
}

/// MPI_File_seek
pub fn file_seek(mpi: &'static Mpi, fh: FileH, offset: i64, whence: i32) -> Res {
    let open = find(mpi, fh)?;
    open.check_not_sequential("an individual file pointer")?;
    let current = open.cursor().pointer;
    let at = seek(&open, offset, whence, current)?;
    open.cursor().pointer = at;
    Ok(())
}

/// MPI_File_seek_shared
pub fn file_seek_shared(mpi: &'static Mpi, fh: FileH, offset: i64, whence: i32) -> Res {
    let open = find(mpi, fh)?;
    let talk = open.in_turn(mpi);
    let both = (offset as u64) ^ (whence as u64).rotate_left(48);
    talk.same(
        Class::NotSame,
        "offset and whence",
        offset,
        both.to_le_bytes(),
    )?;
    // All read the pointer before one sets it.
    let current = open.shared.get(mpi);
    let at = talk.all_or_none(current.and_then(|c| seek(&open, offset, whence, c)))?;
    open.set_shared(mpi, &talk, at)
}

/// MPI_File_get_position
pub fn file_get_position(mpi: &'static Mpi, fh: FileH, offset: Out<i64>) -> Res {
    let open = find(mpi, fh)?;
    open.check_not_sequential("an individual file pointer")?;
    let cursor = open.cursor();
    offset.set((cursor.pointer / cursor.seen.view.etype()) as i64);
    Ok(())
}

/// MPI_File_get_position_shared
pub fn file_get_position_shared(mpi: &'static Mpi, fh: FileH, offset: Out<i64>) -> Res {
    let open = find(mpi, fh)?;
    let at = open.shared.get(mpi)?;
    offset.set((at / open.seen().view.etype()) as i64);
    Ok(())
}

/// MPI_File_get_byte_offset
pub fn file_get_byte_offset(mpi: &'static Mpi, fh: FileH, offset: i64, disp: Out<i64>) -> Res {
    let seen = find(mpi, fh)?.seen();
    let at = offset_in_data(offset, seen.view.etype())?;
    seen.check_reach(at, 1)?;
    disp.set(seen.view.offset_of(at) as i64);
    Ok(())
}

/// MPI_File_get_type_extent
pub fn file_get_type_extent(mpi: &'static Mpi, fh: FileH, datatype: TypeH, extent: OutInt) -> Res {
    let seen = find(mpi, fh)?.seen();
    let of = Kept::of_any(&mpi.lock().above, datatype)?;
    let in_file = seen.representation.in_file(&of)?.extent();
    match extent.set(in_file) {
        true => Ok(()),
        false => fail!(ValueTooLarge: "extent would be {in_file}; use the large-count function"),
    }
}

/// MPI_File_set_atomicity
pub fn file_set_atomicity(mpi: &'static Mpi, fh: FileH, flag: i32) -> Res {
    let open = find(mpi, fh)?;
    let atomic = flag != 0;
    let talk = open.in_turn(mpi);
    if atomic {
        open.shared.keep(mpi)?;
    }
    talk.same(
        Class::NotSame,
        "flag",
        flag,
        u64::from(atomic).to_le_bytes(),
    )?;
    open.cursor().atomic = atomic;
    Ok(())
}

/// MPI_File_get_atomicity
pub fn file_get_atomicity(mpi: &'static Mpi, fh: FileH, flag: Out<i32>) -> Res {
    flag.set(i32::from(find(mpi, fh)?.cursor().atomic));
    Ok(())
}

/// MPI_File_sync
pub fn file_sync(mpi: &'static Mpi, fh: FileH) -> Res {
    let open = find(mpi, fh)?;
    let synced = || -> Res {
        // Data that was only read need not be stored.
        match open.amode & crate::open::amode::RDONLY != 0 {
            true => Ok(()),
            false => open
                .storage
                .sync()
                .map_err(|e| failed(open.ranks.rank, "sync", &open.path, &e)),
        }
    };
    let talk = open.in_turn(mpi);
    talk.all_or_none(synced())?;
    open.refresh(&talk)
}
