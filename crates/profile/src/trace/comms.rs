//! Communicators: the properties of each are queried once, when it is created or first seen, and
//! kept. Windows, too: each has the members of the communicator that it was created with.
//!
//! The number that is the same on all members is derived from the members' ranks in MPI_COMM_WORLD
//! and the number of communicators with the same members that this process has seen before:
//! creating one is collective, so members agree on that number.

use std::collections::HashMap;
use std::ffi::{c_char, c_int};

use super::abi::Abi;
use super::counts;
use super::ring::Memory;
use super::topology;
use crate::next;
use kw_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kw_base::sync::{Mutex, MutexGuard, OnceLock};
use kw_start::trace::*;

/// Number of freed communicators and windows: a known handle may belong to a new one.
static FREED: AtomicU64 = AtomicU64::new(1);
/// Whether MPI_COMM_WORLD exists.
static WORLD: AtomicBool = AtomicBool::new(false);

/// Bit of a window's key among handles: no handle has it.
const WINDOW: usize = 1 << (usize::BITS - 1);

/// The key of a window's handle, which differs from every communicator's.
#[inline(always)]
pub(super) fn of_window(handle: usize) -> usize {
    handle | WINDOW
}

/// A communicator or a window. It is never freed, because there are no more than the launcher is
/// told of.
#[derive(Debug)]
pub(super) struct Comm {
    /// Its number in records.
    pub number: u32,
    /// Ranks in MPI_COMM_WORLD of the processes that arguments of calls name; `None`: every rank is
    /// its own.
    ranks: Option<Vec<i32>>,
    /// The calling process's rank.
    pub place: i32,
    collectives: AtomicU64,
    /// The hash of its members.
    members: u64,
    /// Ranks in MPI_COMM_WORLD from which the calling process receives in the communicator's
    /// topology.
    pub neighbors: Vec<i32>,
}

impl Comm {
    /// A communicator of all ranks, for tests, which have no MPI library.
    #[cfg(test)]
    pub fn of_all_ranks(number: u32) -> Comm {
        Comm {
            number,
            ranks: None,
            place: 0,
            collectives: AtomicU64::new(0),
            members: 0,
            neighbors: Vec::new(),
        }
    }

    /// The rank in MPI_COMM_WORLD.
    #[inline(always)]
    pub fn world(&self, rank: c_int) -> i32 {
        let at = rank as usize;
        match &self.ranks {
            None => rank,
            Some(ranks) => ranks.get(at).copied().unwrap_or(ABSENT),
        }
    }

    /// Translation of a rank that may be MPI_PROC_NULL.
    #[inline(always)]
    pub fn world_of(&self, abi: &Abi, rank: c_int) -> i32 {
        match abi.is_nobody(rank) {
            true => ABSENT,
            false => self.world(rank),
        }
    }

    /// Translation of the source of a receive.
    #[inline(always)]
    pub fn source(&self, abi: &Abi, rank: c_int) -> i32 {
        match abi.is_any_source(rank) {
            true => ANY,
            false => self.world_of(abi, rank),
        }
    }

    /// Number of the next collective.
    #[inline(always)]
    pub fn next_collective(&self) -> u64 {
        counts::add_one(&self.collectives)
    }
}

/// MPI's description of a communicator.
struct CommInfo {
    ranks: Option<Vec<i32>>,
    place: i32,
    members: u64,
    neighbors: Vec<i32>,
}

/// Communicators that a thread has seen.
#[derive(Debug)]
pub(super) struct Seen {
    places: [SeenHandle; 8],
}

#[derive(Clone, Copy, Debug)]
struct SeenHandle {
    handle: usize,
    /// Number of freed communicators at that time.
    then: u64,
    comm: Option<&'static Comm>,
    /// Rounds up to a multiple of two.
    _pad: usize,
}

impl Seen {
    pub const fn new() -> Seen {
        Seen {
            places: [SeenHandle {
                handle: 0,
                then: 0,
                comm: None,
                _pad: 0,
            }; 8],
        }
    }

