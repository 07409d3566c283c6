//! Virtual topologies (MPI 5.0, chapter 8): graphs of which each process knows only its own edges.

use crate::calls::coll::check::{self, CheckedArguments};
use crate::calls::comm_make::Parent;
use crate::calls::graph::{array, give, ranks_exist};
use crate::calls::mapping;
use crate::calls::topo::checked_arguments;
use crate::group_collectives::{Words, route};
use kw_objects::Topology;
use kw_objects::error::{Res, fail};
use kw_objects::handle::{CommH, InfoH};
use kw_objects::state::Mpi;
use kw_objects::topology::{Dist, Edge};
use kw_sys::args::{Ints, Out};
use kw_types::comm::reorder::{self, Link, Location};
use std::sync::Arc;

/// MPI_UNWEIGHTED
const UNWEIGHTED: usize = 10;
/// MPI_WEIGHTS_EMPTY
const WEIGHTS_EMPTY: usize = 11;

/// MPI_Dist_graph_create_adjacent: every process names its own edges, so only the context id is
/// agreed upon, unless ranks are reordered.
pub fn dist_graph_create_adjacent(
    mpi: &Mpi,
    comm_old: CommH,
    indegree: i32,
    sources: Ints,
    sourceweights: Ints,
    outdegree: i32,
    destinations: Ints,
    destweights: Ints,
    info: InfoH,
    reorder: i32,
    comm_dist_graph: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    mpi.lock().above.infos.get_or_null(info)?;
    let size = parent.members.group.size();
    let own = || {
        let (sources, weighted) = ends(indegree, sources, sourceweights, size, "sources")?;
        let (destinations, also) =
            ends(outdegree, destinations, destweights, size, "destinations")?;
        Ok(Dist {
            sources,
            destinations,
            weighted: weighted && also,
        })
    };
    let name = "dist_graph_create_adjacent";
    let dist = check::agree_on(mpi, comm_old, name, own(), |dist| {
        let number = |edges: &[Edge], rank| edges.iter().filter(|e| e.rank == rank).count();
        let with = |rank| {
            (
                number(&dist.destinations, rank),
                number(&dist.sources, rank),
            )
        };
        weighing(dist.weighted, reorder).edges((0..size as i64).map(with).collect())
    })?;
    finish(&parent, dist, reorder != 0, comm_dist_graph)
}

/// MPI_Dist_graph_create: any process may specify any edges; each is sent to the processes at its
/// two ends.
pub fn dist_graph_create(
    mpi: &Mpi,
    comm_old: CommH,
    n: i32,
    sources: Ints,
    degrees: Ints,
    destinations: Ints,
    weights: Ints,
    info: InfoH,
    reorder: i32,
    comm_dist_graph: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    mpi.lock().above.infos.get_or_null(info)?;
    let size = parent.members.group.size();
    let lists = (sources, degrees, destinations, weights);
    let named = named(n, lists, size);
    let (named, weighted) = check::agree_on(mpi, comm_old, "dist_graph_create", named, |named| {
        weighing(named.1, reorder)
    })?;
    let dist = meet(&parent, &named, weighted)?;
    finish(&parent, dist, reorder != 0, comm_dist_graph)
}

/// Arguments that must be the same on all ranks.
fn weighing(weighted: bool, reorder: i32) -> CheckedArguments {
    let text = if weighted {
        "weights"
    } else {
        "MPI_UNWEIGHTED"
    };
    checked_arguments(&[weighted as i64], text.into(), reorder)
}

