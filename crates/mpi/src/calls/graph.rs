//! Virtual topologies (MPI 5.0, chapter 8): graphs, known whole by everybody or each process's edges by itself.

use crate::calls::comm_make::Parent;
use crate::error::{Class, Res, fail};
use crate::handle::{CommH, InfoH};
use crate::objects::Topology;
use crate::objects::comm::UNDEFINED;
use crate::objects::topology::{Dist, Edge, Graph};
use crate::state::{Mpi, Tables};
use kw_sys::args::{Ints, Out};
use std::sync::Arc;

/// MPI_UNWEIGHTED
const UNWEIGHTED: usize = 10;
/// MPI_WEIGHTS_EMPTY
const WEIGHTS_EMPTY: usize = 11;

/// MPI_Graph_create. Ranks keep their order: all paths are alike to us.
pub fn graph_create(
    mpi: &Mpi,
    comm_old: CommH,
    nnodes: i32,
    index: Ints,
    edges: Ints,
    _reorder: i32,
    comm_graph: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    let graph = whole(nnodes, index, edges, parent.circle.group.size())?;
    let color = match (parent.circle.rank as i32) < nnodes {
        true => 0,
        false => UNDEFINED,
    };
    let topology = Some(Arc::new(Topology::Graph(graph)));
    parent.split_into(color, 0, topology, comm_graph)
}

/// MPI_Graph_map
pub fn graph_map(
    mpi: &Mpi,
    comm: CommH,
    nnodes: i32,
    index: Ints,
    edges: Ints,
    newrank: Out<i32>,
) -> Res {
    let parent = Parent::intra(mpi, comm, "comm")?;
    whole(nnodes, index, edges, parent.circle.group.size())?;
    let rank = parent.circle.rank as i32;
    newrank.set(if rank < nnodes { rank } else { UNDEFINED });
    Ok(())
}

/// The graph of the arguments.
fn whole(nnodes: i32, index: Ints, edges: Ints, size: u32) -> Res<Graph> {
    if nnodes < 0 || nnodes as u32 > size {
        return fail(
            Class::Arg,
            format!("nnodes is {nnodes}, but the communicator has {size} processes"),
        );
    }
    let index = array(nnodes, index, "index")?;
    for (i, pair) in [&[0], &index[..]].concat().windows(2).enumerate() {
        if pair[1] < pair[0] {
            return fail(
                Class::Arg,
                format!(
                    "index[{i}] is {}, but must not be less than {}",
                    pair[1], pair[0]
                ),
            );
        }
    }
    let n = index.last().copied().unwrap_or(0);
    let edges = array(n as i32, edges, "edges")?;
    ranks_exist(&edges, "edges", nnodes as u32)?;
    Ok(Graph::new(index, edges))
}

/// MPI_Graphdims_get
pub fn graphdims_get(mpi: &Mpi, comm: CommH, nnodes: Out<i32>, nedges: Out<i32>) -> Res {
    let guard = mpi.lock();
    let graph = guard.above.graph(comm)?;
    nnodes.set(graph.index.len() as i32);
    nedges.set(graph.edges.len() as i32);
    Ok(())
}

/// MPI_Graph_get
pub fn graph_get(
    mpi: &Mpi,
    comm: CommH,
    maxindex: i32,
    maxedges: i32,
    index: Ints,
    edges: Ints,
) -> Res {
    let guard = mpi.lock();
    let graph = guard.above.graph(comm)?;
    give(&graph.index, maxindex, index, "maxindex")?;
    give(&graph.edges, maxedges, edges, "maxedges")
}

/// MPI_Graph_neighbors_count
pub fn graph_neighbors_count(mpi: &Mpi, comm: CommH, rank: i32, nneighbors: Out<i32>) -> Res {
    let guard = mpi.lock();
    nneighbors.set(neighbors_of(guard.above.graph(comm)?, rank)?.len() as i32);
    Ok(())
}

