//! Making communicators from communicators and groups (MPI 5.0, 7.4.2 and 7.6).

use crate::calls::attr::{copy_all, delete_all};
use crate::calls::coll::check::{self, Said};
use crate::calls::comm::{forget, hints};
use crate::calls::p2p::running;
use crate::error::{Class, Fault, Res, fail};
use crate::handle::{CommH, ErrhandlerH, GroupH, InfoH, RequestH};
use crate::internal::{Bridge, Circle, Purpose};
use crate::objects::attributes::Owner;
use crate::objects::comm::UNDEFINED;
use crate::objects::errhandler::Kind;
use crate::objects::info::Info;
use crate::objects::request::{self, Flight, Then};
use crate::objects::{Comm, Group, Topology};
use crate::state::{Mpi, State};
use kw_base::{ContextId, Peer};
use kw_core::comm::{BOOTSTRAP, Choice, UNKNOWN, members};
use kw_sys::args::{Out, Text};
use kw_sys::buf::Buf;
use std::sync::Arc;

/// What a new communicator takes from its parent.
pub(crate) struct Parent<'a> {
    pub(crate) circle: Circle<'a>,
    pub(crate) remote: Option<Arc<Group>>,
    pub(crate) errhandler: ErrhandlerH,
}

impl<'a> Parent<'a> {
    pub(crate) fn new(mpi: &'a Mpi, comm: CommH) -> Res<Parent<'a>> {
        let guard = mpi.lock();
        let comm = guard.above.comm(comm)?;
        Ok(Parent {
            circle: Circle::of(mpi, comm),
            remote: comm.remote.clone(),
            errhandler: comm.errhandler,
        })
    }

    /// Like [`Parent::new`], of an intracommunicator.
    pub(crate) fn intra(mpi: &'a Mpi, comm: CommH, name: &str) -> Res<Parent<'a>> {
        let parent = Parent::new(mpi, comm)?;
        if parent.remote.is_some() {
            return fail(
                Class::Comm,
                format!("{name} is an intercommunicator, but must be an intracommunicator"),
            );
        }
        Ok(parent)
    }

    fn mpi(&self) -> &'a Mpi {
        self.circle.mpi
    }

    /// What KW_CHECK=1 compares of a group that is to be made from this one. Over an intercommunicator nothing.
    fn says(&self, group: &Group) -> Said {
        let all = &self.circle.group;
        match &self.remote {
            None => Said::group(all, all.peer(self.circle.rank), group),
            Some(_) => Said::default(),
        }
    }

    /// Both groups of an intercommunicator, or parts of them, each led by its first member.
    pub(crate) fn bridge(&self, local: Circle<'a>, remote: &Group) -> Bridge<'a> {
        let ours = local.group.peer(0);
        let other = remote.peer(0);
        let names = self.remote.as_deref().unwrap_or(remote);
        Bridge {
            context: local.context,
            purpose: Purpose::Leaders,
            mine: local.names.rank_of(ours).unwrap_or(0),
            other: (names.rank_of(other).unwrap_or(0), other),
            first: ours < other,
            local,
        }
    }

    /// A communicator of these groups, whose context id all their members agree on.
    pub(crate) fn make(&self, local: Circle<'a>, remote: Option<Arc<Group>>) -> Res<Comm> {
        let context = match &remote {
            None => local.agree()?,
            Some(remote) => self.bridge(local.clone(), remote).agree()?,
        };
        Ok(self.named(context, local, remote))
    }

    fn named(&self, context: ContextId, local: Circle<'a>, remote: Option<Arc<Group>>) -> Comm {
        let mut comm = Comm::new(context, local.group, remote, local.rank);
        comm.errhandler = self.errhandler;
        comm
    }

    /// Puts a communicator into the table.
    pub(crate) fn give(&self, comm: Comm, newcomm: Out<CommH>) -> Res {
        newcomm.set(self.mpi().lock().above.add_comm(comm));
        Ok(())
    }
}

/// MPI_Comm_dup
pub fn comm_dup(mpi: &Mpi, comm: CommH, newcomm: Out<CommH>) -> Res {
    check::agree(mpi, comm, "comm_dup")?;
    let hints = mpi.lock().above.comm(comm)?.info.clone();
    duplicate(mpi, comm, hints, newcomm)
}

/// MPI_Comm_dup_with_info
pub fn comm_dup_with_info(mpi: &Mpi, comm: CommH, info: InfoH, newcomm: Out<CommH>) -> Res {
    let guard = mpi.lock();
    guard.above.comm(comm)?;
    let hints = guard.above.info_or_null(info).map(hints);
    drop(guard);
    let hints = check::agree_on(mpi, comm, "comm_dup_with_info", hints, |_| Said::default())?;
    duplicate(mpi, comm, hints, newcomm)
}

fn duplicate(mpi: &Mpi, comm: CommH, hints: Option<Box<Info>>, newcomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let mut made = parent.make(parent.circle.clone(), parent.remote.clone())?;
    made.info = hints;
    let guard = mpi.lock();
    let old = guard.above.comm(comm)?;
    (made.topology, made.nodes) = (old.topology.clone(), old.nodes.clone());
    drop(guard);
    adopt(mpi, comm, made, newcomm)
}

/// Puts a duplicate into the table and copies the attributes; without them there is no duplicate.
pub(crate) fn adopt(mpi: &Mpi, old: CommH, made: Comm, newcomm: Out<CommH>) -> Res {
    let new = mpi.lock().above.add_comm(made);
    let copied = copy_all(mpi, Owner::Comm(old), Owner::Comm(new));
    if copied.is_err() {
        // The copy function's code is what the caller must hear of; that of a delete function would hide it.
        let _ = delete_all(mpi, Owner::Comm(new));
        forget(mpi, new)?;
        newcomm.set(CommH::NULL);
        return copied;
    }
    newcomm.set(new);
    Ok(())
}

/// MPI_Comm_idup
pub fn comm_idup(mpi: &Mpi, comm: CommH, newcomm: Out<CommH>, request: Out<RequestH>) -> Res {
    let hints = mpi.lock().above.comm(comm)?.info.clone();
    duplicate_later(mpi, (comm, "comm_idup"), hints, newcomm, request)
}

/// MPI_Comm_idup_with_info
pub fn comm_idup_with_info(
    mpi: &Mpi,
    comm: CommH,
    info: InfoH,
    newcomm: Out<CommH>,
    request: Out<RequestH>,
) -> Res {
    let guard = mpi.lock();
    guard.above.comm(comm)?;
    let hints = hints(guard.above.info_or_null(info)?);
    drop(guard);
    let call = (comm, "comm_idup_with_info");
    duplicate_later(mpi, call, hints, newcomm, request)
}

/// One process chooses a fresh context id and tells every other, which posts a receive for it: nobody needs to be in MPI
/// at any time for the others to go on.
fn duplicate_later(
    mpi: &Mpi,
    (comm, name): (CommH, &str),
    hints: Option<Box<Info>>,
    newcomm: Out<CommH>,
    request: Out<RequestH>,
) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let Circle { group, rank, .. } = parent.circle.clone();
    let first = group.peer(0);
    let chooser = match &parent.remote {
        Some(remote) if remote.peer(0) < first => remote.peer(0),
        _ => first,
    };
    let chooses = group.peer(rank) == chooser;
    let id = if chooses { fresh(mpi)? } else { UNKNOWN };
    let mut made = Comm::new(id, group, parent.remote.clone(), rank);
    made.errhandler = parent.errhandler;
    made.info = hints;
    made.topology = mpi.lock().above.comm(comm)?.topology.clone();
    adopt(mpi, comm, made, newcomm)?;
    let word = Buf::alloc(4);
    word.write(0, &id.0.to_ne_bytes());
    let mut guard = mpi.lock();
    let run = check::tell(&mut guard, comm, name, &word)?;
    let (engine, tables) = running(&mut guard)?;
    let flight = Flight {
        id: engine.launch(run),
        comm,
        from: None,
        receives: false,
    };
    let then = learn_context(newcomm.get(), word);
    request.set(tables.new_request(request::Kind::Then(flight, Some(then))));
    Ok(())
}

/// What the request does when the id has come.
fn learn_context(comm: CommH, word: Buf) -> Then {
    Box::new(move |state: &mut State| {
        let mut id = [0; 4];
        word.read(0, &mut id);
        state.above.comm_mut(comm)?.context = ContextId(u32::from_ne_bytes(id));
        Ok(())
    })
}

fn fresh(mpi: &Mpi) -> Res<ContextId> {
    let mut guard = mpi.lock();
    let id = guard
        .above
        .contexts
        .as_mut()
        .and_then(|p| p.propose_fresh());
    id.ok_or_else(|| {
        Fault::new(
            Class::Other,
            "every context id was used before; use MPI_Comm_dup",
        )
    })
}

/// MPI_Comm_create
pub fn comm_create(mpi: &Mpi, comm: CommH, group: GroupH, newcomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let group = mpi.lock().above.group(group);
    let within = group.and_then(|g| check_subset(&g, &parent.circle.group).map(|()| g));
    let group = check::agree_on(mpi, comm, "comm_create", within, |g| parent.says(g))?;
    let remote = match &parent.remote {
        None => None,
        Some(remote) => {
            let whole = parent.bridge(parent.circle.clone(), remote);
            Some(Arc::new(from_words(&whole.swap_any(&to_words(&group))?)))
        }
    };
    newcomm.set(CommH::NULL);
    let me = parent.circle.group.peer(parent.circle.rank);
    let Some(rank) = group.rank_of(me) else {
        return Ok(());
    };
    if remote.as_ref().is_some_and(|r| r.is_empty()) {
        return Ok(());
    }
    let made = parent.make(parent.circle.part(group, rank), remote)?;
    parent.give(made, newcomm)
}

/// MPI_Comm_create_group: only the members of the group call it, so its messages have the caller's tag.
pub fn comm_create_group(
    mpi: &Mpi,
    comm: CommH,
    group: GroupH,
    tag: i32,
    newcomm: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    let group = mpi.lock().above.group(group)?;
    check_subset(&group, &parent.circle.group)?;
    check_tag(tag)?;
    newcomm.set(CommH::NULL);
    let me = parent.circle.group.peer(parent.circle.rank);
    let Some(rank) = group.rank_of(me) else {
        return Ok(());
    };
    let mut local = parent.circle.part(group, rank);
    local.purpose = Purpose::User(tag);
    check::among(
        &local,
        "comm_create_group",
        &[&local.group],
        Said::default(),
    )?;
    let made = parent.make(local, None)?;
    parent.give(made, newcomm)
}

/// MPI_Comm_create_from_group: there is no parent, so the messages go through a context of their own.
pub fn comm_create_from_group(
    mpi: &Mpi,
    group: GroupH,
    stringtag: Text,
    info: InfoH,
    errhandler: ErrhandlerH,
    newcomm: Out<CommH>,
) -> Res {
    let guard = mpi.lock();
    let group = guard.above.group(group)?;
    let hints = hints(guard.above.info_or_null(info)?);
    guard.above.check_errhandler(errhandler, Kind::Comm)?;
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
        Said::default(),
    )?;
    let parent = Parent {
        circle: local.clone(),
        remote: None,
        errhandler,
    };
    let mut made = parent.make(local, None)?;
    made.info = hints;
    parent.give(made, newcomm)
}