    /// The communicator of a handle, if it is known.
    #[inline(always)]
    pub fn find(&mut self, handle: usize) -> Option<&'static Comm> {
        let now = FREED.load(Ordering::Relaxed);
        let place = &self.places[Self::at(handle)];
        match place.handle == handle && place.then == now {
            true => place.comm,
            false => self.look(handle, now),
        }
    }

    #[inline(always)]
    fn at(handle: usize) -> usize {
        (handle ^ handle >> 4 ^ handle >> 8) & 7
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, handle: usize, now: u64) -> Option<&'static Comm> {
        let comm = all().known.get(&handle).copied();
        if comm.is_some() {
            self.places[Self::at(handle)] = SeenHandle {
                handle,
                then: now,
                comm,
                _pad: 0,
            };
        }
        comm
    }
}

#[derive(Default)]
struct All {
    known: HashMap<usize, &'static Comm>,
    made: HashMap<u64, u64>,
    used: u32,
    world: usize,
}

fn all() -> MutexGuard<'static, All> {
    static ALL: OnceLock<Mutex<All>> = OnceLock::new();
    let all = ALL.get_or_init(Mutex::default);
    all.lock().unwrap_or_else(|e| e.into_inner())
}

/// Describes the first two communicators once MPI is initialised, in the same order on all ranks.
#[cold]
pub(super) fn begin(memory: Memory, abi: &Abi) {
    let Some(ask) = ask() else { return };
    let mut world = 0;
    // SAFETY: MPI has been initialised, so MPI_COMM_WORLD is a communicator.
    if unsafe { (ask.group)(abi.world, &mut world) } != 0 {
        return;
    }
    all().world = world;
    counts::set_threads(abi.calls_at_once());
    WORLD.store(true, Ordering::Relaxed);
    made(memory, abi, abi.world);
    made(memory, abi, abi.this);
}

/// Describes a communicator that was created, or is seen for the first time.
#[cold]
pub(super) fn made(memory: Memory, abi: &Abi, handle: usize) -> Option<&'static Comm> {
    if handle == abi.null || handle == 0 || !WORLD.load(Ordering::Relaxed) {
        return None;
    }
    let ask = ask()?;
    let world = all().world;
    // SAFETY: MPI has just created it, or has just accepted it.
    let found = unsafe { ask.members(abi, handle, world)? };
    let name = name(ask, handle);
    Some(all().add(memory, handle, found, |_| name))
}

/// Describes a window that was created with a communicator.
#[cold]
pub(super) fn made_window(memory: Memory, handle: usize, of: &Comm) {
    if of.number == 0 {
        return;
    }
    let found = CommInfo {
        ranks: of.ranks.clone(),
        place: of.place,
        // differs from that of a communicator with the same members
        members: mix(of.members ^ WINDOW as u64),
        neighbors: Vec::new(),
    };
    let name = |id: u64| format!("window {:04x}", id & 0xffff).into_bytes();
    all().add(memory, of_window(handle), found, name);
}

/// Ranks in MPI_COMM_WORLD of the members of a group.
#[cold]
pub(super) fn of_group(group: usize) -> Vec<i32> {
    let world = all().world;
    // SAFETY: MPI has just accepted the group.
    let ranks = ask().and_then(|ask| unsafe { ask.in_world(group, world) });
    ranks.unwrap_or_default()
}

/// Describes a copy of a communicator, which cannot be queried yet.
#[cold]
pub(super) fn copied(memory: Memory, abi: &Abi, handle: usize, of: &Comm) -> Option<&'static Comm> {
    let found = CommInfo {
        ranks: of.ranks.clone(),
        place: of.place,
        members: of.members,
        neighbors: of.neighbors.clone(),
    };
    (handle != abi.null).then(|| all().add(memory, handle, found, |_| Vec::new()))
}

/// Notes that a communicator, or the window with this key, was freed.
#[cold]
pub(super) fn freed(handle: usize) {
    all().known.remove(&handle);
    // SYNC: a thread that uses the handle again has been synchronised by other means.
    FREED.fetch_add(1, Ordering::Relaxed);
}

