//! Collective opening of a file. The ranks exchange their requests, and then what they have opened:
//! two exchanges, and one message to each rank if rank 0 creates the file.

use super::open::{check_amode, hints_text, path_of, with_info};
use crate::agree::{Ranks, all_tell, all_tell_and, as_first, bytes_of, differ, other_than_first};
use crate::counter::{self, NO_MEMORY};
use crate::fault::failed;
use crate::open::{amode, on_one_host};
use kw_engine::HostCounter;
use kw_io_plan::cost::PRICES_LEN;
use kw_io_plan::{Hints, Prices};
use kw_mpi::chapter::{Members, hash, running};
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::InfoH;
use kw_objects::state::Mpi;
use kw_sys::args::Text;
use kw_sys::file::{Access, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most ranks of a host that access a file for others if the hint `cb_nodes` is not given: a file
/// system of one host gains nothing from more. A starting value.
const MOST_EACH: u32 = 4;
/// Permissions of a new file, except those that the umask removes.
const PERMISSIONS: u32 = 0o666;

/// Words in bytes of a message.
fn words_of<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    words
}

/// Request of a rank.
#[derive(Debug)]
struct Asked {
    path: PathBuf,
    hints: Hints,
}

/// The first exchange: the requests of all ranks.
#[derive(Debug)]
pub(super) struct Wish {
    path: PathBuf,
    hints: Hints,
    mode: i32,
    /// The host number of each rank.
    hosts: Vec<u32>,
    prices: Prices,
    /// Memory that rank 0 has claimed for the shared file pointer.
    claimed: u32,
    /// The offer of a context by this rank, and rank 0's.
    pub offers: (u32, u32),
}

/// Bytes of the lead.
const LEAD: usize = 8 + PRICES_LEN;

/// Rank 0's decisions for all.
struct Lead {
    offer: u32,
    claimed: u32,
    prices: Prices,
}

impl Lead {
    /// Rank 0 offers a context, claims memory for the shared file pointer, and sends its prices:
    /// ranks of different jobs may have different calibrations, but must decide alike.
    fn make(members: &Members<'_>, on_one_host: bool) -> Res<Lead> {
        let mpi = members.mpi;
        let claimed = match on_one_host && members.group.size() > 1 {
            true => counter::claim(mpi)?,
            false => NO_MEMORY,
        };
        let mut guard = mpi.lock();
        let engine = running(&mut guard)?.0;
        let prices = Prices::of(engine.job.agreed().calibration(), !on_one_host);
        drop(guard);
        Ok(Lead {
            offer: members.offer(),
            claimed,
            prices,
        })
    }

    fn encode(&self) -> [u8; LEAD] {
        let mut out = [0; LEAD];
        out[..4].copy_from_slice(&self.offer.to_le_bytes());
        out[4..8].copy_from_slice(&self.claimed.to_le_bytes());
        out[8..].copy_from_slice(&self.prices.encode());
        out
    }

    fn decode(bytes: &[u8; LEAD]) -> Lead {
        let word = |i: usize| bytes[i..i + 4].try_into().expect("four bytes");
        Lead {
            offer: u32::from_le_bytes(word(0)),
            claimed: u32::from_le_bytes(word(4)),
            prices: Prices::decode(bytes[8..].try_into().expect("prices")),
        }
    }
}

impl Wish {
    /// Checks that all ranks make the same request: otherwise returns a fault on all. The ranks'
    /// files are compared once they are open.
    pub fn agree(members: &Members<'_>, (filename, info): (Text, InfoH), mode: i32) -> Res<Wish> {
        let asked = || -> Res<Asked> {
            check_amode(mode)?;
            Ok(Asked {
                hints: with_info(Hints::default(), members.mpi, info)?,
                path: path_of(filename)?,
            })
        };
        let asked = asked();
        let text = asked
            .as_ref()
            .map_or(String::new(), |a| hints_text(&a.hints));
        let record = bytes_of([u64::from(mode as u32), hash(text.as_bytes())]);
        let hosts = hosts_of(members)?;
        let (asked, all, lead) =
            all_tell_and(members, asked, &record, |all| {
                match other_than_first(all, record.len()) {
                    None => Ok(Lead::make(members, on_one_host(&hosts))?.encode()),
                    Some(_) => Ok([0; LEAD]),
                }
            })?;
        if let Some(other) = other_than_first(&all, record.len()) {
            let [theirs, _] = words_of(&all[other * record.len()..]);
            if theirs != words_of::<2>(&all)[0] {
                return differ(Class::NotSame, "amode", other, (mode, members.rank));
            }
            members.alike("the list of hints", &text)?;
            return fail(Class::Intern, "hints that differ are the same");
        }
        let lead = Lead::decode(&lead);
        let own = match members.rank {
            0 => lead.offer,
            _ => u32::MAX,
        };
        Ok(Wish {
            path: asked.path,
            hints: asked.hints,
            mode,
            hosts,
            prices: lead.prices,
            claimed: lead.claimed,
            offers: (own, lead.offer),
        })
    }

