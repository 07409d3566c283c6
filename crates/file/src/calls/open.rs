//! Opening and closing, sizes, hints (MPI 5.0, 14.2).

use super::opening::{Opened, Wish, open_together};
use crate::agree::{Ranks, Talk, all_tell, as_first, code_of, differ, none_of, other_than_first};
use crate::counter::Counter;
use crate::fault::failed;
use crate::open::{Cursor, Open, Seen, amode, find};
use crate::representation::Representation;
use kw_io_plan::{Hints, View};
use kw_mpi::chapter::{Parent, add_comm, forget};
use kw_objects::comm::Comm;
use kw_objects::error::{Class, Fault, Res, Scope, fail};
use kw_objects::handle::{CommH, FileH, GroupH, InfoH};
use kw_objects::info::Info;
use kw_objects::state::Mpi;
use kw_sys::args::{Out, Text};
use kw_sys::file::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes the name of a file system before a path, which Fortran programs or ROMIO's users may
/// have given.
pub(super) fn path_of(filename: Text) -> Res<PathBuf> {
    let bytes = filename.bytes().unwrap_or_default();
    if bytes.is_empty() {
        return fail(Class::BadFile, "filename is empty");
    }
    let mut path = bytes;
    for prefix in ["ufs:", "nfs:", "file:"] {
        if let Some(rest) = path.strip_prefix(prefix.as_bytes()) {
            path = rest;
            break;
        }
    }
    Ok(Path::new(std::ffi::OsStr::from_bytes(path)).to_path_buf())
}

pub(super) fn check_amode(mode: i32) -> Res {
    let ways = [amode::RDONLY, amode::WRONLY, amode::RDWR];
    let given = ways.iter().filter(|&&way| mode & way != 0).count();
    let wrong = |text: &str| fail!(Amode: "amode is {mode}: {text}");
    if mode & !amode::ALL != 0 {
        return wrong("it contains bits that are not access modes");
    }
    if given != 1 {
        return wrong(
            "exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY must be given",
        );
    }
    if mode & amode::RDONLY != 0 && mode & (amode::CREATE | amode::EXCL) != 0 {
        return wrong("MPI_MODE_CREATE and MPI_MODE_EXCL cannot be given with MPI_MODE_RDONLY");
    }
    if mode & amode::RDWR != 0 && mode & amode::SEQUENTIAL != 0 {
        return wrong("MPI_MODE_SEQUENTIAL cannot be given with MPI_MODE_RDWR");
    }
    Ok(())
}

/// The hints, updated with those of an info.
pub(super) fn with_info(mut hints: Hints, mpi: &Mpi, info: InfoH) -> Res<Hints> {
    let guard = mpi.lock();
    let info = guard.above.infos.get_or_null(info)?;
    for (key, value) in info.iter().flat_map(|i| i.iter()) {
        hints.set(key, value);
    }
    Ok(hints)
}

/// Makes a fault without an open file a matter of the handler for files opened later.
fn early(mut fault: Box<Fault>) -> Box<Fault> {
    fault.scope = Scope::File(FileH::NULL);
    fault
}

/// MPI_File_open
pub fn file_open(
    mpi: &'static Mpi,
    comm: CommH,
    filename: Text,
    amode: i32,
    info: InfoH,
    fh: Out<FileH>,
) -> Res {
    fh.set(FileH::NULL);
    let made = open(mpi, comm, filename, amode, info).map_err(early)?;
    fh.set(mpi.lock().above.add_file(Arc::new(made)));
    Ok(())
}

fn open(mpi: &'static Mpi, comm: CommH, filename: Text, mode: i32, info: InfoH) -> Res<Open> {
    let parent = Parent::intra(mpi, comm, "comm")?;
    let members = &parent.members;
    let wish = Wish::agree(members, (filename, info), mode)?;
    let (offer, leaders) = wish.offers;
    let context = members.accept(offer, leaders);
    let context = context.inspect_err(|_| wish.give_back(members))?;
    let own = parent.heir(Comm::new(
        context,
        members.group.clone(),
        None,
        members.rank,
    ));
    let ranks = Ranks {
        group: own.local.clone(),
        rank: own.rank,
        context: own.context,
        making: own.making(),
        counting: own.context.collective(),
    };
    let own = add_comm(&mut mpi.lock(), own);
    let opened = open_together(mpi, &ranks, wish);
    let made = opened.and_then(|opened| begin(mpi, opened, mode, own, ranks));
    if made.is_err() {
        forget(mpi, own)?;
    }
    made
}

