//! The memory of a window: the program's, memory that the ranks of a host share, or memory of this
//! rank alone if they cannot share any.

use crate::hints::Hints;
use crate::make::Share;
use kw_engine::windows::{
    Extent, Memory, SharedMemory, SharedMemoryFile, SharedMemoryJoin, SharedMemoryLead, ShmError,
};
use kw_mpi::chapter::{Members, running};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::state::Mpi;
use kw_objects::window::{Part, Reach};
use kw_sys::buf::{Addr, Buf};
use kw_sys::mem::usable;
use std::sync::Arc;

/// The memory that a rank requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// The program's, at this address.
    Lent(Addr),
    /// Allocated, shared if possible.
    Allocated,
    /// Allocated and shared with all ranks.
    Shared,
    /// None yet.
    Dynamic,
}

/// A rank that is ready to get memory from a socket.
enum Ready {
    /// It creates the memory.
    Gives(SharedMemoryLead),
    /// It is connected to the rank that does.
    Takes(SharedMemoryJoin),
    /// No other rank of its host takes part.
    Alone,
}

/// The ranks of a communicator that share memory with this one.
#[derive(Debug)]
pub struct Neighbours {
    /// Their ranks, in order; this one among them.
    ranks: Vec<u32>,
    me: u32,
    /// Ranks of the communicator.
    size: u32,
    key: [u8; 32],
    /// The memory that this rank creates: the file, and its name.
    file: Option<(SharedMemoryFile, Name)>,
}

impl Neighbours {
    /// Creates the state of these members.
    pub fn of(mpi: &Mpi, members: &Members<'_>) -> Res<Neighbours> {
        let mut guard = mpi.lock();
        let engine = running(&mut guard)?.0;
        let (group, me) = (&members.group, members.rank);
        let near = |&rank: &u32| rank == me || engine.shares_memory(group.peer(rank));
        Ok(Neighbours {
            ranks: (0..group.size()).filter(near).collect(),
            me,
            size: group.size(),
            key: *engine.job.key(),
            file: None,
        })
    }

    /// Refuses a communicator with ranks that share no memory with this one.
    pub fn expect_all(&self) -> Res {
        let far = (0..self.size).find(|rank| !self.ranks.contains(rank));
        match far {
            None => Ok(()),
            Some(rank) => fail!(RmaShared:
                "comm has rank {rank}, which shares no memory with rank {}: split it with MPI_Comm_split_type and MPI_COMM_TYPE_SHARED first, and do not exclude shm with KW_PATHS", self.me),
        }
    }

    /// Prepares the memory on the first of several ranks. It is an error if it cannot and memory
    /// `must` be shared.
    pub fn make_file(&mut self, must: bool) -> Res {
        if !self.leads() {
            return Ok(());
        }
        let file = SharedMemoryFile::new();
        match file.and_then(|file| Ok((file.name()?, file))) {
            Ok((name, file)) => self.file = Some((file, name)),
            Err(error) if must => return Err(unshared(&error)),
            Err(_) => {}
        }
        Ok(())
    }

    /// Where the others find the memory that this rank creates; zeros for nowhere.
    pub fn name(&self) -> Name {
        self.file.as_ref().map_or(NOWHERE, |(_, name)| *name)
    }

    /// Whether this rank creates the memory of several.
    fn leads(&self) -> bool {
        self.ranks.len() > 1 && self.ranks[0] == self.me
    }

    /// The name sent by the first of these ranks.
    fn found<'a>(&self, names: &'a [Name]) -> &'a Name {
        &names[self.ranks[0] as usize]
    }

    /// The memory of the file created by the first of them.
    fn open(
        &self,
        names: &[Name],
        sizes: &[u64],
        contiguous: bool,
    ) -> Result<Arc<SharedMemory>, ShmError> {
        match &self.file {
            Some((file, _)) => file.make(sizes, contiguous),
            None => SharedMemory::open(self.found(names), self.place(), sizes, contiguous),
        }
    }

    /// Prepares to hand the memory out, or to take it from the first of them.
    fn get_ready(&self, lead: Lead, names: &[Name]) -> Result<Ready, ShmError> {
        match lead? {
            _ if self.ranks.len() == 1 => Ok(Ready::Alone),
            Some(lead) => Ok(Ready::Gives(lead)),
            None => SharedMemoryJoin::new(self.found(names)).map(Ready::Takes),
        }
    }

    /// The bytes of each of them.
    fn sizes(&self, extents: &[Extent]) -> Vec<u64> {
        let ranks = self.ranks.iter();
        ranks.map(|&rank| extents[rank as usize].size).collect()
    }

    /// The place of this rank among them.
    fn place(&self) -> usize {
        let place = self.ranks.iter().position(|&rank| rank == self.me);
        place.unwrap_or(0)
    }
}

