//! Intercommunicators (MPI 5.0, 7.6): two groups whose leaders introduce them to each other.

use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm::{add_comm, hints, same_hints};
use crate::calls::comm_make::{
    Parent, bootstrap, check_tag, from_words, precedes, spans, string_tag, to_words,
};
use crate::group_collectives::{Bridge, Members, Purpose};
use kw_base::{ContextId, Peer};
use kw_objects::errhandler::Kind;
use kw_objects::error::{Class, Res, fail};
use kw_objects::group::Held;
use kw_objects::handle::{CommH, ErrhandlerH, GroupH, InfoH};
use kw_objects::state::Mpi;
use kw_objects::{Comm, Group};
use kw_sys::args::{Out, Text};
use kw_types::comm::BOOTSTRAP;
use std::sync::Arc;

/// How a leader reaches the other one: context, own name, the other's name and peer.
type Way = (ContextId, u32, (u32, Peer));

/// MPI_Intercomm_create. `peer_comm` and `remote_leader` are significant only at the local leader,
/// which tells the others whether they are valid.
pub fn intercomm_create(
    mpi: &Mpi,
    local_comm: CommH,
    local_leader: i32,
    peer_comm: CommH,
    remote_leader: i32,
    tag: i32,
    newintercomm: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, local_comm, "local_comm")?;
    let valid = check_leader(local_leader, &parent.members.group, "local_leader");
    let valid = valid.and_then(|()| check_tag(tag));
    check::agree_on(mpi, local_comm, "intercomm_create", valid, |()| {
        let text = format!(" with local leader {local_leader} and tag {tag}");
        CheckedArguments::same(&[local_leader as i64, tag as i64], text)
    })?;
    let local = parent.members.led_by(local_leader as u32);
    let me = local.group.peer(local.rank);
    let way = || way_to(mpi, peer_comm, remote_leader, me);
    let mut bridge = meet(local, Purpose::User(tag), way, (Class::Comm, "peer_comm"))?;
    let words = bridge.swap_any(&to_words(mpi, &parent.members.group)?)?;
    let remote = from_words(mpi, &words)?;
    check_disjoint(&parent.members.group, &remote)?;
    bridge.spans = spans(mpi, &[&parent.members.group, &remote]);
    let context = bridge.agree()?;
    let local = parent.members.group.clone();
    let rank = parent.members.rank;
    let made = Comm::new(context, local, Some(Arc::new(remote)), rank);
    parent.give(parent.heir(made), newintercomm)
}

/// The leader finds a way to the other one, and tells the other processes of its group whether
/// there is one, and which group is the first; `what`: the invalid argument otherwise, apart from
/// its own arguments.
fn meet<'a>(
    local: Members<'a>,
    purpose: Purpose,
    way: impl FnOnce() -> Res<Way>,
    (class, what): (Class, &str),
) -> Res<Bridge<'a>> {
    let mine = local.group.peer(0);
    let way = match local.rank {
        0 => way(),
        // Only the leader's value is used.
        _ => Ok((BOOTSTRAP, 0, (0, Peer(0)))),
    };
    let found = way.as_ref().ok().filter(|_| local.rank == 0);
    let first = found.is_some_and(|w| precedes(local.mpi, mine, w.2.1));
    let mut word = [found.is_some(), first].map(u8::from);
    local.bcast(&mut word)?;
    let (context, mine, other) = way?;
    if word[0] == 0 {
        return fail(
            class,
            format!("the local leader's {what} or remote_leader is invalid"),
        );
    }
    Ok(Bridge {
        local,
        context,
        purpose,
        mine,
        other,
        first: word[1] == 1,
        spans: false,
    })
}

/// Leaders talk through the peer communicator, apart from all its other messages.
fn way_to(mpi: &Mpi, peer_comm: CommH, remote_leader: i32, me: Peer) -> Res<Way> {
    let guard = mpi.lock();
    let comm = guard.above.comms.get(peer_comm)?;
    let peer = comm.peer(remote_leader)?;
    let Some(peer) = peer.filter(|&p| p != me) else {
        return fail!(Rank: "remote_leader is {remote_leader}, which is not another process");
    };
    let context = ContextId(comm.context.0 | 3);
    Ok((context, comm.rank, (remote_leader as u32, peer)))
}