/// State that the ranks share in addition to the file, once all have opened it.
fn begin(mpi: &'static Mpi, opened: Opened, mode: i32, own: CommH, ranks: Ranks) -> Res<Open> {
    let cursor = Cursor {
        seen: Arc::new(Seen::bytes(mpi)?),
        pointer: opened.end,
        split: None,
        hints: opened.hints,
        atomic: false,
    };
    let shared = Counter::new(mpi, &ranks, opened.reached)?;
    let open = Open::new(
        opened.path,
        mode,
        own,
        (ranks, opened.hosts, opened.each, opened.prices),
        (Arc::new(opened.storage), opened.host_caches),
        shared,
        cursor,
    );
    if mode & amode::APPEND != 0 {
        open.set_shared(mpi, &open.ranks.with(mpi), opened.end)?;
    }
    Ok(open)
}

impl Seen {
    /// The initial view of a file: bytes.
    fn bytes(mpi: &Mpi) -> Res<Seen> {
        use kw_objects::handle::TypeH;
        use kw_types::layout::basic;
        let byte = basic::NAMED.iter().position(|n| n.name == "MPI_BYTE");
        let handle = TypeH(byte.map_or(0, |i| basic::NAMED[i].handle));
        let layout = mpi.lock().above.layout(handle)?.clone();
        let kept = crate::open::Kept {
            predefined: Some(handle),
            layout,
            recipe: None,
        };
        let view = View::new(0, &kept.layout, &kept.layout)
            .map_err(|e| Fault::new(Class::Intern, e.to_string()))?;
        Ok(Seen::new(view, kept.clone(), kept, Representation::Native))
    }
}

/// Checks that the hints for common decisions are the same on all ranks (MPI 5.0, 14.2.8).
pub(super) fn same_hints(talk: &Talk<'_>, hints: &Hints) -> Res {
    let text = hints_text(hints);
    talk.members().alike("the list of hints", &text)
}

/// Hints in the form in which they are compared.
pub(super) fn hints_text(hints: &Hints) -> String {
    let hints = hints.list();
    let words = hints.iter().map(|(k, v)| format!("{k}={v}"));
    words.collect::<Vec<_>>().join(" ")
}

/// MPI_File_close
pub fn file_close(mpi: &'static Mpi, fh: Out<FileH>) -> Res {
    let handle = fh.get();
    close(mpi, fh).map_err(|mut fault| {
        fault.scope = Scope::File(handle);
        fault
    })
}

fn close(mpi: &'static Mpi, fh: Out<FileH>) -> Res {
    let open = find(mpi, fh.get())?;
    open.alone.end();
    let talk = open.in_turn(mpi);
    let (rank, members) = (open.ranks.rank, talk.members());
    let failed = |what, e| failed(rank, what, &open.path, &e);
    let mut stored = Ok(());
    if open.amode & amode::RDONLY == 0 {
        stored = open.storage.flush().map_err(|e| failed("close", e));
    }
    // One exchange checks both: a file between two parts of a split access stays open.
    let record = code_of(&stored).to_le_bytes();
    let ((), codes) = all_tell(&members, open.check_not_split(), &record)?;
    let mut ended = none_of(&members, stored, &codes);
    if open.amode & amode::DELETE_ON_CLOSE != 0 {
        // Not earlier: on NFS another host cannot store its data in a file that was removed.
        let removed = match rank {
            0 => File::remove(&open.path).map_err(|e| failed("delete", e)),
            _ => Ok(()),
        };
        ended = ended.and(as_first(&members, removed));
    }
    open.shared.close(mpi)?;
    mpi.lock().above.remove_file(fh.get())?;
    fh.set(FileH::NULL);
    forget(mpi, open.comm)?;
    ended
}

