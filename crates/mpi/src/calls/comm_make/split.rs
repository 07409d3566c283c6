//! Parts of communicators by color, and by shared resources of processes (MPI 5.0, 7.4.2).

use super::{Parent, spans};
use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm::{hints, same_hints};
use kw_base::Peer;
use kw_objects::comm::UNDEFINED;
use kw_objects::error::{Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::info::Info;
use kw_objects::state::Mpi;
use kw_objects::{Comm, Group, Topology};
use kw_sys::args::Out;
use kw_types::comm::{self, Choice};
use std::sync::Arc;

/// MPI_Comm_split
pub fn comm_split(mpi: &Mpi, comm: CommH, color: i32, key: i32, newcomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let valid = if color < 0 && color != UNDEFINED {
        fail!(Arg: "color is {color}, but must not be negative (or MPI_UNDEFINED)")
    } else {
        Ok(())
    };
    check::agree_on(mpi, comm, "comm_split", valid, |()| {
        CheckedArguments::default()
    })?;
    parent.split_into(color, key, None, newcomm)
}

impl Parent<'_> {
    /// All processes send color and key; those of a color agree on a context id among themselves.
    /// `None`: there is no communicator for this process's color.
    fn split(&self, color: i32, key: i32) -> Res<Option<Comm>> {
        // A process that may lead a part offers its context id with its choice.
        let offer = match &self.remote {
            None if color != UNDEFINED => self.members.offer(),
            _ => u32::MAX,
        };
        let choice = [color as u32, key as u32, offer].map(u32::to_ne_bytes);
        let all = self.members.allgather(choice.as_flattened())?;
        let local = chosen(&self.members.group, &all, color);
        let remote = match &self.remote {
            None => None,
            Some(remote) => {
                let whole = self.bridge(self.members.clone(), remote);
                let theirs = whole.swap(&all, CHOICE_BYTES * remote.size() as usize)?;
                Some(Arc::new(chosen(remote, &theirs, color)))
            }
        };
        let me = self.members.group.peer(self.members.rank);
        let Some(rank) = local.rank_of(me) else {
            return Ok(None);
        };
        if remote.as_ref().is_some_and(|r| r.is_empty()) {
            return Ok(None);
        }
        let local = self.members.part(Arc::new(local), rank);
        if remote.is_some() {
            return self.make(local, remote).map(Some);
        }
        let leader = self.members.group.rank_of(local.group.peer(0)).unwrap_or(0) as usize;
        let word = &all[CHOICE_BYTES * leader + 8..][..4];
        let context = local.accept(offer, word_of(word))?;
        Ok(Some(self.named(context, local, None)))
    }

    /// A split whose parts have a topology.
    pub(crate) fn split_into(
        &self,
        color: i32,
        key: i32,
        topology: Option<Arc<Topology>>,
        newcomm: Out<CommH>,
    ) -> Res {
        newcomm.set(CommH::NULL);
        let Some(mut made) = self.split(color, key)? else {
            return Ok(());
        };
        made.topology = topology;
        self.give(made, newcomm)
    }
}

/// Bytes that a process sends in a split: color, key, offer.
const CHOICE_BYTES: usize = 12;

fn word_of(b: &[u8]) -> u32 {
    u32::from_ne_bytes([b[0], b[1], b[2], b[3]])
}

/// Members of `group` whose words have this color, in order.
fn chosen(group: &Group, words: &[u8], color: i32) -> Group {
    let choices: Vec<Choice> = words
        .chunks_exact(CHOICE_BYTES)
        .map(|w| Choice {
            color: word_of(w) as i32,
            key: word_of(&w[4..]) as i32,
        })
        .collect();
    let ranks = comm::members(&choices, color);
    Group::new(ranks.into_iter().map(|r| group.peer(r)).collect())
}

/// MPI_Comm_split_type
pub fn comm_split_type(
    mpi: &Mpi,
    comm: CommH,
    split_type: i32,
    key: i32,
    info: InfoH,
    newcomm: Out<CommH>,
) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let guard = mpi.lock();
    let info = guard.above.infos.get_or_null(info)?.cloned();
    drop(guard);
    let color = type_color(&parent, split_type, info.as_ref()).map(|c| apart(&parent, c));
    let color = check::agree_on(mpi, comm, "comm_split_type", color, |_| match split_type {
        UNDEFINED => CheckedArguments::default(),
        _ => CheckedArguments::same(&[split_type as i64], format!(" of type {split_type}")),
    })?;
    newcomm.set(CommH::NULL);
    let Some(mut made) = parent.split(color, key)? else {
        return Ok(());
    };
    made.info = hints(info.as_ref());
    let members = parent.members.part(made.local.clone(), made.rank);
    same_hints(&members, made.info.as_deref())?;
    parent.give(made, newcomm)
}

/// Makes the colors of different jobs differ: their processes share no resource that a split type
/// names.
fn apart(parent: &Parent, color: i32) -> i32 {
    let members = &parent.members;
    let remote = parent.remote.as_deref().unwrap_or(&members.group);
    if color == UNDEFINED || !spans(members.mpi, &[&members.group, remote]) {
        return color;
    }
    let guard = members.mpi.lock();
    let world = guard.engine.as_ref().map_or(0, |e| e.job.worlds.own().id());
    // All bits of the id are random.
    let mixed = world ^ (color as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 33) as i32
}

/// The color of this process for a split type and its hints; MPI_UNDEFINED if they name a resource
/// that we do not know.
fn type_color(parent: &Parent, split_type: i32, info: Option<&Info>) -> Res<i32> {
    const SHARED: i32 = 221;
    const HW_UNGUIDED: i32 = 222;
    const HW_GUIDED: i32 = 223;
    const RESOURCE_GUIDED: i32 = 224;
    let me = parent.members.group.peer(parent.members.rank);
    let guard = parent.mpi().lock();
    let hosts = guard
        .engine
        .as_ref()
        .map(|e| e.job.hosts())
        .unwrap_or_default();
    // A process of another job shares nothing with this one.
    let host = |p: Peer| hosts.get(p.idx()).copied().unwrap_or(i32::MAX as u32);
    let here = host(me) as i32;
    let resource = info.and_then(|i| i.get("mpi_hw_resource_type"));
    let set = info.and_then(|i| i.get("mpi_pset_name"));
    match split_type {
        UNDEFINED => Ok(UNDEFINED),
        SHARED => Ok(here),
        HW_UNGUIDED => {
            let remote = parent.remote.iter().flat_map(|g| g.iter());
            let mut all = parent.members.group.iter().chain(remote);
            let parted = all.any(|p| host(p) != host(me));
            Ok(if parted { here } else { UNDEFINED })
        }
        HW_GUIDED | RESOURCE_GUIDED => Ok(match (resource, set) {
            (Some("mpi_shared_memory"), _) => here,
            (None, Some("mpi://WORLD")) if split_type == RESOURCE_GUIDED => 0,
            (None, Some("mpi://SELF")) if split_type == RESOURCE_GUIDED => me.0 as i32,
            _ => UNDEFINED,
        }),
        _ => fail!(Arg: "split_type is {split_type}, which is not a split type"),
    }
}
