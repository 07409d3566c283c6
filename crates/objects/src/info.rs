//! Info objects: ordered pairs of key and value (MPI 5.0, chapter 10). Usable before
//! initialisation.

use crate::error::{Class, Fault, Res, fail};
use crate::handle::InfoH;
use kw_base::Slab;
use kw_coll::Table;

/// MPI_MAX_INFO_KEY, final zero included.
pub const MAX_KEY: usize = 256;
/// MPI_MAX_INFO_VAL, final zero included.
pub const MAX_VALUE: usize = 1024;

/// Known hints about a communicator, which MPI_Comm_get_info returns (MPI 5.0, 7.4.4).
const COMM_HINTS: &[&str] = &[
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
    "mpi_assert_memory_alloc_kinds",
    ROWS_HINT,
];

/// Our own hint: rows of the selection table of collectives (in the format of KW_COLL) for one
/// communicator, the same on all ranks.
pub const ROWS_HINT: &str = "kw_coll";

/// Pairs of key and value, in the order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    pairs: Vec<(String, String)>,
}

impl Info {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str())
    }

    /// Sets or replaces a value.
    pub fn set(&mut self, key: &str, value: &str) {
        match self.pairs.iter_mut().find(|(k, _)| k == key) {
            Some((_, v)) => *v = value.to_string(),
            None => self.pairs.push((key.to_string(), value.to_string())),
        }
    }

    /// Removes a key; returns whether it was there.
    pub fn delete(&mut self, key: &str) -> bool {
        let before = self.pairs.len();
        self.pairs.retain(|(k, _)| k != key);
        self.pairs.len() < before
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Key number `n`.
    pub fn key(&self, n: usize) -> Option<&str> {
        self.pairs.get(n).map(|(k, _)| k.as_str())
    }

    /// All pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Takes over the known hints about communicators.
    pub fn take_comm_hints(&mut self, from: &Info) {
        for (key, value) in from.iter() {
            let readable = key != ROWS_HINT || Table::only(value).is_ok();
            if COMM_HINTS.contains(&key) && readable {
                self.set(key, value);
            }
        }
    }
}

/// Contents of MPI_INFO_ENV (MPI 5.0, 11.2.1). `args` are those of the program, or none if the
/// caller does not know them; the same applies to `size` and `level`.
pub fn of_start(args: Vec<String>, size: Option<u32>, level: Option<i32>) -> Info {
    let args = match args.is_empty() {
        true => kw_sys::environment::words(),
        false => args,
    };
    let size = size.map(|n| n.to_string());
    let wdir = std::env::current_dir().ok();
    let known = [
        ("command", args.first().cloned()),
        ("argv", args.get(1..).map(|a| a.join(" "))),
        ("maxprocs", size.clone()),
        ("soft", size),
        ("host", Some(kw_sys::host::name())),
        ("arch", Some(std::env::consts::ARCH.to_string())),
        ("wdir", wdir.map(|d| d.to_string_lossy().into_owned())),
        ("thread_level", level.map(|l| level_name(l).to_string())),
        ("mpi_memory_alloc_kinds", Some("mpi,system".to_string())),
    ];
    let mut info = Info::default();
    for (key, value) in known {
        match value {
            Some(v) if v.len() < MAX_VALUE => info.set(key, &v),
            _ => {}
        }
    }
    info
}

fn level_name(level: i32) -> &'static str {
    match level {
        0 => "MPI_THREAD_SINGLE",
        1024 => "MPI_THREAD_FUNNELED",
        2048 => "MPI_THREAD_SERIALIZED",
        _ => "MPI_THREAD_MULTIPLE",
    }
}

/// All info objects.
#[derive(Debug, Default)]
pub struct Infos {
    /// User-created objects.
    pub made: Slab<Info>,
    /// MPI_INFO_ENV.
    pub env: Info,
}

impl Infos {
    /// The info object of a handle; MPI_INFO_NULL is an error.
    pub fn get(&self, handle: InfoH) -> Res<&Info> {
        let found = match handle {
            InfoH::ENV => Some(&self.env),
            _ => handle.key().and_then(|k| self.made.get(k)),
        };
        found.ok_or_else(|| unknown_info(handle))
    }

    /// The info object of a handle that may be MPI_INFO_NULL.
    pub fn get_or_null(&self, handle: InfoH) -> Res<Option<&Info>> {
        if handle.is_null() {
            return Ok(None);
        }
        self.get(handle).map(Some)
    }

    /// The info object of a handle, for changes.
    pub fn get_mut(&mut self, handle: InfoH) -> Res<&mut Info> {
        if handle == InfoH::ENV {
            return fail(Class::Info, "info is MPI_INFO_ENV, which cannot be changed");
        }
        let found = handle.key().and_then(|k| self.made.get_mut(k));
        found.ok_or_else(|| unknown_info(handle))
    }

    /// A handle for an info object.
    pub fn add(&mut self, info: Info) -> InfoH {
        InfoH::from_key(self.made.insert(info))
    }

    /// Removes an info object.
    pub fn free(&mut self, handle: InfoH) -> Res {
        if handle == InfoH::ENV {
            return fail(Class::Info, "info is MPI_INFO_ENV, which cannot be freed");
        }
        let gone = handle.key().and_then(|k| self.made.remove(k));
        gone.map(|_| ()).ok_or_else(|| unknown_info(handle))
    }
}

#[cold]
fn unknown_info(handle: InfoH) -> Box<Fault> {
    let what = if handle.is_null() {
        "MPI_INFO_NULL".to_string()
    } else {
        format!(
            "{:#x}, which names no info object {}",
            handle.0,
            crate::handle::amiss(handle.0, "freed")
        )
    };
    Fault::new(Class::Info, format!("info is {what}"))
}