/// Members of a group that have no communicator yet.
pub(crate) fn bootstrap<'a>(
    mpi: &'a Mpi,
    group: Arc<Group>,
    name: &str,
    tag: i32,
) -> Res<Circle<'a>> {
    let guard = mpi.lock();
    let engine = guard.engine.as_ref();
    let (me, size) = engine.map_or((Peer(0), 1), |e| (e.me(), e.size()));
    let Some(rank) = group.rank_of(me) else {
        return fail(
            Class::Group,
            format!("{name} does not contain the calling process"),
        );
    };
    Ok(Circle {
        mpi,
        context: BOOTSTRAP,
        purpose: Purpose::User(tag),
        group,
        rank,
        names: Arc::new(Group::range(Peer(0), size)),
    })
}

/// A message tag made from the caller's string (FNV-1a).
pub(crate) fn string_tag(text: Text) -> Res<i32> {
    /// MPI_MAX_STRINGTAG_LEN, final zero included.
    const MAX: usize = 1024;
    let Some(bytes) = text.bytes() else {
        return fail(Class::Arg, "stringtag is null");
    };
    if bytes.len() >= MAX {
        return fail(
            Class::Arg,
            format!(
                "stringtag has {} characters, but at most {} are allowed",
                bytes.len(),
                MAX - 1
            ),
        );
    }
    let mix = |h: u32, &b: &u8| (h ^ b as u32).wrapping_mul(0x0100_0193);
    Ok((bytes.iter().fold(0x811c_9dc5, mix) & 0x7fff_ffff) as i32)
}

