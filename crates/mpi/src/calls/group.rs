//! Groups (MPI 5.0, 7.3).

use kw_objects::Group;
use kw_objects::comm::{PROC_NULL, UNDEFINED};
use kw_objects::error::{Class, Res, fail};
use kw_objects::group::group_fault;
use kw_objects::handle::{CommH, GroupH, SessionH};
use kw_objects::state::Mpi;
use kw_sys::args::{Ints, Out, Text};
use kw_types::comm::{GroupError, Likeness};
use std::sync::Arc;

const IDENT: i32 = 201;
const CONGRUENT: i32 = 202;
const SIMILAR: i32 = 203;
const UNEQUAL: i32 = 204;

/// MPI_Group_size
pub fn group_size(mpi: &Mpi, group: GroupH, size: Out<i32>) -> Res {
    size.set(mpi.lock().above.groups.get(group)?.size() as i32);
    Ok(())
}

/// MPI_Group_rank
pub fn group_rank(mpi: &Mpi, group: GroupH, rank: Out<i32>) -> Res {
    let guard = mpi.lock();
    let group = guard.above.groups.get(group)?;
    let mine = guard.engine.as_ref().and_then(|e| group.rank_of(e.job.me));
    rank.set(mine.map_or(UNDEFINED, |r| r as i32));
    Ok(())
}

/// MPI_Group_translate_ranks
pub fn group_translate_ranks(
    mpi: &Mpi,
    group1: GroupH,
    n: i32,
    ranks1: Ints,
    group2: GroupH,
    ranks2: Ints,
) -> Res {
    let guard = mpi.lock();
    let (from, to) = (
        guard.above.groups.get(group1)?,
        guard.above.groups.get(group2)?,
    );
    let ranks = list(n, ranks1, "ranks1")?;
    if n > 0 && ranks2.is_null() {
        return fail!(Arg: "ranks2 is null, but n is {n}");
    }
    for (i, &rank) in ranks.iter().enumerate() {
        if rank != PROC_NULL as i64 && !(0..from.size() as i64).contains(&rank) {
            return fail!(Rank: "ranks1[{i}] is {rank}, but group1 has {} processes", from.size());
        }
    }
    for (i, &rank) in ranks.iter().enumerate() {
        let there = match rank {
            r if r == PROC_NULL as i64 => PROC_NULL as i64,
            r => from
                .translate(r as u32, &to)
                .map_or(UNDEFINED as i64, i64::from),
        };
        ranks2.set(i, there);
    }
    Ok(())
}

/// MPI_Group_compare
pub fn group_compare(mpi: &Mpi, group1: GroupH, group2: GroupH, result: Out<i32>) -> Res {
    let guard = mpi.lock();
    let (a, b) = (
        guard.above.groups.get(group1)?,
        guard.above.groups.get(group2)?,
    );
    result.set(likeness(&a, &b));
    Ok(())
}

/// MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL.
fn likeness(a: &Group, b: &Group) -> i32 {
    match a.compare(b) {
        Likeness::Identical => IDENT,
        Likeness::Similar => SIMILAR,
        Likeness::Unequal => UNEQUAL,
    }
}

/// MPI_Comm_compare
pub fn comm_compare(mpi: &Mpi, comm1: CommH, comm2: CommH, result: Out<i32>) -> Res {
    let guard = mpi.lock();
    let (a, b) = (guard.above.comms.get(comm1)?, guard.above.comms.get(comm2)?);
    let groups = match (&a.remote, &b.remote) {
        (None, None) => likeness(&a.local, &b.local),
        (Some(x), Some(y)) => likeness(&a.local, &b.local).max(likeness(x, y)),
        _ => UNEQUAL,
    };
    result.set(match groups {
        IDENT if comm1 != comm2 => CONGRUENT,
        other => other,
    });
    Ok(())
}

/// MPI_Comm_group
pub fn comm_group(mpi: &Mpi, comm: CommH, group: Out<GroupH>) -> Res {
    let mut guard = mpi.lock();
    let found = guard.above.comms.get(comm)?;
    let (local, session) = (found.local.clone(), found.session);
    group.set(guard.above.add_group(local, session));
    Ok(())
}

/// MPI_Comm_remote_group
pub fn comm_remote_group(mpi: &Mpi, comm: CommH, group: Out<GroupH>) -> Res {
    let mut guard = mpi.lock();
    let comm = guard.above.comms.get(comm)?;
    let (found, session) = (comm.remote.clone(), comm.session);
    let Some(found) = found else {
        return fail!(Comm: "comm is an intracommunicator, which has no remote group");
    };
    group.set(guard.above.add_group(found, session));
    Ok(())
}

