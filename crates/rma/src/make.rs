//! Creation of a window: data that the ranks of a communicator exchange all at once, and its use on
//! each rank.
//!
//! One exchange is enough. It carries a proposal for the context of the window's own communicator,
//! the size of each rank's memory, the place where the ranks of a host find their shared memory
//! and, if an argument of a rank is wrong, its error; then no rank has a window, and all have that
//! error.

use crate::hints::Hints;
use crate::memory::{self, Neighbours, Wish};
use kw_engine::windows::{Extent, NewWindow};
use kw_mpi::chapter::{Members, Parent, add_comm, forget, running};
use kw_objects::Comm;
use kw_objects::error::{Fault, Res, fail};
use kw_objects::handle::{CommH, ErrhandlerH, InfoH, WinH};
use kw_objects::state::Mpi;
use kw_objects::window::{Flavor, Predefined, Reach, Window};
use kw_sys::args::Out;

/// This rank's part of a window.
#[derive(Debug)]
pub struct Share {
    /// Bytes, and the unit of displacements.
    pub extent: Extent,
    /// The memory.
    pub wish: Wish,
}

/// MPI_THREAD_MULTIPLE
const THREAD_MULTIPLE: i32 = 4096;

/// Bytes of [`ShareMessage`], the message of each rank.
const SHARE_BYTES: usize = 40;

/// The message that a rank sends to the others when a window is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ShareMessage {
    /// Its error; 0 for none.
    code: i32,
    /// A context with which it could lead the window's communicator.
    offer: u32,
    /// Its memory.
    extent: Extent,
    /// Where other ranks of its host find the memory that it creates for all of them; zeros for
    /// nowhere.
    name: [u8; 16],
}

impl ShareMessage {
    fn encode(self) -> [u8; SHARE_BYTES] {
        let mut bytes = [0; SHARE_BYTES];
        bytes[..4].copy_from_slice(&self.code.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.offer.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.extent.size.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.extent.unit.to_le_bytes());
        bytes[24..].copy_from_slice(&self.name);
        bytes
    }

    fn decode(bytes: &[u8]) -> ShareMessage {
        let word = |at: usize| bytes[at..at + 4].try_into().expect("four bytes");
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        ShareMessage {
            code: i32::from_le_bytes(word(0)),
            offer: u32::from_le_bytes(word(4)),
            extent: Extent {
                size: long(8),
                unit: long(16),
            },
            name: bytes[24..SHARE_BYTES].try_into().expect("sixteen bytes"),
        }
    }
}

/// Creates a window over a communicator's ranks, and returns the address of this rank's memory.
/// `share`: this rank's part, or the error in its arguments.
pub fn window(
    mpi: &Mpi,
    (comm, info): (CommH, InfoH),
    flavor: Flavor,
    win: Out<WinH>,
    share: impl FnOnce() -> Res<Share>,
) -> Res<usize> {
    win.set(WinH::NULL);
    let parent = Parent::intra(mpi, comm, "comm")?;
    let members = &parent.members;
    let mut near = Neighbours::of(mpi, members)?;
    let prepared = prepare(mpi, info, flavor, &mut near, share);
    let message = ShareMessage {
        code: prepared.as_ref().err().map_or(0, |fault| fault.code.max(1)),
        offer: members.offer(),
        extent: prepared.as_ref().map_or(NOTHING, |(_, share)| share.extent),
        name: near.name(),
    };
    let all = members.allgather(&message.encode())?;
    let all: Vec<ShareMessage> = all
        .chunks_exact(SHARE_BYTES)
        .map(ShareMessage::decode)
        .collect();
    let own = own_comm(mpi, &parent, message.offer, all[0].offer)?;
    let made = all_or_none(members, &all, prepared).and_then(|(hints, share)| {
        check_promises(&hints, &all)?;
        let extents: Vec<Extent> = all.iter().map(|message| message.extent).collect();
        let names: Vec<[u8; 16]> = all.iter().map(|message| message.name).collect();
        let memory = memory::make(members, near, (share, &hints), &extents, &names)?;
        Ok((hints, memory, extents))
    });
    match made {
        Ok((hints, memory, extents)) => {
            let base = memory.own_base();
            win.set(enter(mpi, own, (flavor, hints), memory, extents)?);
            Ok(base)
        }
        Err(fault) => {
            forget(mpi, own)?;
            Err(fault)
        }
    }
}

/// Exchanges the hints and this rank's part. A rank that allocates memory for its host tells the
/// others where it is.
fn prepare(
    mpi: &Mpi,
    info: InfoH,
    flavor: Flavor,
    near: &mut Neighbours,
    share: impl FnOnce() -> Res<Share>,
) -> Res<(Hints, Share)> {
    let hints = hints(mpi, info, flavor)?;
    let share = share()?;
    match share.wish {
        Wish::Shared => near.expect_all()?,
        Wish::Allocated => {}
        Wish::Lent(_) | Wish::Dynamic => return Ok((hints, share)),
    }
    memory::check_size(share.extent.size)?;
    near.make_file(share.wish == Wish::Shared)?;
    Ok((hints, share))
}