/// MPI_Comm_split
pub fn comm_split(mpi: &Mpi, comm: CommH, color: i32, key: i32, newcomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, comm)?;
    let valid = if color < 0 && color != UNDEFINED {
        fail(
            Class::Arg,
            format!("color is {color}, but must not be negative (or MPI_UNDEFINED)"),
        )
    } else {
        Ok(())
    };
    check::agree_on(mpi, comm, "comm_split", valid, |()| Said::default())?;
    parent.split_into(color, key, None, newcomm)
}

impl Parent<'_> {
    /// Everybody says color and key; those of a color agree on a context id among themselves. `None`: of this process's
    /// color there is no communicator.
    fn split(&self, color: i32, key: i32) -> Res<Option<Comm>> {
        // Whoever may come to lead a part offers its context id with its choice.
        let offer = match &self.remote {
            None if color != UNDEFINED => self.circle.offer(),
            _ => u32::MAX,
        };
        let said = [color as u32, key as u32, offer].map(u32::to_ne_bytes);
        let all = self.circle.allgather(said.as_flattened())?;
        let local = chosen(&self.circle.group, &all, color);
        let remote = match &self.remote {
            None => None,
            Some(remote) => {
                let whole = self.bridge(self.circle.clone(), remote);
                let theirs = whole.swap(&all, SAID * remote.size() as usize)?;
                Some(Arc::new(chosen(remote, &theirs, color)))
            }
        };
        let me = self.circle.group.peer(self.circle.rank);
        let Some(rank) = local.rank_of(me) else {
            return Ok(None);
        };
        if remote.as_ref().is_some_and(|r| r.is_empty()) {
            return Ok(None);
        }
        let local = self.circle.part(Arc::new(local), rank);
        if remote.is_some() {
            return self.make(local, remote).map(Some);
        }
        let leader = self.circle.group.rank_of(local.group.peer(0)).unwrap_or(0) as usize;
        let word = &all[SAID * leader + 8..][..4];
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

/// Bytes that a process says in a split: color, key, offer.
const SAID: usize = 12;

fn word_of(b: &[u8]) -> u32 {
    u32::from_ne_bytes([b[0], b[1], b[2], b[3]])
}

/// Those of `group` whose words say this color, in order.
fn chosen(group: &Group, words: &[u8], color: i32) -> Group {
    let choices: Vec<Choice> = words
        .chunks_exact(SAID)
        .map(|w| Choice {
            color: word_of(w) as i32,
            key: word_of(&w[4..]) as i32,
        })
        .collect();
    let ranks = members(&choices, color);
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
    let info = guard.above.info_or_null(info)?.cloned();
    drop(guard);
    let color = type_color(&parent, split_type, info.as_ref());
    let color = check::agree_on(mpi, comm, "comm_split_type", color, |_| match split_type {
        UNDEFINED => Said::default(),
        _ => Said::same(&[split_type as i64], format!(" of type {split_type}")),
    })?;
    newcomm.set(CommH::NULL);
    let Some(mut made) = parent.split(color, key)? else {
        return Ok(());
    };
    made.info = hints(info.as_ref());
    parent.give(made, newcomm)
}

/// The color that a split type and its hints give this process; MPI_UNDEFINED where they ask for what we do not know.
fn type_color(parent: &Parent, split_type: i32, info: Option<&Info>) -> Res<i32> {
    const SHARED: i32 = 221;
    const HW_UNGUIDED: i32 = 222;
    const HW_GUIDED: i32 = 223;
    const RESOURCE_GUIDED: i32 = 224;
    let me = parent.circle.group.peer(parent.circle.rank);
    let guard = parent.mpi().lock();
    let hosts = guard.engine.as_ref().map(|e| e.hosts()).unwrap_or_default();
    let host = |p: Peer| hosts.get(p.idx()).copied().unwrap_or(0);
    let here = host(me) as i32;
    let resource = info.and_then(|i| i.get("mpi_hw_resource_type"));
    let set = info.and_then(|i| i.get("mpi_pset_name"));
    match split_type {
        UNDEFINED => Ok(UNDEFINED),
        SHARED => Ok(here),
        HW_UNGUIDED => {
            let remote = parent.remote.iter().flat_map(|g| g.iter());
            let mut all = parent.circle.group.iter().chain(remote);
            let parted = all.any(|p| host(p) != host(me));
            Ok(if parted { here } else { UNDEFINED })
        }
        HW_GUIDED | RESOURCE_GUIDED => Ok(match (resource, set) {
            (Some("mpi_shared_memory"), _) => here,
            (None, Some("mpi://WORLD")) if split_type == RESOURCE_GUIDED => 0,
            (None, Some("mpi://SELF")) if split_type == RESOURCE_GUIDED => me.0 as i32,
            _ => UNDEFINED,
        }),
        _ => fail(
            Class::Arg,
            format!("split_type is {split_type}, which is no split type"),
        ),
    }
}

pub(crate) fn check_tag(tag: i32) -> Res {
    if tag < 0 {
        return fail(
            Class::Tag,
            format!("tag is {tag}, but must not be negative"),
        );
    }
    Ok(())
}

fn check_subset(part: &Group, whole: &Group) -> Res {
    match part.iter().find(|&p| !whole.contains(p)) {
        None => Ok(()),
        Some(p) => fail(
            Class::Group,
            format!("group has process {p} of the job, which is not in the communicator's group"),
        ),
    }
}

/// The members of a group as bytes, and back.
pub(crate) fn to_words(group: &Group) -> Vec<u8> {
    group.iter().flat_map(|p| p.0.to_ne_bytes()).collect()
}

pub(crate) fn from_words(bytes: &[u8]) -> Group {
    let peer = |w: &[u8]| Peer(u32::from_ne_bytes([w[0], w[1], w[2], w[3]]));
    Group::new(bytes.chunks_exact(4).map(peer).collect())
}