/// MPI_File_delete
pub fn file_delete(mpi: &'static Mpi, filename: Text, info: InfoH) -> Res {
    let delete = || -> Res {
        mpi.lock().above.infos.get_or_null(info)?;
        let path = path_of(filename)?;
        File::remove(&path).map_err(|e| {
            let mut fault = failed(0, "delete", &path, &e);
            fault.text = fault.text.replacen("rank 0 cannot", "cannot", 1);
            fault
        })
    };
    delete().map_err(early)
}

fn checked_size(size: i64) -> Res<u64> {
    u64::try_from(size).map_err(|_| {
        Fault::new(
            Class::Arg,
            format!("size is {size}, but must not be negative"),
        )
    })
}

/// A collective change of the file's size: rank 0 does it.
fn resize(
    mpi: &'static Mpi,
    fh: FileH,
    size: i64,
    what: &str,
    change: impl FnOnce(&Open, u64) -> std::io::Result<()>,
) -> Res {
    let open = find(mpi, fh)?;
    let talk = open.in_turn(mpi);
    let checked = || -> Res<u64> {
        open.check_direction(true)?;
        open.check_not_sequential("a size")?;
        checked_size(size)
    };
    let members = talk.members();
    let record = size.to_le_bytes();
    let (len, all) = all_tell(&members, checked(), &record)?;
    if let Some(other) = other_than_first(&all, record.len()) {
        return differ(Class::NotSame, "size", other, (size, members.rank));
    }
    let mut done = Ok(());
    if open.ranks.rank == 0 {
        done = change(&open, len).map_err(|e| failed(0, what, &open.path, &e));
    }
    as_first(&members, done)?;
    open.refresh(&talk)
}

/// MPI_File_set_size
pub fn file_set_size(mpi: &'static Mpi, fh: FileH, size: i64) -> Res {
    resize(mpi, fh, size, "set the size of", |open, len| {
        open.storage.set_size(len)
    })
}

/// MPI_File_preallocate
pub fn file_preallocate(mpi: &'static Mpi, fh: FileH, size: i64) -> Res {
    resize(mpi, fh, size, "reserve storage for", |open, len| {
        match len > open.storage.size()? {
            true => open.storage.reserve(len),
            false => open.storage.reserve(len.max(1)),
        }
    })
}

/// MPI_File_get_size
pub fn file_get_size(mpi: &'static Mpi, fh: FileH, size: Out<i64>) -> Res {
    let open = find(mpi, fh)?;
    let len = open.storage.size();
    size.set(len.map_err(|e| failed(open.ranks.rank, "find the size of", &open.path, &e))? as i64);
    Ok(())
}

/// MPI_File_get_group
pub fn file_get_group(mpi: &'static Mpi, fh: FileH, group: Out<GroupH>) -> Res {
    let open = find(mpi, fh)?;
    let mut guard = mpi.lock();
    group.set(guard.above.add_group(open.ranks.group.clone(), None));
    Ok(())
}

/// MPI_File_get_amode
pub fn file_get_amode(mpi: &'static Mpi, fh: FileH, amode: Out<i32>) -> Res {
    amode.set(find(mpi, fh)?.amode);
    Ok(())
}

/// MPI_File_set_info
pub fn file_set_info(mpi: &'static Mpi, fh: FileH, info: InfoH) -> Res {
    let open = find(mpi, fh)?;
    let talk = open.in_turn(mpi);
    let hints = open.cursor().hints.clone();
    let hints = talk.all_or_none(with_info(hints, mpi, info))?;
    same_hints(&talk, &hints)?;
    open.cursor().hints = hints;
    Ok(())
}

/// MPI_File_get_info
pub fn file_get_info(mpi: &'static Mpi, fh: FileH, info_used: Out<InfoH>) -> Res {
    let open = find(mpi, fh)?;
    let mut info = Info::default();
    for (key, value) in open.cursor().hints.list() {
        info.set(key, &value);
    }
    info_used.set(mpi.lock().above.infos.add(info));
    Ok(())
}
