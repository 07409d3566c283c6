//! Virtual topologies (MPI 5.0, chapter 8): a communicator's data about one.

use crate::error::{Res, fail};
use crate::handle::CommH;
use kw_coll::Neighbors;

/// The arrangement of a communicator's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that every process knows completely.
    Graph(Graph),
    /// A graph of which this process knows its own edges.
    Dist(Dist),
}

impl Topology {
    /// Result of MPI_Topo_test.
    pub fn status(&self) -> i32 {
        match self {
            Topology::Cart(_) => 211,
            Topology::Graph(_) => 212,
            Topology::Dist(_) => 213,
        }
    }

    /// The edges along which a process communicates in neighbourhood collectives; `None` for graphs
    /// without that meaning.
    pub fn neighborhood(&self, rank: u32) -> Option<Neighborhood> {
        match self {
            Topology::Cart(cart) => Some(cart.neighborhood(rank)),
            Topology::Graph(graph) => graph.neighborhood(rank),
            Topology::Dist(dist) => dist.neighborhood(rank),
        }
    }
}

/// One process's part in neighbourhood collectives.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Neighborhood {
    /// The edges; neighbours that are MPI_PROC_NULL have none.
    pub edges: Neighbors,
    /// Blocks of the receive buffer.
    pub sources: u32,
    /// Blocks of the send buffer.
    pub destinations: u32,
}

impl Neighborhood {
    fn of_graph(
        sources: impl ExactSizeIterator<Item = i64>,
        destinations: impl ExactSizeIterator<Item = i64>,
    ) -> Neighborhood {
        let (from, to) = (sources.len(), destinations.len());
        // Ranks were checked when the graph was created.
        let rank = |r: i64| r as u32;
        Neighborhood {
            edges: Neighbors::of_graph(sources.map(rank), destinations.map(rank)),
            sources: from as u32,
            destinations: to as u32,
        }
    }
}

/// A graph: `edges[index[r - 1]..index[r]]` are the neighbors of rank `r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where each rank's neighbors end.
    pub index: Vec<i64>,
    /// All neighbors.
    pub edges: Vec<i64>,
    /// Whether there are as many edges from any rank to any other as back.
    pub symmetric: bool,
}

impl Graph {
    /// A graph whose arrays have been checked.
    pub fn new(index: Vec<i64>, edges: Vec<i64>) -> Graph {
        let symmetric = false;
        let mut graph = Graph {
            index,
            edges,
            symmetric,
        };
        graph.symmetric = graph.is_symmetric();
        graph
    }

    fn is_symmetric(&self) -> bool {
        let ranks = 0..self.index.len() as i64;
        let ends = |r: i64| {
            self.neighbors(r)
                .into_iter()
                .flatten()
                .map(move |&n| (r, n))
        };
        let mut there: Vec<(i64, i64)> = ranks.flat_map(ends).collect();
        let mut back: Vec<(i64, i64)> = there.iter().map(|&(a, b)| (b, a)).collect();
        there.sort_unstable();
        back.sort_unstable();
        there == back
    }

    fn neighborhood(&self, rank: u32) -> Option<Neighborhood> {
        let found = self.neighbors(rank as i64).filter(|_| self.symmetric)?;
        let ranks = || found.iter().copied();
        Some(Neighborhood::of_graph(ranks(), ranks()))
    }

    /// The neighbors of a rank, if it exists.
    pub fn neighbors(&self, rank: i64) -> Option<&[i64]> {
        let at = usize::try_from(rank).ok()?;
        let end = *self.index.get(at)? as usize;
        let start = at.checked_sub(1).map_or(0, |b| self.index[b] as usize);
        self.edges.get(start..end)
    }
}

/// One edge of a distributed graph, as seen from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The rank at the other end.
    pub rank: i64,
    /// Its weight.
    pub weight: i64,
}

/// One process's edges of a distributed graph.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dist {
    /// Incoming edges.
    pub sources: Vec<Edge>,
    /// Outgoing edges.
    pub destinations: Vec<Edge>,
    /// Whether the weights were given.
    pub weighted: bool,
}