/// MPI_Graph_neighbors
pub fn graph_neighbors(
    mpi: &Mpi,
    comm: CommH,
    rank: i32,
    maxneighbors: i32,
    neighbors: Ints,
) -> Res {
    let guard = mpi.lock();
    let found = neighbors_of(guard.above.graph(comm)?, rank)?;
    give(found, maxneighbors, neighbors, "maxneighbors")
}

fn neighbors_of(graph: &Graph, rank: i32) -> Res<&[i64]> {
    match graph.neighbors(rank as i64) {
        Some(found) => Ok(found),
        None => fail(
            Class::Rank,
            format!(
                "rank is {rank}, but the graph has {} nodes",
                graph.index.len()
            ),
        ),
    }
}

/// MPI_Dist_graph_create_adjacent: every process names its own edges, so nothing but the context id is agreed upon.
#[allow(clippy::too_many_arguments)]
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
    _reorder: i32,
    comm_dist_graph: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    mpi.lock().above.info_or_null(info)?;
    let size = parent.circle.group.size();
    let (sources, weighted) = ends(indegree, sources, sourceweights, size, "sources")?;
    let (destinations, also) = ends(outdegree, destinations, destweights, size, "destinations")?;
    let dist = Dist {
        sources,
        destinations,
        weighted: weighted && also,
    };
    finish(&parent, dist, comm_dist_graph)
}

/// MPI_Dist_graph_create: anybody names any edges; all of them are gathered, and each process keeps its own.
#[allow(clippy::too_many_arguments)]
pub fn dist_graph_create(
    mpi: &Mpi,
    comm_old: CommH,
    n: i32,
    sources: Ints,
    degrees: Ints,
    destinations: Ints,
    weights: Ints,
    info: InfoH,
    _reorder: i32,
    comm_dist_graph: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    mpi.lock().above.info_or_null(info)?;
    let size = parent.circle.group.size();
    let from = array(n, sources, "sources")?;
    ranks_exist(&from, "sources", size)?;
    let degrees = array(n, degrees, "degrees")?;
    if let Some(i) = degrees.iter().position(|&d| d < 0) {
        return fail(
            Class::Arg,
            format!("degrees[{i}] is {}, but must not be negative", degrees[i]),
        );
    }
    let total: i64 = degrees.iter().sum();
    let (to, weighted) = ends(total as i32, destinations, weights, size, "destinations")?;
    let each = from.iter().zip(&degrees);
    let tails = each.flat_map(|(&f, &d)| std::iter::repeat_n(f, d as usize));
    let mine: Vec<[i64; 3]> = tails.zip(to).map(|(f, e)| [f, e.rank, e.weight]).collect();
    let all = gather_edges(&parent, &mine)?;
    let me = parent.circle.rank as i64;
    let end = |at: usize| {
        move |e: &[i64; 3]| Edge {
            rank: e[at],
            weight: e[2],
        }
    };
    let dist = Dist {
        sources: all.iter().filter(|e| e[1] == me).map(end(0)).collect(),
        destinations: all.iter().filter(|e| e[0] == me).map(end(1)).collect(),
        weighted,
    };
    finish(&parent, dist, comm_dist_graph)
}

/// The edges that all processes named, in the order of ranks. Everybody's share is filled up to the largest.
fn gather_edges(parent: &Parent, mine: &[[i64; 3]]) -> Res<Vec<[i64; 3]>> {
    const NOTHING: [i64; 3] = [-1; 3];
    let word = |b: &[u8]| i64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
    let counts = parent
        .circle
        .allgather(&(mine.len() as i64).to_ne_bytes())?;
    let most = counts.chunks_exact(8).map(word).max().unwrap_or(0) as usize;
    let mut share = mine.to_vec();
    share.resize(most, NOTHING);
    let bytes: Vec<u8> = share
        .iter()
        .flatten()
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    let all = parent.circle.allgather(&bytes)?;
    let edges = all
        .chunks_exact(24)
        .map(|e| [word(e), word(&e[8..]), word(&e[16..])]);
    Ok(edges.filter(|&e| e != NOTHING).collect())
}

fn finish(parent: &Parent, dist: Dist, comm_dist_graph: Out<CommH>) -> Res {
    let mut made = parent.make(parent.circle.clone(), None)?;
    made.topology = Some(Arc::new(Topology::Dist(dist)));
    parent.give(made, comm_dist_graph)
}

