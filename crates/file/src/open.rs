//! The object of an MPI_File: an open file as one rank sees it.

use crate::agree::{Ranks, Talk, as_first};
use crate::costs::Costs;
use crate::counter::Counter;
use crate::fault::failed;
use crate::group::Group;
use crate::representation::Representation;
use crate::scratch::Scratch;
use crate::storage::Storage;
use crate::transfer::Sieve;
use crate::worker::Worker;
use kw_base::sync::{Mutex, MutexGuard, OnceLock};
use kw_io_plan::{Hints, Prices, View};
use kw_objects::error::{Class, Res, fail};
use kw_objects::handle::{CommH, FileH, RequestH, TypeH};
use kw_objects::state::{Mpi, Tables};
use kw_types::layout::Layout;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::PoisonError;

/// Access modes (MPI 5.0, 14.2.1).
pub mod amode {
    /// MPI_MODE_APPEND
    pub const APPEND: i32 = 1;
    /// MPI_MODE_CREATE
    pub const CREATE: i32 = 2;
    /// MPI_MODE_DELETE_ON_CLOSE
    pub const DELETE_ON_CLOSE: i32 = 4;
    /// MPI_MODE_EXCL
    pub const EXCL: i32 = 8;
    /// MPI_MODE_RDONLY
    pub const RDONLY: i32 = 16;
    /// MPI_MODE_RDWR
    pub const RDWR: i32 = 32;
    /// MPI_MODE_SEQUENTIAL
    pub const SEQUENTIAL: i32 = 64;
    /// MPI_MODE_UNIQUE_OPEN
    pub const UNIQUE_OPEN: i32 = 128;
    /// MPI_MODE_WRONLY
    pub const WRONLY: i32 = 256;
    /// All of them.
    pub const ALL: i32 = 511;
}

/// A datatype of a view, kept after the user has freed the handle.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The handle, if it names a predefined datatype.
    pub predefined: Option<TypeH>,
    /// The layout in memory.
    pub layout: Arc<Layout>,
    /// Its creation arguments, for queries.
    pub recipe: Option<Arc<kw_objects::datatype::Recipe>>,
}

impl Kept {
    /// A committed datatype.
    pub fn of(tables: &Tables, handle: TypeH) -> Res<Kept> {
        tables.layout(handle)?;
        Kept::of_any(tables, handle)
    }

    /// Any datatype.
    pub fn of_any(tables: &Tables, handle: TypeH) -> Res<Kept> {
        let found = tables.datatype(handle)?;
        Ok(Kept {
            predefined: found.recipe.is_none().then_some(handle),
            layout: found.layout.clone(),
            recipe: found.recipe.clone(),
        })
    }
}

/// A view, and the datatypes with which it was set.
#[derive(Debug)]
pub struct Seen {
    /// Mapping of data to the file.
    pub view: View,
    /// The elementary type.
    pub etype: Kept,
    /// The file type.
    pub filetype: Kept,
    /// Representation of the data in the file.
    pub representation: Representation,
    /// Bytes of the data that a file can hold, once they were needed.
    capacity: OnceLock<u64>,
}

impl Seen {
    /// A view that was set with these datatypes.
    pub fn new(view: View, etype: Kept, filetype: Kept, representation: Representation) -> Seen {
        Seen {
            view,
            etype,
            filetype,
            representation,
            capacity: OnceLock::new(),
        }
    }

    /// Bytes of the data that a file can hold.
    pub fn capacity(&self) -> u64 {
        *self.capacity.get_or_init(|| self.view.capacity())
    }
}

/// A split collective operation in progress.
#[derive(Debug)]
pub struct Split {
    /// The function that ends it.
    pub end: &'static str,
    /// Its request.
    pub request: RequestH,
}

/// State that calls change.
#[derive(Debug)]
pub struct Cursor {
    /// The view.
    pub seen: Arc<Seen>,
    /// The individual file pointer, in bytes of the view's data.
    pub pointer: u64,
    /// A split collective operation in progress.
    pub split: Option<Split>,
    /// The hints.
    pub hints: Hints,
    /// Atomic mode.
    pub atomic: bool,
}

/// An open file.
#[derive(Debug)]
pub struct Open {
    /// Its path.
    pub path: PathBuf,
    /// Its access mode.
    pub amode: i32,
    /// Its own communicator.
    pub comm: CommH,
    /// The ranks that have it open.
    pub ranks: Ranks,
    /// The host number of each rank.
    pub hosts: Vec<u32>,
    /// How many ranks of each host access the file for others.
    pub each: u32,
    /// Communication costs.
    pub prices: Prices,
    /// Memory for data of other ranks.
    pub scratch: Scratch,
    /// The file.
    pub storage: Arc<dyn Storage>,
    /// Whether each host may keep data of the file that others have changed since (NFS, FUSE).
    pub host_caches: bool,
    /// The shared file pointer, in bytes of the view's data.
    pub shared: Counter,
    /// Runs nonblocking independent operations.
    pub alone: Worker,
    /// Runs nonblocking and split collective operations.
    pub together: Worker,
    /// Measured costs of reads.
    pub reading: Costs,
    /// Measured costs of writes.
    pub writing: Costs,
    /// State that calls change.
    cursor: Mutex<Cursor>,
}