/// MPI_Group_union
pub fn group_union(mpi: &Mpi, group1: GroupH, group2: GroupH, newgroup: Out<GroupH>) -> Res {
    combine(mpi, group1, group2, newgroup, Group::union)
}

/// MPI_Group_intersection
pub fn group_intersection(mpi: &Mpi, group1: GroupH, group2: GroupH, newgroup: Out<GroupH>) -> Res {
    combine(mpi, group1, group2, newgroup, Group::intersection)
}

/// MPI_Group_difference
pub fn group_difference(mpi: &Mpi, group1: GroupH, group2: GroupH, newgroup: Out<GroupH>) -> Res {
    combine(mpi, group1, group2, newgroup, Group::difference)
}

fn combine(
    mpi: &Mpi,
    group1: GroupH,
    group2: GroupH,
    newgroup: Out<GroupH>,
    how: fn(&Group, &Group) -> Group,
) -> Res {
    let mut guard = mpi.lock();
    let a = guard.above.groups.held(group1)?;
    let b = guard.above.groups.held(group2)?;
    let session = a.session.or(b.session);
    let made = Arc::new(how(&a.group, &b.group));
    newgroup.set(guard.above.add_group(made, session));
    Ok(())
}

/// MPI_Group_incl
pub fn group_incl(mpi: &Mpi, group: GroupH, n: i32, ranks: Ints, newgroup: Out<GroupH>) -> Res {
    let chosen = list(n, ranks, "ranks")?;
    part(mpi, group, newgroup, |old| old.incl(&chosen))
}

/// MPI_Group_excl
pub fn group_excl(mpi: &Mpi, group: GroupH, n: i32, ranks: Ints, newgroup: Out<GroupH>) -> Res {
    let chosen = list(n, ranks, "ranks")?;
    part(mpi, group, newgroup, |old| old.excl(&chosen))
}

/// MPI_Group_range_incl
pub fn group_range_incl(
    mpi: &Mpi,
    group: GroupH,
    n: i32,
    ranges: Ints,
    newgroup: Out<GroupH>,
) -> Res {
    let chosen = triplets(n, ranges)?;
    part(mpi, group, newgroup, |old| old.range_incl(&chosen))
}

/// MPI_Group_range_excl
pub fn group_range_excl(
    mpi: &Mpi,
    group: GroupH,
    n: i32,
    ranges: Ints,
    newgroup: Out<GroupH>,
) -> Res {
    let chosen = triplets(n, ranges)?;
    part(mpi, group, newgroup, |old| old.range_excl(&chosen))
}

/// A group of some of the members of another.
fn part(
    mpi: &Mpi,
    group: GroupH,
    newgroup: Out<GroupH>,
    choose: impl FnOnce(&Group) -> Result<Group, GroupError>,
) -> Res {
    let mut guard = mpi.lock();
    let old = guard.above.groups.held(group)?;
    let new = choose(&old.group).map_err(group_fault)?;
    newgroup.set(guard.above.add_group(Arc::new(new), old.session));
    Ok(())
}

/// MPI_Group_from_session_pset: an error and MPI_GROUP_NULL when there is no such process set (MPI
/// 5.0, 7.3.2).
pub fn group_from_session_pset(
    mpi: &Mpi,
    session: SessionH,
    pset_name: Text,
    newgroup: Out<GroupH>,
) -> Res {
    let mut guard = mpi.lock();
    guard.above.sessions.get(session)?;
    let Some(name) = pset_name.to_text() else {
        return fail(Class::Arg, "pset_name is null");
    };
    let (me, size) = match &guard.engine {
        Some(e) => (e.job.me, e.job.size()),
        None => return fail(Class::Session, "the session has no engine"),
    };
    newgroup.set(GroupH::NULL);
    let group = guard.above.sessions.get(session)?.pset(&name, me, size)?;
    newgroup.set(guard.above.add_group(Arc::new(group), Some(session)));
    Ok(())
}

/// MPI_Group_free
pub fn group_free(mpi: &Mpi, group: Out<GroupH>) -> Res {
    mpi.lock().above.groups.free(group.get())?;
    group.set(GroupH::NULL);
    Ok(())
}

/// The first `n` elements of an array argument.
fn list(n: i32, values: Ints, name: &str) -> Res<Vec<i64>> {
    if n < 0 {
        return fail!(Arg: "n is {n}, but must not be negative");
    }
    if n > 0 && values.is_null() {
        return fail!(Arg: "{name} is null, but n is {n}");
    }
    Ok(values.to_vec(n as usize))
}

/// The first `n` ranges of an array of triplets.
fn triplets(n: i32, ranges: Ints) -> Res<Vec<[i64; 3]>> {
    list(n, ranges, "ranges")?;
    let flat = ranges.to_vec(3 * n as usize);
    Ok(flat.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect())
}
