//! Virtual topologies (MPI 5.0, chapter 8): what a communicator keeps about one.

/// The arrangement of a communicator's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that every process knows whole.
    Graph(Graph),
    /// A graph of which this process knows its own edges.
    Dist(Dist),
}

impl Topology {
    /// What MPI_Topo_test says.
    pub fn status(&self) -> i32 {
        match self {
            Topology::Cart(_) => 211,
            Topology::Graph(_) => 212,
            Topology::Dist(_) => 213,
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
}

impl Graph {
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
    /// Edges that come in.
    pub sources: Vec<Edge>,
    /// Edges that go out.
    pub destinations: Vec<Edge>,
    /// Whether the weights were given.
    pub weighted: bool,
}

/// A grid; ranks count through the last dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    /// Processes in each dimension.
    pub dims: Vec<i64>,
    /// Whether the dimension closes to a ring.
    pub periods: Vec<bool>,
}

impl Cart {
    /// Number of places.
    pub fn size(&self) -> i64 {
        self.dims.iter().product()
    }

    /// Where a rank lies.
    pub fn coords(&self, rank: i64) -> Vec<i64> {
        let mut rest = rank;
        let mut coords = vec![0; self.dims.len()];
        for (c, &d) in coords.iter_mut().zip(&self.dims).rev() {
            *c = rest % d;
            rest /= d;
        }
        coords
    }

    /// The rank at these coordinates, wrapped around where the dimension is a ring; `None` outside the grid.
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
