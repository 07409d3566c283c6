//! The memory of a window: the program's, memory that the ranks of a host share, or memory of this
//! rank alone where they cannot share any.

use crate::hints::Hints;
use crate::make::Share;
use kw_engine::windows::{Extent, Memory, SharedMemory, SharedMemoryLead, ShmError};
use kw_mpi::chapter::{Members, running};
use kw_objects::error::{Class, Fault, Res, fail};
use kw_objects::state::Mpi;
use kw_objects::window::{Part, Reach};
use kw_sys::buf::{Addr, Buf};
use kw_sys::mem::usable;
use std::sync::Arc;
use std::time::Duration;

/// The memory that a rank asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// The program's, at this address.
    Lent(Addr),
    /// Allocated, shared where that can be.
    Allocated,
    /// Allocated and shared with all ranks.
    Shared,
    /// None yet.
    Dynamic,
}

/// How long the ranks of a host wait for each other when they come to share memory.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ranks of a communicator that share memory with this one.
#[derive(Debug)]
pub struct Neighbours {
    /// Their ranks, in order; this one among them.
    ranks: Vec<u32>,
    me: u32,
    /// Ranks of the communicator.
    size: u32,
    key: [u8; 32],
    /// Where this rank makes the memory: what it listens with.
    lead: Option<SharedMemoryLead>,
}

impl Neighbours {
    /// Of these members.
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
            lead: None,
        })
    }

    /// Refuses a communicator with ranks that share no memory with this one.
    pub fn expect_all(&self) -> Res {
        let far = (0..self.size).find(|rank| !self.ranks.contains(rank));
        match far {
            None => Ok(()),
            Some(rank) => fail(
                Class::RmaShared,
                format!(
                    "comm has rank {rank}, which shares no memory with rank {}: split it with MPI_Comm_split_type and MPI_COMM_TYPE_SHARED first, and do not exclude shm with KW_PATHS",
                    self.me
                ),
            ),
        }
    }

    /// The first of several gets ready to make the memory. It is an error that it cannot where memory
    /// `must` be shared.
    pub fn listen(&mut self, must: bool) -> Res {
        if self.ranks.len() < 2 || self.ranks[0] != self.me {
            return Ok(());
        }
        match SharedMemoryLead::new(self.ranks.len()) {
            Ok(lead) => self.lead = Some(lead),
            Err(error) if must => return Err(unshared(&error)),
            Err(_) => {}
        }
        Ok(())
    }

    /// Where the others find the memory that this rank makes; zeros for nowhere.
    pub fn name(&self) -> [u8; 16] {
        self.lead.as_ref().map_or(NOWHERE, SharedMemoryLead::name)
    }

    /// The place of this rank among them.
    fn place(&self) -> usize {
        let place = self.ranks.iter().position(|&rank| rank == self.me);
        place.unwrap_or(0)
    }
}

const NOWHERE: [u8; 16] = [0; 16];

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

/// Refuses more memory than there is.
pub fn check_size(size: u64) -> Res {
    if size > usable() {
        return Err(too_much(size));
    }
    Ok(())
}

/// The memory of a new window.
#[derive(Debug)]
pub struct Made {
    /// For the engine.
    pub memory: Memory,
    /// The ranks whose memory this rank loads from and stores to: always its own, but of a dynamic
    /// window.
    pub parts: Vec<Part>,
    /// Whose memory the ranks load from and store to themselves.
    pub reach: Reach,
    me: u32,
}

impl Made {
    /// Where this rank's memory begins.
    pub fn own_base(&self) -> usize {
        let own = self.parts.iter().find(|part| part.rank == self.me);
        own.map_or(0, |part| part.base)
    }
}

/// Makes the memory that all ranks have agreed to make. All call it, with what each has said.
pub fn make(
    members: &Members<'_>,
    near: Neighbours,
    (share, hints): (Share, &Hints),
    extents: &[Extent],
    names: &[[u8; 16]],
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

/// Memory that the ranks of each host share; each rank's own where that is none.
fn allocated(
    members: &Members<'_>,
    near: Neighbours,
    (share, hints): (Share, &Hints),
    extents: &[Extent],
    names: &[[u8; 16]],
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
        let made = match near.ranks.len() {
            1 => own(),
            _ => shared(near, contiguous, extents, names),
        };
        // A rank that is alone on its host knows that others are not.
        let made = made.map(|made| Made { reach, ..made });
        let other = (Class::RmaShared, "another rank could not share the memory");
        let made = all_or_none(members, made, other)?;
        if must || made.is_ok() {
            return made;
        }
    }
    let other = (
        Class::NoMem,
        "another rank has no memory left for the window",
    );
    all_or_none(members, own(), other)?
}

/// The memory that all ranks have made; an error on all ranks if one has none.
fn all_or_none(members: &Members<'_>, made: Res<Made>, other: (Class, &str)) -> Res<Res<Made>> {
    Ok(match (members.all(made.is_ok())?, made) {
        (false, Ok(_)) => fail(other.0, other.1),
        (_, made) => made,
    })
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

/// Memory that the ranks of this host share.
fn shared(near: Neighbours, contiguous: bool, extents: &[Extent], names: &[[u8; 16]]) -> Res<Made> {
    let (ranks, me) = (near.ranks.clone(), near.me);
    let sizes: Vec<u64> = ranks.iter().map(|&r| extents[r as usize].size).collect();
    let all = sizes.iter().fold(0, |sum: u64, &s| sum.saturating_add(s));
    if all > usable() {
        // A caller that makes room for more would only learn of it when it is touched.
        return Err(too_much(all));
    }
    let memory = join(near, &names[ranks[0] as usize], &sizes, contiguous)?;
    let places = ranks.iter().enumerate();
    let parts = places.map(|(place, &rank)| {
        let (base, _) = memory.part(place);
        part(rank, base.bits(), extents[rank as usize])
    });
    Ok(Made {
        parts: parts.collect(),
        memory: Memory::Shared { memory, ranks },
        reach: Reach::Some,
        me,
    })
}

/// The first of the ranks makes the memory, the others join it.
fn join(
    near: Neighbours,
    name: &[u8; 16],
    sizes: &[u64],
    contiguous: bool,
) -> Res<Arc<SharedMemory>> {
    let joined = match near.lead {
        Some(lead) => lead.serve(&near.key, sizes, contiguous, PATIENCE),
        None => SharedMemory::join(name, &near.key, near.place(), sizes, contiguous),
    };
    joined.map_err(|error| unshared(&error))
}

/// The least alignment of memory that a window comes with: a cache line.
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