/// Notes the name of a communicator, or of the window with this key.
#[cold]
pub(super) fn named(memory: Memory, key: usize) {
    let Some(ask) = ask() else { return };
    let name = name(ask, key);
    let all = all();
    if let Some(comm) = all.known.get(&key) {
        write_name(memory, comm.number, &name);
        let named = memory.word(COMMS_NAMED);
        named.store(named.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

fn place(number: u32) -> usize {
    COMMS_AT + number as usize * COMM
}

fn write_name(memory: Memory, number: u32, name: &[u8]) {
    let name = &name[..name.len().min(COMM - NAME_AT)];
    memory.text(place(number) + NAME_AT, name);
    let len = memory.word(place(number) + 8);
    len.store(name.len() as u64, Ordering::Release);
}

impl All {
    fn add(
        &mut self,
        memory: Memory,
        handle: usize,
        found: CommInfo,
        name: impl FnOnce(u64) -> Vec<u8>,
    ) -> &'static Comm {
        let members = found.members;
        let before = self.made.entry(members).or_default();
        let id = mix(members ^ mix(*before + 1));
        *before += 1;
        let mut number = 0; // there is no room for its description
        if (self.used as usize) < COMMS {
            self.used += 1;
            number = self.used;
            memory.word(place(number)).store(id, Ordering::Relaxed);
            write_name(memory, number, &name(id));
            // SYNC: the launcher reads descriptions up to here.
            memory
                .word(COMMS_USED)
                .store(u64::from(self.used), Ordering::Release);
        }
        let comm: &'static Comm = match number {
            0 => nothing(),
            _ => Box::leak(Box::new(Comm {
                number,
                ranks: found.ranks,
                place: found.place,
                collectives: AtomicU64::new(0),
                members,
                neighbors: found.neighbors,
            })),
        };
        self.known.insert(handle, comm);
        comm
    }
}

/// Placeholder for all communicators without a description: no rank in it is known.
fn nothing() -> &'static Comm {
    static NOTHING: OnceLock<Comm> = OnceLock::new();
    NOTHING.get_or_init(|| Comm {
        number: 0,
        ranks: Some(Vec::new()),
        place: 0,
        collectives: AtomicU64::new(0),
        members: 0,
        neighbors: Vec::new(),
    })
}

fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

fn hash(ranks: &[i32]) -> u64 {
    let all = ranks.iter().fold(ranks.len() as u64, |h, r| {
        mix(h ^ u64::from(*r as u32)).wrapping_add(0x9e37_79b9_7f4a_7c15)
    });
    mix(all)
}

type Comm2 = unsafe extern "C-unwind" fn(usize, *mut usize) -> c_int;
type Named = unsafe extern "C-unwind" fn(usize, *mut c_char, *mut c_int) -> c_int;
type Int = unsafe extern "C-unwind" fn(usize, *mut c_int) -> c_int;

/// Queries of a communicator, past all tools.
struct Ask {
    group: Comm2,
    remote_group: Comm2,
    is_inter: Int,
    rank: Int,
    group_size: Int,
    group_free: unsafe extern "C-unwind" fn(*mut usize) -> c_int,
    translate: unsafe extern "C-unwind" fn(usize, c_int, *const c_int, usize, *mut c_int) -> c_int,
    name: Named,
    window_name: Named,
}

fn ask() -> Option<&'static Ask> {
    static ASK: OnceLock<Option<Ask>> = OnceLock::new();
    let look = || {
        let of = |name| Some(next::find(name)).filter(|f| *f != 0);
        // SAFETY: functions of these names have these parameters, handles being words or pointers
        // to them, in every ABI.
        unsafe {
            Some(Ask {
                group: std::mem::transmute::<usize, Comm2>(of(c"PMPI_Comm_group")?),
                remote_group: std::mem::transmute::<usize, Comm2>(of(c"PMPI_Comm_remote_group")?),
                is_inter: std::mem::transmute::<usize, Int>(of(c"PMPI_Comm_test_inter")?),
                rank: std::mem::transmute::<usize, Int>(of(c"PMPI_Comm_rank")?),
                group_size: std::mem::transmute::<usize, Int>(of(c"PMPI_Group_size")?),
                group_free: std::mem::transmute::<
                    usize,
                    unsafe extern "C-unwind" fn(*mut usize) -> c_int,
                >(of(c"PMPI_Group_free")?),
                translate: std::mem::transmute::<
                    usize,
                    unsafe extern "C-unwind" fn(
                        usize,
                        c_int,
                        *const c_int,
                        usize,
                        *mut c_int,
                    ) -> c_int,
                >(of(c"PMPI_Group_translate_ranks")?),
                name: std::mem::transmute::<usize, Named>(of(c"PMPI_Comm_get_name")?),
                window_name: std::mem::transmute::<usize, Named>(of(c"PMPI_Win_get_name")?),
            })
        }
    };
    ASK.get_or_init(look).as_ref()
}