/// The edges that the arguments name, each with source, destination and weight; and whether weights
/// were given.
fn named(
    n: i32,
    (sources, degrees, destinations, weights): (Ints, Ints, Ints, Ints),
    size: u32,
) -> Res<(Vec<[i64; 3]>, bool)> {
    let from = array(n, sources, "sources")?;
    ranks_exist(&from, "sources", size)?;
    let degrees = array(n, degrees, "degrees")?;
    if let Some(i) = degrees.iter().position(|&d| d < 0) {
        return fail!(Arg: "degrees[{i}] is {}, but must not be negative", degrees[i]);
    }
    let total: i64 = degrees.iter().sum();
    let Ok(total) = i32::try_from(total) else {
        return fail!(Arg: "degrees add up to {total}, more than an int holds");
    };
    let (to, weighted) = ends(total, destinations, weights, size, "destinations")?;
    let each = from.iter().zip(&degrees);
    let tails = each.flat_map(|(&f, &d)| std::iter::repeat_n(f, d as usize));
    let edges = tails.zip(to).map(|(f, e)| [f, e.rank, e.weight]);
    Ok((edges.collect(), weighted))
}

/// Side of an edge in a word: the edge leaves the receiver of the word.
const OUT: i64 = 0;
/// The edge enters it.
const IN: i64 = 1;
/// Instead of a side: the location of a process.
const LOCATION: i64 = 2;

/// Sends every edge to both its ends. There the edges are in the order of the ranks that named
/// them, so that several edges between two processes have the same order at both.
fn meet(parent: &Parent, named: &[[i64; 3]], weighted: bool) -> Res<Dist> {
    let me = parent.members.rank as i64;
    let numbered = (0..).zip(named);
    let sent = numbered
        .flat_map(|(i, &[f, t, w])| [[f, OUT, t, w, me, i], [t, IN, f, w, me, i]])
        .collect();
    let mut heard = route(&parent.members, sent)?;
    heard.sort_unstable_by_key(|e| (e[4], e[5]));
    Ok(from_words(&heard, weighted))
}

fn from_words(words: &[Words], weighted: bool) -> Dist {
    let side = |which| {
        let edge = |e: &Words| Edge {
            rank: e[2],
            weight: e[3],
        };
        words.iter().filter(|e| e[1] == which).map(edge).collect()
    };
    Dist {
        sources: side(IN),
        destinations: side(OUT),
        weighted,
    }
}

/// Creates the communicator.
fn finish(parent: &Parent, dist: Dist, reorder: bool, comm_dist_graph: Out<CommH>) -> Res {
    let places = match reorder {
        true => arrange(parent, &dist)?,
        false => None,
    };
    let (members, dist) = match places {
        None => (parent.members.clone(), dist),
        Some(places) => {
            let dist = hand_over(parent, &dist, &places)?;
            let group = Arc::new(mapping::group(parent, &places));
            let rank = places[parent.members.rank as usize];
            (parent.members.part(group, rank), dist)
        }
    };
    let mut made = parent.make(members, None)?;
    made.topology = Some(Arc::new(Topology::Dist(dist)));
    parent.give(made, comm_dist_graph)
}

/// The new rank of every process; `None` if all run on one package, where every order is equally
/// good. The first process gets the whole graph; without reordering none does.
fn arrange(parent: &Parent, dist: &Dist) -> Res<Option<Vec<u32>>> {
    let (members, size) = (&parent.members, parent.members.group.size());
    let locations = mapping::locations(parent, size);
    if members.all(reorder::alike(&locations))? {
        return Ok(None);
    }
    let me = members.rank as i64;
    let location = locations[me as usize];
    let (host, package) = (location.host as i64, location.package as i64);
    let mut sent = vec![[0, LOCATION, me, host, package, location.core as i64]];
    let out = dist.destinations.iter();
    sent.extend(out.map(|e| [0, OUT, me, e.rank, e.weight, 0]));
    let heard = route(members, sent)?;
    let mut places = vec![0u32; size as usize];
    if me == 0 {
        places = placed(&heard, size);
    }
    let mut bytes: Vec<u8> = places.iter().flat_map(|p| p.to_ne_bytes()).collect();
    members.bcast(&mut bytes)?;
    let word = |b: &[u8]| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
    Ok(Some(bytes.chunks_exact(4).map(word).collect()))
}