/// `n` ends of edges with their weights, and whether weights were given.
fn ends(n: i32, ranks: Ints, weights: Ints, size: u32, name: &str) -> Res<(Vec<Edge>, bool)> {
    let ranks = array(n, ranks, name)?;
    ranks_exist(&ranks, name, size)?;
    let weighted = weights.bits() != UNWEIGHTED;
    let given = match weights.bits() {
        UNWEIGHTED => vec![1; ranks.len()],
        WEIGHTS_EMPTY if n > 0 => {
            return fail(
                Class::Arg,
                format!("the weights are MPI_WEIGHTS_EMPTY, but there are {n} {name}"),
            );
        }
        WEIGHTS_EMPTY => Vec::new(),
        _ => array(n, weights, "weights")?,
    };
    if let Some(i) = given.iter().position(|&w| w < 0) {
        return fail(
            Class::Arg,
            format!("weight {i} is {}, but must not be negative", given[i]),
        );
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
    let dist = guard.above.dist(comm)?;
    indegree.set(dist.sources.len() as i32);
    outdegree.set(dist.destinations.len() as i32);
    weighted.set(dist.weighted as i32);
    Ok(())
}

/// MPI_Dist_graph_neighbors
#[allow(clippy::too_many_arguments)]
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
    let dist = guard.above.dist(comm)?;
    let rooms = [
        (&dist.sources, maxindegree, sources, sourceweights),
        (&dist.destinations, maxoutdegree, destinations, destweights),
    ];
    for (edges, most, ranks, weights) in rooms {
        let ranks_of: Vec<i64> = edges.iter().map(|e| e.rank).collect();
        give(&ranks_of, most, ranks, "maxdegree")?;
        let wanted = dist.weighted && !weights.is_null() && weights.bits() > WEIGHTS_EMPTY;
        if wanted {
            let weights_of: Vec<i64> = edges.iter().map(|e| e.weight).collect();
            give(&weights_of, most, weights, "maxdegree")?;
        }
    }
    Ok(())
}

impl Tables {
    fn graph(&self, comm: CommH) -> Res<&Graph> {
        match self.comm(comm)?.topology.as_deref() {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => fail(
                Class::Topology,
                "comm is no graph; make one with MPI_Graph_create",
            ),
        }
    }

    fn dist(&self, comm: CommH) -> Res<&Dist> {
        match self.comm(comm)?.topology.as_deref() {
            Some(Topology::Dist(dist)) => Ok(dist),
            _ => fail(
                Class::Topology,
                "comm is no distributed graph; make one with MPI_Dist_graph_create",
            ),
        }
    }
}

/// Writes as many values as there is room for.
fn give(values: &[i64], room: i32, out: Ints, name: &str) -> Res {
    if room < 0 {
        return fail(
            Class::Arg,
            format!("{name} is {room}, but must not be negative"),
        );
    }
    let n = values.len().min(room as usize);
    if n > 0 && out.is_null() {
        return fail(
            Class::Arg,
            format!("an array is null, but {name} is {room}"),
        );
    }
    for (i, &v) in values[..n].iter().enumerate() {
        out.set(i, v);
    }
    Ok(())
}

fn array(n: i32, values: Ints, name: &str) -> Res<Vec<i64>> {
    if n < 0 {
        return fail(
            Class::Arg,
            format!("the length of {name} is {n}, but must not be negative"),
        );
    }
    if n > 0 && values.is_null() {
        return fail(Class::Arg, format!("{name} is null, but has {n} elements"));
    }
    Ok(values.to_vec(n as usize))
}

fn ranks_exist(ranks: &[i64], name: &str, size: u32) -> Res {
    match ranks.iter().position(|&r| !(0..size as i64).contains(&r)) {
        None => Ok(()),
        Some(i) => fail(
            Class::Rank,
            format!(
                "{name}[{i}] is {}, but ranks go from 0 to {}",
                ranks[i],
                size as i64 - 1
            ),
        ),
    }
}