/// MPI_Intercomm_create_from_groups. `remote_group` and `remote_leader` are significant only at the
/// local leader, which informs the others. An empty group creates nothing, without a message.
pub fn intercomm_create_from_groups(
    mpi: &Mpi,
    local_group: GroupH,
    local_leader: i32,
    remote_group: GroupH,
    remote_leader: i32,
    stringtag: Text,
    info: InfoH,
    errhandler: ErrhandlerH,
    newintercomm: Out<CommH>,
) -> Res {
    let guard = mpi.lock();
    let Held {
        group: ours,
        session,
    } = guard.above.groups.held(local_group)?;
    let theirs = guard.above.groups.get(remote_group);
    let hints = hints(guard.above.infos.get_or_null(info)?);
    guard.above.errhandlers.check(errhandler, Kind::Comm)?;
    drop(guard);
    let tag = string_tag(stringtag)?;
    newintercomm.set(CommH::NULL);
    match (ours.is_empty(), &theirs) {
        // Even so it must be a group.
        (true, _) if remote_group != GroupH::NULL => return theirs.map(drop),
        (true, _) => return Ok(()),
        (false, Ok(theirs)) if theirs.is_empty() => return Ok(()),
        (false, _) => {}
    }
    check_leader(local_leader, &ours, "local_leader")?;
    let members = bootstrap(mpi, ours.clone(), "local_group", tag)?;
    let arguments = CheckedArguments::same(
        &[local_leader as i64],
        format!(" and local leader {local_leader}"),
    );
    check::among(
        &members,
        "intercomm_create_from_groups",
        &[&ours],
        arguments,
    )?;
    same_hints(&members, hints.as_deref())?;
    let rank = members.rank;
    let local = members.led_by(local_leader as u32);
    let mine = local.group.peer(0).0;
    let way = || {
        let theirs = theirs?;
        let other = leader_of(&theirs, remote_leader, &ours)?;
        Ok((ContextId(BOOTSTRAP.0 | 1), mine, (other.0, other)))
    };
    let mut bridge = meet(
        local,
        Purpose::User(tag),
        way,
        (Class::Group, "remote_group"),
    )?;
    let theirs = from_words(mpi, &bridge.swap_any(&to_words(mpi, &ours)?)?)?;
    bridge.spans = spans(mpi, &[&ours, &theirs]);
    let mut made = Comm::new(bridge.agree()?, ours, Some(Arc::new(theirs)), rank);
    made.errhandler = errhandler;
    made.session = session;
    made.info = hints;
    newintercomm.set(add_comm(&mut mpi.lock(), made));
    Ok(())
}

/// The leader of the other group, if the two groups can be the sides of an intercommunicator.
fn leader_of(theirs: &Group, leader: i32, ours: &Group) -> Res<Peer> {
    check_leader(leader, theirs, "remote_leader")?;
    check_disjoint(ours, theirs)?;
    Ok(theirs.peer(leader as u32))
}

/// MPI_Intercomm_merge: the group that gave `high` comes last; if both or none did, the group of
/// the first leader comes first.
pub fn intercomm_merge(mpi: &Mpi, intercomm: CommH, high: i32, newintracomm: Out<CommH>) -> Res {
    let parent = Parent::new(mpi, intercomm)?;
    let Some(remote) = &parent.remote else {
        return fail!(Comm: "intercomm is an intracommunicator, but must be an intercommunicator");
    };
    let bridge = parent.bridge(parent.members.clone(), remote);
    check::agree_on(mpi, intercomm, "intercomm_merge", Ok(()), |()| {
        let high = (high != 0) as i64;
        CheckedArguments::same_in_group(bridge.first, &[high], format!(" with high {high}"))
    })?;
    let mut ours = [(high != 0) as u8];
    parent.members.bcast(&mut ours)?;
    let theirs = bridge.swap(&ours, 1)?;
    let lower = match ours[0].cmp(&theirs[0]) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => bridge.first,
    };
    let local = &parent.members.group;
    let group = if lower {
        local.union(remote)
    } else {
        remote.union(local)
    };
    let context = bridge.agree()?;
    let me = local.peer(parent.members.rank);
    let rank = group.rank_of(me).unwrap_or(0);
    let made = Comm::new(context, Arc::new(group), None, rank);
    parent.give(parent.heir(made), newintracomm)
}

fn check_leader(rank: i32, group: &Group, name: &str) -> Res {
    if rank < 0 || rank as u32 >= group.size() {
        return fail!(Rank: "{name} is {rank}, but the group has {} processes", group.size());
    }
    Ok(())
}

fn check_disjoint(a: &Group, b: &Group) -> Res {
    match a.iter().find(|&p| b.contains(p)) {
        None => Ok(()),
        Some(p) => fail!(Comm: "process {p} of the job is in both groups of the intercommunicator"),
    }
}