/// Result of the first process from all locations and edges.
fn placed(heard: &[Words], size: u32) -> Vec<u32> {
    let mut locations = vec![Location::default(); size as usize];
    let mut links = Vec::new();
    for e in heard {
        match e[1] {
            LOCATION => {
                locations[e[2] as usize] = Location {
                    host: e[3] as u32,
                    package: e[4] as u32,
                    core: e[5] as u32,
                }
            }
            _ => links.push(Link {
                a: e[2] as u32,
                b: e[3] as u32,
                weight: e[4] as u64,
            }),
        }
    }
    links.sort_unstable_by_key(|l| (l.a, l.b));
    reorder::graph(&links, &locations)
}

/// Gives the edges that were named for this rank to the process that has this rank now, and takes
/// those of its new rank.
fn hand_over(parent: &Parent, dist: &Dist, places: &[u32]) -> Res<Dist> {
    let me = parent.members.rank;
    let heir = places.iter().position(|&p| p == me).unwrap_or(0) as i64;
    let words = |side, edges: &[Edge]| {
        let word = |(i, e): (i64, &Edge)| [heir, side, e.rank, e.weight, 0, i];
        (0..).zip(edges).map(word).collect::<Vec<_>>()
    };
    let sent = [words(OUT, &dist.destinations), words(IN, &dist.sources)].concat();
    let mut heard = route(&parent.members, sent)?;
    heard.sort_unstable_by_key(|e| e[5]);
    Ok(from_words(&heard, dist.weighted))
}

/// `n` ends of edges with their weights, and whether weights were given.
fn ends(n: i32, ranks: Ints, weights: Ints, size: u32, name: &str) -> Res<(Vec<Edge>, bool)> {
    let ranks = array(n, ranks, name)?;
    ranks_exist(&ranks, name, size)?;
    let weighted = weights.bits() != UNWEIGHTED;
    let given = match weights.bits() {
        UNWEIGHTED => vec![1; ranks.len()],
        WEIGHTS_EMPTY if n > 0 => {
            return fail!(Arg: "the weights are MPI_WEIGHTS_EMPTY, but there are {n} {name}");
        }
        WEIGHTS_EMPTY => Vec::new(),
        _ => array(n, weights, "weights")?,
    };
    if let Some(i) = given.iter().position(|&w| w < 0) {
        return fail!(Arg: "weight {i} is {}, but must not be negative", given[i]);
    }
    let pairs = ranks.into_iter().zip(given);
    let edges = pairs.map(|(rank, weight)| Edge { rank, weight });
    Ok((edges.collect(), weighted))
}

/// MPI_Dist_graph_neighbors_count
pub fn dist_graph_neighbors_count(
    mpi: &Mpi,
    comm: CommH,
    indegree: Out<i32>,
    outdegree: Out<i32>,
    weighted: Out<i32>,
) -> Res {
    let guard = mpi.lock();
    let dist = guard.above.comms.dist(comm)?;
    indegree.set(dist.sources.len() as i32);
    outdegree.set(dist.destinations.len() as i32);
    weighted.set(dist.weighted as i32);
    Ok(())
}

/// MPI_Dist_graph_neighbors
pub fn dist_graph_neighbors(
    mpi: &Mpi,
    comm: CommH,
    maxindegree: i32,
    sources: Ints,
    sourceweights: Ints,
    maxoutdegree: i32,
    destinations: Ints,
    destweights: Ints,
) -> Res {
    let guard = mpi.lock();
    let dist = guard.above.comms.dist(comm)?;
    let into = (sources, sourceweights, "maxindegree");
    let out = (destinations, destweights, "maxoutdegree");
    let rooms = [
        (&dist.sources, maxindegree, into),
        (&dist.destinations, maxoutdegree, out),
    ];
    for (edges, most, (ranks, weights, name)) in rooms {
        let ranks_of: Vec<i64> = edges.iter().map(|e| e.rank).collect();
        give(&ranks_of, most, ranks, name)?;
        let wanted = dist.weighted && !weights.is_null() && weights.bits() > WEIGHTS_EMPTY;
        if wanted {
            let weights_of: Vec<i64> = edges.iter().map(|e| e.weight).collect();
            give(&weights_of, most, weights, name)?;
        }
    }
    Ok(())
}
