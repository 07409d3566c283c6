//! Process mapping (MPI_Cart_map, `reorder`): places of the processes in a new topology. The known
//! locations of the processes are passed to `kw_types::comm::reorder`.

use crate::calls::comm_make::Parent;
use kw_base::Peer;
use kw_objects::Group;
use kw_objects::comm::UNDEFINED;
use kw_objects::topology::{Cart, Graph};
use kw_types::comm::reorder::{self, Link, Location};

/// The locations of the first `n` processes of a communicator. The hosts are known to all; packages
/// and cores only on the same host.
pub(crate) fn locations(parent: &Parent, n: u32) -> Vec<Location> {
    let peers: Vec<Peer> = parent.members.group.iter().take(n as usize).collect();
    let mut guard = parent.members.mpi.lock();
    match &mut guard.engine {
        Some(engine) => engine.locations(&peers),
        None => vec![Location::default(); peers.len()],
    }
}

/// This process's place if ranks keep their order and there are `n` places; MPI_UNDEFINED for the
/// remaining ranks.
pub(crate) fn kept(parent: &Parent, n: i32) -> i32 {
    let rank = parent.members.rank as i32;
    if rank < n { rank } else { UNDEFINED }
}

/// The color of MPI_Comm_split for a place.
pub(crate) fn color(place: i32) -> i32 {
    if place == UNDEFINED { UNDEFINED } else { 0 }
}

/// This process's place in a grid (MPI_Cart_map).
pub(crate) fn of_grid(parent: &Parent, cart: &Cart) -> i32 {
    let dims: Vec<u32> = cart.dims.iter().map(|&d| d as u32).collect();
    let locations = locations(parent, cart.size() as u32);
    chosen(parent, reorder::grid(&dims, &cart.periods, &locations))
}

/// This process's place in a graph (MPI_Graph_map).
pub(crate) fn of_graph(parent: &Parent, graph: &Graph) -> i32 {
    let n = graph.index.len() as u32;
    let ends = |a: u32| {
        graph
            .neighbors(a as i64)
            .into_iter()
            .flatten()
            .map(move |b| (a, *b))
    };
    let link = |(a, b): (u32, i64)| Link {
        a,
        b: b as u32,
        weight: 1,
    };
    let links: Vec<Link> = (0..n).flat_map(ends).map(link).collect();
    chosen(parent, reorder::graph(&links, &locations(parent, n)))
}

fn chosen(parent: &Parent, places: Vec<u32>) -> i32 {
    let place = places.get(parent.members.rank as usize);
    place.map_or(UNDEFINED, |&p| p as i32)
}

/// The group in which process `p` of the parent has rank `places[p]`.
pub(crate) fn group(parent: &Parent, places: &[u32]) -> Group {
    let mut peers = vec![Peer(0); places.len()];
    for (peer, &place) in parent.members.group.iter().zip(places) {
        peers[place as usize] = peer;
    }
    Group::new(peers)
}
