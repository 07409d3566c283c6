//! Opening and closing, sizes, hints (MPI 5.0, 14.2).

use crate::agree::{Ranks, Talk};
use crate::counter::Counter;
use crate::fault::failed;
use crate::open::{Cursor, Open, Seen, amode, find, on_one_host};
use crate::representation::Representation;
use kw_io_plan::{Hints, Prices, View};
use kw_mpi::chapter::{Parent, add_comm, forget, running};
use kw_objects::error::{Class, Fault, Res, Scope, fail};
use kw_objects::handle::{CommH, FileH, GroupH, InfoH};
use kw_objects::info::Info;
use kw_objects::state::Mpi;
use kw_sys::args::{Out, Text};
use kw_sys::file::{Access, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that the ranks tell each other of the file they have opened.
const RECORD: usize = 32;
/// The most ranks of a host that access a file for others where the hint `cb_nodes` is not given: a
/// file system of one host gains nothing from more. A starting value.
const MOST_EACH: u32 = 4;
/// Permissions of a file that is made, without those that the umask takes.
const PERMISSIONS: u32 = 0o666;

/// A path that Fortran or ROMIO's users may have given with the name of a file system in front.
fn path_of(filename: Text) -> Res<PathBuf> {
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

fn check_amode(mode: i32) -> Res {
    let ways = [amode::RDONLY, amode::WRONLY, amode::RDWR];
    let given = ways.iter().filter(|&&way| mode & way != 0).count();
    let wrong = |text: &str| fail(Class::Amode, format!("amode is {mode}: {text}"));
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

/// The hints with those of an info in their place.
pub(super) fn with_info(mut hints: Hints, mpi: &Mpi, info: InfoH) -> Res<Hints> {
    let guard = mpi.lock();
    let info = guard.above.infos.get_or_null(info)?;
    for (key, value) in info.iter().flat_map(|i| i.iter()) {
        hints.set(key, value);
    }
    Ok(hints)
}

/// A fault before there is a file is a matter of the handler of files to come.
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
    let own = parent.make(parent.members.clone(), None)?;
    let ranks = Ranks {
        group: own.local.clone(),
        rank: own.rank,
        context: own.context,
        making: own.making(),
        counting: own.context.collective(),
    };
    let own = add_comm(&mut mpi.lock(), own);
    let opened = open_together(mpi, &ranks, filename, mode, info);
    let made = opened.and_then(|opened| begin(mpi, opened, mode, own, ranks));
    if made.is_err() {
        forget(mpi, own)?;
    }
    made
}

/// What the ranks share beside the file, once all have opened it.
fn begin(mpi: &'static Mpi, opened: Opened, mode: i32, own: CommH, ranks: Ranks) -> Res<Open> {
    let Opened {
        path,
        storage,
        hints,
        hosts,
        each,
    } = opened;
    let mut pointer = 0;
    if mode & amode::APPEND != 0 {
        let end = storage.len();
        let end = end.map_err(|e| failed(ranks.rank, "find the end of", &path, &e));
        pointer = ranks.with(mpi).all_or_none(end)?;
    }
    let on_one_host = on_one_host(&hosts);
    let prices = prices(mpi, &ranks, !on_one_host)?;
    let shared = Counter::open(mpi, &ranks, on_one_host)?;
    let host_caches = !on_one_host && !storage.is_coherent().unwrap_or(false);
    let seen = Arc::new(Seen::bytes(mpi)?);
    let cursor = Cursor {
        seen,
        pointer,
        split: None,
        hints,
        atomic: false,
    };
    let open = Open::new(
        path,
        mode,
        own,
        (ranks, hosts, each, prices),
        (Arc::new(storage), host_caches),
        shared,
        cursor,
    );
    let talk = open.ranks.with(mpi);
    if mode & amode::APPEND != 0 {
        open.set_shared(mpi, &talk, pointer)?;
    }
    open.refresh(&talk)?;
    Ok(open)
}

impl Seen {
    /// The view that a file is opened with: bytes.
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

fn hosts_of(mpi: &Mpi, ranks: &Ranks) -> Res<Vec<u32>> {
    let mut guard = mpi.lock();
    let engine = running(&mut guard)?.0;
    let hosts = engine.job.hosts();
    let host = |rank| hosts.get(ranks.group.peer(rank).idx()).copied();
    let all: Option<Vec<u32>> = (0..ranks.group.size()).map(host).collect();
    // Nothing is known of the hosts of another job: each rank counts as on one of its own.
    Ok(all.unwrap_or_else(|| (0..ranks.group.size()).collect()))
}

/// What communication costs, as the first rank knows it: ranks of different jobs may have different
/// calibrations, but must decide alike.
fn prices(mpi: &Mpi, ranks: &Ranks, several_hosts: bool) -> Res<Prices> {
    let mut guard = mpi.lock();
    let engine = running(&mut guard)?.0;
    let mut prices = Prices::of(engine.job.agreed().calibration(), several_hosts).encode();
    drop(guard);
    ranks.with(mpi).members().bcast(&mut prices)?;
    Ok(Prices::decode(&prices))
}

/// A file that all ranks have opened.
struct Opened {
    path: PathBuf,
    storage: File,
    hints: Hints,
    /// The host number of each rank.
    hosts: Vec<u32>,
    /// How many ranks of each host access the file for others.
    each: u32,
}

/// All ranks open the file, or none does.
fn open_together(
    mpi: &'static Mpi,
    ranks: &Ranks,
    filename: Text,
    mode: i32,
    info: InfoH,
) -> Res<Opened> {
    let talk = ranks.with(mpi);
    let checked = || -> Res<(PathBuf, Hints)> {
        check_amode(mode)?;
        let hints = with_info(Hints::default(), mpi, info)?;
        Ok((path_of(filename)?, hints))
    };
    let (path, hints) = talk.all_or_none(checked())?;
    talk.same(
        Class::NotSame,
        "amode",
        mode,
        u64::from(mode as u32).to_le_bytes(),
    )?;
    same_hints(&talk, &hints)?;
    let access = Access {
        read: mode & (amode::RDONLY | amode::RDWR) != 0,
        write: mode & (amode::WRONLY | amode::RDWR) != 0,
        create: mode & amode::CREATE != 0,
        exclusive: mode & amode::EXCL != 0,
        permissions: hints.permissions.unwrap_or(PERMISSIONS),
    };
    let try_open = |access: Access| {
        let what = match access.create {
            true => "create",
            false => "open",
        };
        File::open(&path, access).map_err(|e| failed(ranks.rank, what, &path, &e))
    };
    // One rank makes the file; the others find it.
    let first = (ranks.rank == 0).then(|| try_open(access)).transpose();
    let first = talk.all_or_none(first)?;
    let found = match first {
        Some(file) => Ok(file),
        None => try_open(Access {
            create: false,
            exclusive: false,
            ..access
        }),
    };
    let file = talk.all_or_none(found).inspect_err(|_| {
        // The next attempt must not find a file that no rank has opened.
        if ranks.rank == 0 && access.exclusive {
            let _ = File::remove(&path);
        }
    })?;
    let hosts = hosts_of(mpi, ranks)?;
    let each = same_file(&talk, &hosts, &path, &file)?;
    Ok(Opened {
        path,
        storage: file,
        hints,
        hosts,
        each,
    })
}

/// The hints that decide together must be the same on all ranks (MPI 5.0, 14.2.8).
pub(super) fn same_hints(talk: &Talk<'_>, hints: &Hints) -> Res {
    let text: Vec<String> = hints
        .list()
        .iter()
        .map(|(k, v)| format!("{k}={v}"))
        .collect();
    talk.members().alike("the list of hints", &text.join(" "))
}

/// The processors that this rank may run on, as bits; those of large machines share bits.
fn processors() -> u64 {
    let bit = |cpu: usize| 1u64 << (cpu % 64);
    let allowed = kw_sys::cpus::allowed();
    allowed.into_iter().fold(0, |bits, cpu| bits | bit(cpu))
}

/// How many ranks of each host access the file for others: as many as the processors that the ranks
/// of a host may use, and no more than [`MOST_EACH`]. `processors` are those of each rank.
fn aggregators_each(hosts: &[u32], processors: impl Iterator<Item = u64>) -> u32 {
    let mut of_host = std::collections::HashMap::new();
    for (host, bits) in hosts.iter().zip(processors) {
        *of_host.entry(host).or_insert(0u64) |= bits;
    }
    let most = of_host.values().map(|bits| bits.count_ones()).max();
    most.unwrap_or(1).clamp(1, MOST_EACH)
}

/// Ranks that name different files are told so. What a file is named by the system may differ from
/// host to host; its path may differ from rank to rank. Where neither is the same, it is another one.
/// Returns how many ranks of each host access the file for others.
fn same_file(talk: &Talk<'_>, hosts: &[u32], path: &Path, file: &File) -> Res<u32> {
    let mix = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
    let name = path
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, mix);
    let identity = file
        .identity()
        .map_or([0; 2], |(device, number)| [device, number]);
    let mut mine = [0; RECORD];
    for (place, word) in
        mine.chunks_exact_mut(8)
            .zip([name, identity[0], identity[1], processors()])
    {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let all = talk.members().allgather(&mine)?;
    let first = &all[..RECORD];
    let other = all
        .chunks_exact(RECORD)
        .position(|their| their[..8] != first[..8] && their[16..24] != first[16..24]);
    match other {
        None => {
            let word = |r: &[u8]| u64::from_le_bytes(r[24..].try_into().expect("eight bytes"));
            Ok(aggregators_each(hosts, all.chunks_exact(RECORD).map(word)))
        }
        Some(rank) => fail(
            Class::NotSame,
            format!("filename names another file on rank {rank} than on rank 0"),
        ),
    }
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
    talk.all_or_none(open.check_not_split())?;
    open.shared.close(mpi)?;
    let ended = end(&open, talk);
    mpi.lock().above.remove_file(fh.get())?;
    fh.set(FileH::NULL);
    forget(mpi, open.comm)?;
    ended
}

/// What the file system still has to do with a file that no rank uses any more. The file is closed
/// even if that fails.
fn end(open: &Open, talk: Talk<'_>) -> Res {
    let rank = open.ranks.rank;
    let failed = |what, e| failed(rank, what, &open.path, &e);
    let mut ended = Ok(());
    if open.amode & amode::RDONLY == 0 {
        ended = talk.all_or_none(open.storage.flush().map_err(|e| failed("close", e)));
    }
    if open.amode & amode::DELETE_ON_CLOSE != 0 {
        // Only now: on NFS another host cannot store its data in a file that was removed.
        let removed = match rank {
            0 => File::remove(&open.path).map_err(|e| failed("delete", e)),
            _ => Ok(()),
        };
        ended = ended.and(talk.all_or_none(removed));
    }
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
    let len = talk.all_or_none(checked())?;
    talk.same(Class::NotSame, "size", size, len.to_le_bytes())?;
    let mut done = Ok(());
    if open.ranks.rank == 0 {
        done = change(&open, len).map_err(|e| failed(0, what, &open.path, &e));
    }
    talk.all_or_none(done)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_ranks_access_for_others_as_a_host_has_processors() {
        let each = |hosts: &[u32], masks: &[u64]| aggregators_each(hosts, masks.iter().copied());
        assert_eq!(each(&[0, 0, 0, 0], &[1, 1, 2, 2]), 2, "bound, two on each");
        assert_eq!(each(&[0, 1, 2], &[1, 1, 1]), 1, "one processor a host");
        assert_eq!(each(&[0, 0], &[0xff, 0xff]), MOST_EACH);
        assert_eq!(each(&[0], &[0]), 1, "nobody knows");
    }
}