impl Dist {
    /// Checks that edges from a process to itself are in both its lists; it can check only these
    /// alone.
    fn neighborhood(&self, rank: u32) -> Option<Neighborhood> {
        let own = |edges: &[Edge]| edges.iter().filter(|e| e.rank == rank as i64).count();
        if own(&self.sources) != own(&self.destinations) {
            return None;
        }
        let ranks =
            |edges: &'_ [Edge]| edges.iter().map(|e| e.rank).collect::<Vec<_>>().into_iter();
        let found = Neighborhood::of_graph(ranks(&self.sources), ranks(&self.destinations));
        Some(found)
    }
}

/// A grid; consecutive ranks differ in the last dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    /// Processes in each dimension.
    pub dims: Vec<i64>,
    /// Whether the dimension is periodic.
    pub periods: Vec<bool>,
}

impl Cart {
    /// Number of places.
    pub fn size(&self) -> i64 {
        self.dims.iter().product()
    }

    /// Coordinates of a rank.
    pub fn coords(&self, rank: i64) -> Vec<i64> {
        let mut rest = rank;
        let mut coords = vec![0; self.dims.len()];
        for (c, &d) in coords.iter_mut().zip(&self.dims).rev() {
            *c = rest % d;
            rest /= d;
        }
        coords
    }

    /// The rank at these coordinates, wrapped around in periodic dimensions; `None` outside the
    /// grid.
    pub fn rank(&self, coords: &[i64]) -> Option<i64> {
        let mut rank = 0;
        for (i, &c) in coords.iter().enumerate() {
            let d = self.dims[i];
            let c = if self.periods[i] { c.rem_euclid(d) } else { c };
            if !(0..d).contains(&c) {
                return None;
            }
            rank = rank * d + c;
        }
        Some(rank)
    }

    /// The rank `by` places from `rank` along a dimension.
    pub fn shifted(&self, rank: i64, dim: usize, by: i64) -> Option<i64> {
        let mut at = self.coords(rank);
        at[dim] += by;
        self.rank(&at)
    }

    fn neighborhood(&self, rank: u32) -> Neighborhood {
        let n = self.dims.len();
        let at = |dim, by| self.shifted(rank as i64, dim, by).map(|r| r as u32);
        Neighborhood {
            edges: Neighbors::of_grid((0..n).map(|dim| (at(dim, -1), at(dim, 1)))),
            sources: 2 * n as u32,
            destinations: 2 * n as u32,
        }
    }
}

impl crate::comm::Comms {
    /// The distributed graph of a communicator.
    pub fn dist(&self, comm: CommH) -> Res<&Dist> {
        match self.get(comm)?.topology.as_deref() {
            Some(Topology::Dist(dist)) => Ok(dist),
            _ => {
                fail!(Topology: "comm has no distributed graph topology; create one with MPI_Dist_graph_create")
            }
        }
    }

    /// The graph of a communicator.
    pub fn graph(&self, comm: CommH) -> Res<&Graph> {
        match self.get(comm)?.topology.as_deref() {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => fail!(Topology: "comm has no graph topology; create one with MPI_Graph_create"),
        }
    }

    /// The grid of a communicator and this process's place in it.
    pub fn cart(&self, comm: CommH) -> Res<(&Cart, i64)> {
        let comm = self.get(comm)?;
        match comm.topology.as_deref() {
            Some(Topology::Cart(cart)) => Ok((cart, comm.rank as i64)),
            _ => fail!(Topology: "comm has no Cartesian topology; create one with MPI_Cart_create"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_and_ranks_are_inverse() {
        let c = Cart {
            dims: vec![3, 2, 4],
            periods: vec![true, false, true],
        };
        for r in 0..c.size() {
            assert_eq!(c.rank(&c.coords(r)), Some(r));
        }
        assert_eq!(c.coords(1), [0, 0, 1]);
        assert_eq!(c.rank(&[-1, 0, 5]), c.rank(&[2, 0, 1]));
        assert_eq!(c.rank(&[0, 2, 0]), None);
    }
}