impl Ask {
    /// The ranks that arguments of calls name, the hash of all members, and the neighbours.
    ///
    /// # Safety
    /// `comm` is a communicator, `world` the group of MPI_COMM_WORLD.
    unsafe fn members(&self, abi: &Abi, comm: usize, world: usize) -> Option<CommInfo> {
        let (mut inter, mut place) = (0, 0);
        // SAFETY: the caller's promise.
        let (own, other) = unsafe {
            if (self.is_inter)(comm, &mut inter) != 0 || (self.rank)(comm, &mut place) != 0 {
                return None;
            }
            let own = self.ranks(self.group, comm, world)?;
            let other = match inter {
                0 => None,
                _ => Some(self.ranks(self.remote_group, comm, world)?),
            };
            (own, other)
        };
        let mut members = hash(&own);
        if let Some(other) = &other {
            // both sides compute the same
            let (a, b) = (members, hash(other));
            members = mix(a.min(b)) ^ a.max(b);
        }
        let meant = other.unwrap_or(own);
        let neighbors = match inter {
            // SAFETY: the caller's promise.
            0 => unsafe { topology::sources(abi, comm, place) },
            _ => Vec::new(),
        };
        let others = neighbors.into_iter().filter(|r| *r != place);
        let world = |r: c_int| meant.get(r as usize).copied().filter(|w| *w != ABSENT);
        let mut neighbors: Vec<i32> = others.filter_map(world).collect();
        neighbors.sort_unstable();
        neighbors.dedup();
        let is_plain = inter == 0 && meant.iter().enumerate().all(|(n, r)| n as i32 == *r);
        Some(CommInfo {
            ranks: Some(meant).filter(|_| !is_plain),
            place,
            members,
            neighbors,
        })
    }

    unsafe fn ranks(&self, of: Comm2, comm: usize, world: usize) -> Option<Vec<i32>> {
        let mut group = 0;
        // SAFETY: the caller's promise; the group is ours, and freed.
        unsafe {
            if of(comm, &mut group) != 0 {
                return None;
            }
            let ranks = self.in_world(group, world);
            (self.group_free)(&mut group);
            ranks
        }
    }

    /// Ranks of the members of a group in the group of MPI_COMM_WORLD.
    unsafe fn in_world(&self, group: usize, world: usize) -> Option<Vec<i32>> {
        let mut size = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let good = (self.group_size)(group, &mut size) == 0;
            let from: Vec<c_int> = (0..size).collect();
            let mut to = vec![ABSENT; from.len()];
            let good =
                good && (self.translate)(group, size, from.as_ptr(), world, to.as_mut_ptr()) == 0;
            to.iter_mut().filter(|r| **r < 0).for_each(|r| *r = ABSENT);
            good.then_some(to)
        }
    }
}

fn name(ask: &Ask, key: usize) -> Vec<u8> {
    let (mut text, mut len) = ([0u8; 1024], 0);
    let ask = match key & WINDOW {
        0 => ask.name,
        _ => ask.window_name,
    };
    // SAFETY: no ABI has names as long as this room.
    let code = unsafe { ask(key & !WINDOW, text.as_mut_ptr().cast(), &mut len) };
    let len = match code {
        0 => (len.max(0) as usize).min(text.len()),
        _ => 0,
    };
    text[..len].to_vec()
}