    /// Undoes the opening of the file.
    pub fn give_back(&self, members: &Members<'_>) {
        if let Ok(reached) = counter::reach(members.mpi, self.claimed, &members.group) {
            leave(reached);
        }
    }

    /// Flags for the system.
    fn access(&self) -> Access {
        let mode = self.mode;
        Access {
            read: mode & (amode::RDONLY | amode::RDWR) != 0,
            write: mode & (amode::WRONLY | amode::RDWR) != 0,
            create: mode & amode::CREATE != 0,
            exclusive: mode & amode::EXCL != 0,
            permissions: self.hints.permissions.unwrap_or(PERMISSIONS),
        }
    }
}

/// A file that all ranks have opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub path: PathBuf,
    pub storage: File,
    pub hints: Hints,
    /// The host number of each rank.
    pub hosts: Vec<u32>,
    /// How many ranks of each host access the file for others.
    pub each: u32,
    /// Communication costs, the same on all ranks.
    pub prices: Prices,
    /// Whether each host may keep data of the file that others have changed since.
    pub host_caches: bool,
    /// With MPI_MODE_APPEND: the end of the file found by rank 0.
    pub end: u64,
    /// The shared file pointer, in memory that all ranks have reached.
    pub reached: Option<HostCounter>,
}

/// Properties of the file that a rank has found.
struct Found {
    file: File,
    host_caches: bool,
    end: u64,
}

/// The second exchange: all ranks open the file, or none does.
pub(super) fn open_together(mpi: &Mpi, ranks: &Ranks, wish: Wish) -> Res<Opened> {
    let reached = counter::reach(mpi, wish.claimed, &ranks.group)?;
    let talk = ranks.with(mpi);
    let members = talk.members();
    let made = make_first(&members, &wish);
    let opened = made.and_then(|made| compare(&members, &wish, (made, reached.is_some())));
    match opened {
        Ok(Compared {
            found,
            end,
            each,
            all_reached,
        }) => {
            let reached = match all_reached {
                true => reached,
                false => leave(reached),
            };
            Ok(Opened {
                path: wish.path,
                storage: found.file,
                hints: wish.hints,
                hosts: wish.hosts,
                each,
                prices: wish.prices,
                host_caches: found.host_caches,
                end,
                reached,
            })
        }
        Err(fault) => {
            leave(reached);
            Err(fault)
        }
    }
}

fn leave(reached: Option<HostCounter>) -> Option<HostCounter> {
    reached.into_iter().for_each(HostCounter::leave);
    None
}

fn try_open(members: &Members<'_>, path: &Path, access: Access) -> Res<File> {
    let what = match access.create {
        true => "create",
        false => "open",
    };
    File::open(path, access).map_err(|e| failed(members.rank, what, path, &e))
}

/// Opens the file: one rank creates it; the others find it.
fn make_first(members: &Members<'_>, wish: &Wish) -> Res<Option<File>> {
    let access = wish.access();
    if !access.create {
        return Ok(None);
    }
    let first = (members.rank == 0).then(|| try_open(members, &wish.path, access));
    as_first(members, first.transpose())
}

/// Opens the file on this rank, once it exists.
fn find(members: &Members<'_>, wish: &Wish, made: Option<File>) -> Res<Found> {
    let path = &wish.path;
    let failed = |what, e| failed(members.rank, what, path, &e);
    let file = match made {
        Some(file) => file,
        None => try_open(
            members,
            path,
            Access {
                create: false,
                exclusive: false,
                ..wish.access()
            },
        )?,
    };
    let host_caches = !on_one_host(&wish.hosts) && !file.is_coherent().unwrap_or(false);
    if host_caches {
        file.refresh().map_err(|e| failed("refresh", e))?;
    }
    let end = match wish.mode & amode::APPEND {
        0 => 0,
        _ => file.len().map_err(|e| failed("find the end of", e))?,
    };
    Ok(Found {
        file,
        host_caches,
        end,
    })
}