const NOTHING: Extent = Extent { size: 0, unit: 1 };

fn hints(mpi: &Mpi, info: InfoH, flavor: Flavor) -> Res<Hints> {
    let guard = mpi.lock();
    let mut hints = Hints::new(flavor);
    if let Some(info) = guard.above.infos.get_or_null(info)? {
        hints.take(info);
    }
    Ok(hints)
}

/// The window's own communicator.
fn own_comm(mpi: &Mpi, parent: &Parent<'_>, offer: u32, leaders: u32) -> Res<CommH> {
    let members = &parent.members;
    let context = members.accept(offer, leaders)?;
    let comm = Comm::new(context, members.group.clone(), None, members.rank);
    Ok(add_comm(&mut mpi.lock(), parent.heir(comm)))
}

/// Continues only if all ranks can; otherwise the fault of the others is that of the first failing
/// rank.
fn all_or_none<T>(members: &Members<'_>, all: &[ShareMessage], mine: Res<T>) -> Res<T> {
    let Some(first) = all.iter().position(|message| message.code != 0) else {
        return mine;
    };
    let text = mine.as_ref().err().map_or("", |fault| &fault.text);
    let text = members.led_by(first as u32).hear_text(text)?;
    match mine {
        Err(fault) if first as u32 == members.rank => Err(fault),
        _ => Err(Fault::of_code(
            all[first].code,
            format!("on rank {first}: {text}"),
        )),
    }
}

/// Checks that the promises made by hints are the same on all ranks.
fn check_promises(hints: &Hints, all: &[ShareMessage]) -> Res {
    let first = all[0].extent;
    let other_size = all.iter().position(|s| s.extent.size != first.size);
    let other_unit = all.iter().position(|s| s.extent.unit != first.unit);
    let broken = |hint: &str, what: &str, rank: usize, here: u64, there: u64| {
        let both = format!("{here} on rank 0 and {there} on rank {rank}");
        fail!(InfoValue: "the hint {hint} is true, but {what} is {both}")
    };
    match (other_size, other_unit) {
        (Some(rank), _) if hints.is_true("same_size") => {
            broken("same_size", "size", rank, first.size, all[rank].extent.size)
        }
        (_, Some(rank)) if hints.is_true("same_disp_unit") => {
            let there = all[rank].extent.unit;
            broken("same_disp_unit", "disp_unit", rank, first.unit, there)
        }
        _ => Ok(()),
    }
}

/// Registers the window, for the engine and for the program.
fn enter(
    mpi: &Mpi,
    comm: CommH,
    (flavor, hints): (Flavor, Hints),
    made: memory::Made,
    targets: Vec<Extent>,
) -> Res<WinH> {
    let mut guard = mpi.lock();
    let (engine, tables) = running(&mut guard)?;
    let own = tables.comms.get(comm)?;
    let (group, rank, context) = (own.local.clone(), own.rank, own.context);
    let Extent { size, unit } = match flavor {
        Flavor::Dynamic => NOTHING,
        _ => targets[rank as usize],
    };
    let attributes = Predefined::new(made.own_base(), size, unit, flavor);
    let checks = engine.job.agreed().checks();
    let new = NewWindow {
        checks,
        context,
        group: group.clone(),
        me: rank,
        memory: made.memory,
        targets,
    };
    let id = engine.parts.windows.create(&mut engine.messages, new);
    let reachable = engine.parts.windows.reachable(id);
    let lockable = !hints.is_true("no_locks");
    let handle = tables.add_window(Window {
        errhandler: ErrhandlerH::FATAL,
        name: String::new(),
        comm,
        group,
        rank,
        id,
        info: hints.info(),
        flavor,
        shared: made.parts,
        // A check sees only messages, so ranks directly access no memory but their own.
        reach: if checks { Reach::Own } else { made.reach },
        attributes,
    });
    if let Some(reachable) = reachable.filter(|_| !tables.checking) {
        let threads = tables.life.level == THREAD_MULTIPLE || tables.life.sessions;
        reachable.promise(threads, lockable, comm.0);
        mpi.reachable.publish(handle.0, reachable);
    }
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rank_says_is_read_as_it_was_written() {
        let message = ShareMessage {
            code: -7,
            offer: u32::MAX,
            extent: Extent {
                size: 1 << 40,
                unit: 12,
            },
            name: *b"sixteen bytes...",
        };
        assert_eq!(ShareMessage::decode(&message.encode()), message);
    }
}
