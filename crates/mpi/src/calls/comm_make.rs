//! Creates communicators from communicators and groups (MPI 5.0, 7.4.2 and 7.6).
//!
//! Duplicates and splits have files of their own; the rest, and their common parts, are here.

pub mod dup;
pub mod split;

use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm::{add_comm, hints, same_hints};
use crate::group_collectives::{Bridge, Members, Purpose};
use kw_base::{ContextId, Peer};
use kw_objects::errhandler::Kind;
use kw_objects::error::{Class, Res, fail};
use kw_objects::group::Held;
use kw_objects::handle::{CommH, ErrhandlerH, GroupH, InfoH, SessionH};
use kw_objects::state::Mpi;
use kw_objects::{Comm, Group};
use kw_sys::args::{Out, Text};
use kw_types::comm::BOOTSTRAP;
use std::sync::Arc;

/// Properties that a new communicator inherits from its parent.
pub struct Parent<'a> {
    /// The calling function.
    pub members: Members<'a>,
    /// The remote group, of an intercommunicator.
    pub remote: Option<Arc<Group>>,
    /// The inherited error handler.
    pub errhandler: ErrhandlerH,
    /// The session that it was derived from.
    pub session: Option<SessionH>,
}

impl<'a> Parent<'a> {
    /// Properties that a descendant of this communicator inherits.
    pub fn new(mpi: &'a Mpi, comm: CommH) -> Res<Parent<'a>> {
        let guard = mpi.lock();
        let comm = guard.above.comms.get(comm)?;
        Ok(Parent {
            members: Members::of(mpi, comm),
            remote: comm.remote.clone(),
            errhandler: comm.errhandler,
            session: comm.session,
        })
    }

    /// Like [`Parent::new`], of an intracommunicator.
    pub fn intra(mpi: &'a Mpi, comm: CommH, name: &str) -> Res<Parent<'a>> {
        let parent = Parent::new(mpi, comm)?;
        if parent.remote.is_some() {
            return fail!(Comm: "{name} is an intercommunicator, but must be an intracommunicator");
        }
        Ok(parent)
    }

    fn mpi(&self) -> &'a Mpi {
        self.members.mpi
    }

    /// Data that KW_CHECK=1 compares for a group that is to be created from this one. None for an
    /// intercommunicator.
    fn says(&self, group: &Group) -> CheckedArguments {
        let all = &self.members.group;
        match &self.remote {
            None => CheckedArguments::group(all, all.peer(self.members.rank), group),
            Some(_) => CheckedArguments::default(),
        }
    }

    /// Both groups of an intercommunicator, or parts of them, each led by its first member.
    pub fn bridge(&self, local: Members<'a>, remote: &Group) -> Bridge<'a> {
        let ours = local.group.peer(0);
        let other = remote.peer(0);
        let names = self.remote.as_deref().unwrap_or(remote);
        Bridge {
            context: local.context,
            purpose: Purpose::Leaders,
            mine: local.names.rank_of(ours).unwrap_or(0),
            other: (names.rank_of(other).unwrap_or(0), other),
            first: precedes(local.mpi, ours, other),
            spans: spans(local.mpi, &[&local.group, remote]),
            local,
        }
    }

    /// A communicator of these groups, whose context id all their members agree on.
    pub fn make(&self, local: Members<'a>, remote: Option<Arc<Group>>) -> Res<Comm> {
        let context = match &remote {
            None => local.agree()?,
            Some(remote) => self.bridge(local.clone(), remote).agree()?,
        };
        Ok(self.named(context, local, remote))
    }

    fn named(&self, context: ContextId, local: Members<'a>, remote: Option<Arc<Group>>) -> Comm {
        self.heir(Comm::new(context, local.group, remote, local.rank))
    }

    /// A communicator with everything that a descendant inherits.
    pub fn heir(&self, mut comm: Comm) -> Comm {
        comm.errhandler = self.errhandler;
        comm.session = self.session;
        comm
    }

    /// Puts a communicator into the table.
    pub fn give(&self, comm: Comm, newcomm: Out<CommH>) -> Res {
        newcomm.set(add_comm(&mut self.mpi().lock(), comm));
        Ok(())
    }
}

/// MPI_Comm_create
pub fn comm_create(mpi: &Mpi, comm: CommH, group: GroupH, newcomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let group = mpi.lock().above.groups.get(group);
    let within = group.and_then(|g| check_subset(&g, &parent.members.group).map(|()| g));
    let group = check::agree_on(mpi, comm, "comm_create", within, |g| parent.says(g))?;
    let remote = match &parent.remote {
        None => None,
        Some(remote) => {
            let whole = parent.bridge(parent.members.clone(), remote);
            let words = whole.swap_any(&to_words(mpi, &group)?)?;
            Some(Arc::new(from_words(mpi, &words)?))
        }
    };
    newcomm.set(CommH::NULL);
    let me = parent.members.group.peer(parent.members.rank);
    let Some(rank) = group.rank_of(me) else {
        return Ok(());
    };
    if remote.as_ref().is_some_and(|r| r.is_empty()) {
        return Ok(());
    }
    let made = parent.make(parent.members.part(group, rank), remote)?;
    parent.give(made, newcomm)
}

/// MPI_Comm_create_group: only the members of the group call it, so its messages have the caller's
/// tag.
pub fn comm_create_group(
    mpi: &Mpi,
    comm: CommH,
    group: GroupH,
    tag: i32,
    newcomm: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    let group = mpi.lock().above.groups.get(group)?;
    check_subset(&group, &parent.members.group)?;
    check_tag(tag)?;
    newcomm.set(CommH::NULL);
    let me = parent.members.group.peer(parent.members.rank);
    let Some(rank) = group.rank_of(me) else {
        return Ok(());
    };
    let mut local = parent.members.part(group, rank);
    local.purpose = Purpose::User(tag);
    check::among(
        &local,
        "comm_create_group",
        &[&local.group],
        CheckedArguments::default(),
    )?;
    let made = parent.make(local, None)?;
    parent.give(made, newcomm)
}

/// MPI_Comm_create_from_group: there is no parent, so the messages use a context of their own.
pub fn comm_create_from_group(
    mpi: &Mpi,
    group: GroupH,
    stringtag: Text,
    info: InfoH,
    errhandler: ErrhandlerH,
    newcomm: Out<CommH>,
) -> Res {
    let guard = mpi.lock();
    let Held { group, session } = guard.above.groups.held(group)?;
    let hints = hints(guard.above.infos.get_or_null(info)?);
    guard.above.errhandlers.check(errhandler, Kind::Comm)?;
    drop(guard);
    let tag = string_tag(stringtag)?;
    newcomm.set(CommH::NULL);
    if group.is_empty() {
        return Ok(());
    }
    let local = bootstrap(mpi, group, "group", tag)?;
    check::among(
        &local,
        "comm_create_from_group",
        &[&local.group],
        CheckedArguments::default(),
    )?;
    let parent = Parent {
        members: local.clone(),
        remote: None,
        errhandler,
        session,
    };
    same_hints(&local, hints.as_deref())?;
    let mut made = parent.make(local, None)?;
    made.info = hints;
    parent.give(made, newcomm)
}

/// Members of a group that have no communicator yet.
pub fn bootstrap<'a>(mpi: &'a Mpi, group: Arc<Group>, name: &str, tag: i32) -> Res<Members<'a>> {
    let guard = mpi.lock();
    let engine = guard.engine.as_ref();
    let (me, size) = engine.map_or((Peer(0), 1), |e| (e.job.me, e.job.size()));
    let Some(rank) = group.rank_of(me) else {
        return fail!(Group: "{name} does not contain the calling process");
    };
    Ok(Members {
        mpi,
        context: BOOTSTRAP,
        purpose: Purpose::User(tag),
        group,
        rank,
        names: Arc::new(Group::range(Peer(0), size)),
    })
}