/// The properties that the ranks have exchanged of their files.
struct Compared {
    found: Found,
    end: u64,
    each: u32,
    all_reached: bool,
}

/// Words of a rank's record about its file.
const WORDS: usize = 6;

/// Compares the files that the ranks have opened.
fn compare(
    members: &Members<'_>,
    wish: &Wish,
    (made, reached): (Option<File>, bool),
) -> Res<Compared> {
    let found = find(members, wish, made);
    let name = hash(wish.path.as_os_str().as_bytes());
    let of_file = |f: &Found| (f.file.identity(), f.end);
    let ((device, number), end) = found.as_ref().map_or(((0, 0), 0), of_file);
    let reached = u64::from(reached);
    let record = bytes_of([name, device, number, processors(), end, reached]);
    let access = wish.access();
    let result = all_tell(members, found, &record).inspect_err(|_| {
        // The next attempt must not find a file that no rank has opened.
        if members.rank == 0 && access.create && access.exclusive {
            let _ = File::remove(&wish.path);
        }
    });
    let (found, all) = result?;
    let all: Vec<[u64; WORDS]> = all.chunks_exact(record.len()).map(words_of).collect();
    same_file(&all)?;
    Ok(Compared {
        found,
        end: all[0][4],
        each: aggregators_each(&wish.hosts, all.iter().map(|record| record[3])),
        all_reached: all.iter().all(|record| record[5] == 1),
    })
}

/// Reports that ranks name different files. The system's identity of a file may differ from host to
/// host; its path may differ from rank to rank. If neither is the same, it is a different file.
fn same_file(all: &[[u64; WORDS]]) -> Res {
    let first = &all[0];
    let other = all
        .iter()
        .position(|their| their[0] != first[0] && their[2] != first[2]);
    match other {
        None => Ok(()),
        Some(rank) => fail!(NotSame: "filename names another file on rank {rank} than on rank 0"),
    }
}

fn hosts_of(members: &Members<'_>) -> Res<Vec<u32>> {
    let mut guard = members.mpi.lock();
    let engine = running(&mut guard)?.0;
    let hosts = engine.job.hosts();
    let host = |rank| hosts.get(members.group.peer(rank).idx()).copied();
    let all: Option<Vec<u32>> = (0..members.group.size()).map(host).collect();
    // The hosts of another job are unknown: each of its ranks counts as one on a host of its own.
    Ok(all.unwrap_or_else(|| (0..members.group.size()).collect()))
}

/// The processors that this rank may run on, as bits; those of large machines share bits.
fn processors() -> u64 {
    let bit = |cpu: usize| 1u64 << (cpu % 64);
    let allowed = kw_sys::cpus::allowed();
    allowed.into_iter().fold(0, |bits, cpu| bits | bit(cpu))
}

/// How many ranks of each host access the file for others: the number of processors that the ranks
/// of a host may use, but at most [`MOST_EACH`]. `processors` are those of each rank.
fn aggregators_each(hosts: &[u32], processors: impl Iterator<Item = u64>) -> u32 {
    let mut of_host = std::collections::HashMap::new();
    for (host, bits) in hosts.iter().zip(processors) {
        *of_host.entry(host).or_insert(0u64) |= bits;
    }
    let most = of_host.values().map(|bits| bits.count_ones()).max();
    most.unwrap_or(1).clamp(1, MOST_EACH)
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
        assert_eq!(each(&[0], &[0]), 1, "no rank knows");
    }

    #[test]
    fn a_file_has_the_same_path_or_the_same_number() {
        let record = |name, number| [name, 7, number, 0, 0, 0];
        assert!(
            same_file(&[record(1, 5), record(1, 6)]).is_ok(),
            "another host"
        );
        assert!(same_file(&[record(1, 5), record(2, 5)]).is_ok(), "a link");
        let fault = same_file(&[record(1, 5), record(1, 5), record(2, 6)]);
        assert!(fault.is_err_and(|f| f.text.contains("on rank 2")));
    }

    #[test]
    fn a_lead_survives_a_message() {
        let lead = Lead {
            offer: 0x8000_0001,
            claimed: NO_MEMORY - 1,
            prices: Prices::default(),
        };
        let back = Lead::decode(&lead.encode());
        assert_eq!((back.offer, back.claimed), (lead.offer, lead.claimed));
        assert_eq!(back.prices, lead.prices);
    }
}
