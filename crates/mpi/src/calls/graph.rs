//! Virtual topologies (MPI 5.0, chapter 8): graphs that all processes know completely.

use crate::calls::coll::check;
use crate::calls::comm_make::Parent;
use crate::calls::mapping;
use crate::calls::topo::checked_arguments;
use kw_objects::Topology;
use kw_objects::error::{Res, fail};
use kw_objects::handle::CommH;
use kw_objects::state::Mpi;
use kw_objects::topology::Graph;
use kw_sys::args::{Ints, Out};
use std::sync::Arc;

/// MPI_Graph_create
pub fn graph_create(
    mpi: &Mpi,
    comm_old: CommH,
    nnodes: i32,
    index: Ints,
    edges: Ints,
    reorder: i32,
    comm_graph: Out<CommH>,
) -> Res {
    let parent = Parent::intra(mpi, comm_old, "comm_old")?;
    let graph = whole(nnodes, index, edges, parent.members.group.size());
    let graph = check::agree_on(mpi, comm_old, "graph_create", graph, |g| {
        let text = format!("index {:?}, edges {:?}", g.index, g.edges);
        checked_arguments(&[&g.index[..], &[-1], &g.edges[..]].concat(), text, reorder)
    })?;
    let place = match reorder {
        0 => mapping::kept(&parent, nnodes),
        _ => mapping::of_graph(&parent, &graph),
    };
    let topology = Some(Arc::new(Topology::Graph(graph)));
    parent.split_into(mapping::color(place), place, topology, comm_graph)
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
    let graph = whole(nnodes, index, edges, parent.members.group.size())?;
    newrank.set(mapping::of_graph(&parent, &graph));
    Ok(())
}

/// The graph of the arguments.
fn whole(nnodes: i32, index: Ints, edges: Ints, size: u32) -> Res<Graph> {
    if nnodes < 0 || nnodes as u32 > size {
        return fail!(Arg: "nnodes is {nnodes}, but the communicator has {size} processes");
    }
    let index = array(nnodes, index, "index")?;
    for (i, pair) in [&[0], &index[..]].concat().windows(2).enumerate() {
        if pair[1] < pair[0] {
            return fail!(Arg: "index[{i}] is {}, but must not be less than {}", pair[1], pair[0]);
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
    let graph = guard.above.comms.graph(comm)?;
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
    let graph = guard.above.comms.graph(comm)?;
    give(&graph.index, maxindex, index, "maxindex")?;
    give(&graph.edges, maxedges, edges, "maxedges")
}

/// MPI_Graph_neighbors_count
pub fn graph_neighbors_count(mpi: &Mpi, comm: CommH, rank: i32, nneighbors: Out<i32>) -> Res {
    let guard = mpi.lock();
    nneighbors.set(neighbors_of(guard.above.comms.graph(comm)?, rank)?.len() as i32);
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
    let found = neighbors_of(guard.above.comms.graph(comm)?, rank)?;
    give(found, maxneighbors, neighbors, "maxneighbors")
}

fn neighbors_of(graph: &Graph, rank: i32) -> Res<&[i64]> {
    match graph.neighbors(rank as i64) {
        Some(found) => Ok(found),
        None => fail!(Rank: "rank is {rank}, but the graph has {} nodes", graph.index.len()),
    }
}

/// Writes as many values as fit.
pub(crate) fn give(values: &[i64], room: i32, out: Ints, name: &str) -> Res {
    if room < 0 {
        return fail!(Arg: "{name} is {room}, but must not be negative");
    }
    let n = values.len().min(room as usize);
    if n > 0 && out.is_null() {
        return fail!(Arg: "an array is null, but {name} is {room}");
    }
    for (i, &v) in values[..n].iter().enumerate() {
        out.set(i, v);
    }
    Ok(())
}

pub(crate) fn array(n: i32, values: Ints, name: &str) -> Res<Vec<i64>> {
    if n < 0 {
        return fail!(Arg: "the length of {name} is {n}, but must not be negative");
    }
    if n > 0 && values.is_null() {
        return fail!(Arg: "{name} is null, but has {n} elements");
    }
    Ok(values.to_vec(n as usize))
}

pub(crate) fn ranks_exist(ranks: &[i64], name: &str, size: u32) -> Res {
    match ranks.iter().position(|&r| !(0..size as i64).contains(&r)) {
        None => Ok(()),
        Some(i) => {
            fail!(Rank: "{name}[{i}] is {}, but ranks go from 0 to {}", ranks[i], size as i64 - 1)
        }
    }
}