/// The socket with which the first of several ranks of a host hands out memory; the others have
/// none.
type Lead = Result<Option<SharedMemoryLead>, ShmError>;

/// Tells ranks of a host where memory is.
pub type Name = [u8; 16];

const NOWHERE: Name = [0; 16];

#[cold]
fn unshared(error: &ShmError) -> Box<Fault> {
    Fault::new(Class::RmaShared, error.to_string())
}

#[cold]
fn too_much(bytes: u64) -> Box<Fault> {
    Fault::new(
        Class::NoMem,
        format!("the system has no {bytes} bytes of memory left for the window"),
    )
}

/// Memory up to this many bytes is not compared with the memory of the host: the query takes longer
/// than the creation of a window.
const UNCHECKED: u64 = 4 << 20;

/// Refuses more memory than there is.
pub fn check_size(size: u64) -> Res {
    if size > UNCHECKED && size > usable() {
        return Err(too_much(size));
    }
    Ok(())
}

/// Refuses more memory of a host than there is: otherwise a program would notice it only when it
/// touches the memory.
fn check_sizes(sizes: &[u64]) -> Res {
    check_size(sizes.iter().fold(0, |sum: u64, &s| sum.saturating_add(s)))
}

/// The memory of a new window.
#[derive(Debug)]
pub struct Made {
    /// The memory for the engine.
    pub memory: Memory,
    /// The ranks whose memory this rank accesses directly: always its own, except for a dynamic
    /// window.
    pub parts: Vec<Part>,
    /// Ranks whose memory the ranks access directly.
    pub reach: Reach,
    me: u32,
}

impl Made {
    /// Address of this rank's memory.
    pub fn own_base(&self) -> usize {
        let own = self.parts.iter().find(|part| part.rank == self.me);
        own.map_or(0, |part| part.base)
    }
}

/// Creates the memory on which all ranks have agreed. All call it, with the data that each has
/// sent.
pub fn make(
    members: &Members<'_>,
    near: Neighbours,
    (share, hints): (Share, &Hints),
    extents: &[Extent],
    names: &[Name],
) -> Res<Made> {
    let (me, extent) = (near.me, share.extent);
    match share.wish {
        Wish::Dynamic => Ok(Made {
            memory: Memory::Dynamic,
            parts: Vec::new(),
            reach: Reach::Own,
            me,
        }),
        Wish::Lent(base) => {
            let size = extent.size;
            Ok(alone(Memory::Lent { base, size }, base.bits(), me, extent))
        }
        Wish::Allocated | Wish::Shared => allocated(members, near, (share, hints), extents, names),
    }
}

/// Memory that the ranks of each host share; each rank's own if that is not possible.
fn allocated(
    members: &Members<'_>,
    near: Neighbours,
    (share, hints): (Share, &Hints),
    extents: &[Extent],
    names: &[Name],
) -> Res<Made> {
    let must = share.wish == Wish::Shared;
    let me = near.me;
    let own = || own(me, share.extent, hints.alignment());
    // All ranks see the same names.
    if names.iter().any(|name| *name != NOWHERE) {
        let contiguous = must && !hints.is_true("alloc_shared_noncontig");
        let reach = match near.ranks.len() == extents.len() {
            true => Reach::All,
            false => Reach::Some,
        };
        let opened = match near.ranks.len() {
            1 => own(),
            _ => shared(&near, extents, |sizes| near.open(names, sizes, contiguous)),
        };
        let mut made = all_or_none(members, Class::RmaShared, opened)?;
        if made.is_err() {
            made = handed_out(members, &near, extents, (contiguous, own))?;
        }
        if must || made.is_ok() {
            // A rank that is alone on its host knows that others are not.
            return made.map(|made| Made { reach, ..made });
        }
    }
    all_or_none(members, Class::NoMem, own())?
}