/// A message tag made from the caller's string (FNV-1a).
pub fn string_tag(text: Text) -> Res<i32> {
    /// MPI_MAX_STRINGTAG_LEN, final zero included.
    const MAX: usize = 1024;
    let Some(bytes) = text.bytes() else {
        return fail(Class::Arg, "stringtag is null");
    };
    if bytes.len() >= MAX {
        return fail!(Arg: "stringtag has {} characters, but at most {} are allowed", bytes.len(), MAX - 1);
    }
    let mix = |h: u32, &b: &u8| (h ^ b as u32).wrapping_mul(0x0100_0193);
    Ok((bytes.iter().fold(0x811c_9dc5, mix) & 0x7fff_ffff) as i32)
}

pub fn check_tag(tag: i32) -> Res {
    if tag < 0 {
        return fail!(Tag: "tag is {tag}, but must not be negative");
    }
    Ok(())
}

fn check_subset(part: &Group, whole: &Group) -> Res {
    match part.iter().find(|&p| !whole.contains(p)) {
        None => Ok(()),
        Some(p) => {
            fail!(Group: "group has process {p} of the job, which is not in the communicator's group")
        }
    }
}

/// Encodes the members of a group as bytes, under the names by which every process knows them.
pub fn to_words(mpi: &Mpi, group: &Group) -> Res<Vec<u8>> {
    let guard = mpi.lock();
    let mut words = Vec::with_capacity(NAME * group.size() as usize);
    for peer in group.iter() {
        let name = guard
            .engine
            .as_ref()
            .and_then(|e| e.job.worlds.name_of(peer));
        let Some((world, rank)) = name else {
            return fail!(Intern: "process {peer} has no name");
        };
        words.extend(world.to_ne_bytes());
        words.extend(rank.to_ne_bytes());
    }
    Ok(words)
}

/// Decodes the members of a group.
pub fn from_words(mpi: &Mpi, bytes: &[u8]) -> Res<Group> {
    let guard = mpi.lock();
    let peer = |w: &[u8]| {
        let (world, rank) = w.split_first_chunk::<8>()?;
        let rank = u32::from_ne_bytes(*rank.first_chunk()?);
        let worlds = &guard.engine.as_ref()?.job.worlds;
        worlds.peer_of((u64::from_ne_bytes(*world), rank))
    };
    let members: Option<Vec<Peer>> = bytes.chunks_exact(NAME).map(peer).collect();
    match members {
        Some(members) => Ok(Group::new(members)),
        None => fail!(Other:
            "the other group has processes of a job that this process has not met: connect to that job first (MPI_Comm_connect)"),
    }
}

/// Bytes of the name of a process.
const NAME: usize = 12;

/// Whether a process comes before another one, if one of two must be the first.
pub fn precedes(mpi: &Mpi, a: Peer, b: Peer) -> bool {
    let guard = mpi.lock();
    match &guard.engine {
        Some(engine) => {
            let worlds = &engine.job.worlds;
            worlds.name_of(a) < worlds.name_of(b)
        }
        None => a < b,
    }
}

/// Whether processes of several jobs are among these.
pub fn spans(mpi: &Mpi, groups: &[&Group]) -> bool {
    let guard = mpi.lock();
    let all = groups.iter().flat_map(|g| g.iter());
    guard
        .engine
        .as_ref()
        .is_some_and(|e| e.job.worlds.differ(all))
}