impl Open {
    /// Creates the state of an open file.
    pub fn new(
        path: PathBuf,
        amode: i32,
        comm: CommH,
        (ranks, hosts, each, prices): (Ranks, Vec<u32>, u32, Prices),
        (storage, host_caches): (Arc<dyn Storage>, bool),
        shared: Counter,
        cursor: Cursor,
    ) -> Open {
        Open {
            path,
            amode,
            comm,
            ranks,
            hosts,
            each,
            prices,
            scratch: Scratch::default(),
            storage,
            host_caches,
            shared,
            alone: Worker::new("kw-file"),
            together: Worker::new("kw-file-all"),
            reading: Costs::default(),
            writing: Costs::default(),
            cursor: Mutex::new(cursor),
        }
    }

    /// State that calls change.
    pub fn cursor(&self) -> MutexGuard<'_, Cursor> {
        self.cursor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The view.
    pub fn seen(&self) -> Arc<Seen> {
        self.cursor().seen.clone()
    }

    /// The ranks, for communication in this thread: after the collective operations in the
    /// background have ended, which use the same communicator.
    pub fn in_turn<'a>(&'a self, mpi: &'a Mpi) -> Talk<'a> {
        self.together.end();
        self.ranks.with(mpi)
    }

    /// Sets the shared file pointer; all ranks call it.
    pub fn set_shared(&self, mpi: &Mpi, talk: &Talk<'_>, at: u64) -> Res {
        let set = match talk.rank() {
            0 => self.shared.set(mpi, at),
            _ => Ok(()),
        };
        as_first(&talk.members(), set)
    }

    /// Makes the next read of every rank find what other hosts have stored; all ranks call it.
    pub fn refresh(&self, talk: &Talk<'_>) -> Res {
        if on_one_host(&self.hosts) {
            return Ok(());
        }
        let refreshed = match self.host_caches {
            false => Ok(()),
            true => self.storage.refresh(),
        };
        let refreshed = refreshed.map_err(|e| failed(talk.rank(), "refresh", &self.path, &e));
        talk.all_or_none(refreshed)
    }

    /// Refuses operations that the access mode does not allow.
    pub fn check_direction(&self, writes: bool) -> Res {
        if writes && self.amode & amode::RDONLY != 0 {
            let path = self.path.display();
            return fail!(ReadOnly: "'{path}' was opened with MPI_MODE_RDONLY and cannot be written");
        }
        if !writes && self.amode & amode::WRONLY != 0 {
            let path = self.path.display();
            return fail!(Access: "'{path}' was opened with MPI_MODE_WRONLY and cannot be read");
        }
        Ok(())
    }

    /// Refuses operations between the two parts of a split collective operation.
    pub fn check_not_split(&self) -> Res {
        match &self.cursor().split {
            None => Ok(()),
            Some(split) => {
                fail!(Request: "an earlier split collective operation has not been completed: call {} first",
                    split.end)
            }
        }
    }

    /// Refuses operations that MPI_MODE_SEQUENTIAL does not allow.
    pub fn check_not_sequential(&self, what: &str) -> Res {
        if self.amode & amode::SEQUENTIAL == 0 {
            return Ok(());
        }
        let path = self.path.display();
        fail!(UnsupportedOperation: "'{path}' was opened with MPI_MODE_SEQUENTIAL, where {what} cannot be used: use the shared file pointer")
    }

    /// Costs of accesses of one kind.
    pub fn costs(&self, writes: bool) -> &Costs {
        match writes {
            true => &self.writing,
            false => &self.reading,
        }
    }

    /// Limits for reading gaps together with pieces.
    pub fn sieve(&self, hints: &Hints) -> Option<Sieve> {
        use kw_io_plan::hints::Switch;
        let cost = self.reading.now();
        let gap = match hints.sieve_reads {
            Switch::Disable => return None,
            Switch::Enable => hints.sieve,
            Switch::Automatic => cost.bytes_of_a_call(),
        };
        let buffer = cost.sieve_step(hints.sieve);
        Some(Sieve { buffer, gap })
    }
}

/// Whether the ranks with these host numbers are all on one host.
pub fn on_one_host(hosts: &[u32]) -> bool {
    hosts.iter().all(|host| *host == hosts[0])
}

/// The open file of a handle.
pub fn open_file(tables: &Tables, handle: FileH) -> Res<Arc<Open>> {
    let core = tables.file(handle)?.core.clone();
    match core.downcast::<Open>() {
        Ok(open) => Ok(open),
        Err(_) => fail(Class::Intern, "a file handle names something else"),
    }
}

/// The open file of a handle, for a caller without the lock.
pub fn find(mpi: &Mpi, handle: FileH) -> Res<Arc<Open>> {
    open_file(&mpi.lock().above, handle)
}