/// Memory that a socket hands out, because a rank may not be allowed to open files of another one.
/// No rank waits for another before all are connected.
fn handed_out(
    members: &Members<'_>,
    near: &Neighbours,
    extents: &[Extent],
    (contiguous, own): (bool, impl FnOnce() -> Res<Made>),
) -> Res<Res<Made>> {
    let (lead, names) = listen(members, near)?;
    let ready = check_sizes(&near.sizes(extents)).and_then(|()| {
        let ready = near.get_ready(lead, &names);
        ready.map_err(|error| unshared(&error))
    });
    let (key, place) = (&near.key, near.place());
    let made = match all_or_none(members, Class::RmaShared, ready)? {
        Err(fault) => return Ok(Err(fault)),
        Ok(Ready::Alone) => own(),
        Ok(Ready::Gives(lead)) => shared(near, extents, |sizes| lead.serve(key, sizes, contiguous)),
        Ok(Ready::Takes(join)) => shared(near, extents, |sizes| {
            join.take(key, place, sizes, contiguous)
        }),
    };
    all_or_none(members, Class::RmaShared, made)
}

/// The first rank of each host listens for the others; returns the address of each.
fn listen(members: &Members<'_>, near: &Neighbours) -> Res<(Lead, Vec<Name>)> {
    let lead = near
        .leads()
        .then(|| SharedMemoryLead::new(near.ranks.len()));
    let lead = lead.transpose();
    let name = match &lead {
        Ok(Some(lead)) => lead.name(),
        _ => NOWHERE,
    };
    let all = members.allgather(&name)?;
    let names = all.chunks_exact(NOWHERE.len());
    let names = names.map(|name| name.try_into().unwrap_or(NOWHERE));
    Ok((lead, names.collect()))
}

/// The memory of all ranks; an error on all ranks if one has none, with the reason of the first
/// such rank.
fn all_or_none<T>(members: &Members<'_>, class: Class, mine: Res<T>) -> Res<Res<T>> {
    if members.all(mine.is_ok())? {
        return Ok(mine);
    }
    let have = members.allgather(&[mine.is_ok() as u8])?;
    let first = have.iter().position(|&has| has == 0).unwrap_or_default();
    let text = mine.as_ref().err().map_or("", |fault| &fault.text);
    let text = members.led_by(first as u32).hear_text(text)?;
    Ok(mine.and_then(|_| fail(class, format!("on rank {first}: {text}"))))
}

fn part(rank: u32, base: usize, extent: Extent) -> Part {
    Part {
        rank,
        base,
        size: extent.size,
        unit: extent.unit,
    }
}

/// Memory that is this rank's alone.
fn alone(memory: Memory, base: usize, me: u32, extent: Extent) -> Made {
    Made {
        memory,
        parts: vec![part(me, base, extent)],
        reach: Reach::Own,
        me,
    }
}

/// Memory that the ranks of this host share, and have in this way, given the sizes of their parts.
fn shared(
    near: &Neighbours,
    extents: &[Extent],
    have: impl FnOnce(&[u64]) -> Result<Arc<SharedMemory>, ShmError>,
) -> Res<Made> {
    let (ranks, me, sizes) = (near.ranks.clone(), near.me, near.sizes(extents));
    check_sizes(&sizes)?;
    let memory = have(&sizes).map_err(|error| unshared(&error))?;
    let places = ranks.iter().enumerate();
    let parts = places.map(|(place, &rank)| {
        let (base, _) = memory.part(place);
        part(rank, base.bits(), extents[rank as usize])
    });
    Ok(Made {
        parts: parts.collect(),
        reach: Reach::Some,
        memory: Memory::Shared { memory, ranks },
        me,
    })
}

/// The minimum alignment of a window's memory: a cache line.
const ALIGN: u64 = 64;

/// Zeroed memory of this rank alone, which is freed with the window.
fn own(me: u32, extent: Extent, align: u64) -> Res<Made> {
    match own_memory(extent.size, align) {
        Some((base, memory)) => Ok(alone(Memory::Own(memory), base, me, extent)),
        None => Err(too_much(extent.size)),
    }
}

fn own_memory(size: u64, align: u64) -> Option<(usize, Buf)> {
    let align = align.max(ALIGN);
    let room = usize::try_from(size.checked_add(align)?).ok()?;
    let whole = Buf::try_alloc(room)?;
    let first = whole.contiguous()?;
    let skip = first.next_multiple_of(align as usize) - first;
    Some((first + skip, whole.slice(skip as u64, size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_window_is_aligned_and_as_long_as_asked() {
        for (size, align) in [(0, 1), (1, 64), (1000, 4096)] {
            let (base, memory) = own_memory(size, align).expect("a little memory");
            assert_eq!(base % align.max(ALIGN) as usize, 0);
            assert_eq!((memory.contiguous(), memory.len()), (Some(base), size));
        }
        assert!(own_memory(u64::MAX, 64).is_none());
        assert!(own_memory(1 << 62, 64).is_none());
    }
}
