//! The neighbours of a rank in a virtual topology, in the order in which their messages match (MPI
//! 5.0, 8.6).

/// One edge of this rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The rank at the other end; it may be this rank itself.
    pub rank: u32,
    /// The block of the buffer that goes along it.
    pub block: u32,
}

/// The edges of one rank. Where two ranks share several edges of one direction, the sender's list
/// and the receiver's name them in the same order. An edge from a rank to itself is in both of its
/// lists.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Neighbors {
    /// Edges that go out.
    pub to: Vec<Edge>,
    /// Edges that come in.
    pub from: Vec<Edge>,
}

impl Neighbors {
    /// Neighbours of a grid, from the result of MPI_Cart_shift for each dimension: in negative and
    /// in positive direction. Data sent one way arrives from the other way, also when both
    /// neighbours are the same rank.
    pub fn of_grid(shifts: impl Iterator<Item = (Option<u32>, Option<u32>)>) -> Neighbors {
        let mut all = Neighbors::default();
        for (dim, (down, up)) in shifts.enumerate() {
            let at = 2 * dim as u32;
            let edge = |rank: Option<u32>, block| rank.map(|rank| Edge { rank, block });
            all.to.extend(edge(down, at));
            all.from.extend(edge(up, at + 1));
            all.to.extend(edge(up, at + 1));
            all.from.extend(edge(down, at));
        }
        all
    }

    /// Neighbours of a graph: block `i` goes to `destinations[i]` and comes from `sources[i]`.
    pub fn of_graph(
        sources: impl Iterator<Item = u32>,
        destinations: impl Iterator<Item = u32>,
    ) -> Neighbors {
        let edge = |(block, rank): (usize, u32)| Edge {
            rank,
            block: block as u32,
        };
        Neighbors {
            to: destinations.enumerate().map(edge).collect(),
            from: sources.enumerate().map(edge).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::ALL;
    use crate::check::{Memory, Symbol, World};
    use crate::{Blocks, CallView, Coll, RECV, SEND, Schedule};
    use proptest::prelude::*;

    /// Symbols in a block.
    const EACH: usize = 3;

    /// Runs every algorithm of `coll` with these edges; yields the receive buffers. Each rank has
    /// `degree(r)` blocks.
    fn results(
        coll: Coll,
        all: &[Neighbors],
        degree: &dyn Fn(usize) -> (usize, usize),
    ) -> Vec<Vec<Vec<Symbol>>> {
        let mut out = Vec::new();
        for algorithm in ALL.iter().filter(|a| a.coll == coll) {
            let even = |buf| Blocks::Even { buf, each: 1 };
            let ranks = all.iter().enumerate().map(|(r, neighbors)| {
                let call = CallView {
                    send: even(SEND),
                    recv: even(RECV),
                    neighbors: Some(neighbors),
                    ..CallView::new(r as u32, all.len() as u32)
                };
                let mut schedule = Schedule::default();
                (algorithm.emit)(&call, &mut schedule);
                let (blocks, room) = degree(r);
                let own = (0..blocks.max(1) * EACH).map(|i| Symbol::of(r as u32, i));
                let send = own.collect();
                let memory = |cells| Memory { cells, unit: EACH };
                (
                    schedule,
                    vec![memory(send), memory(vec![Symbol::NEVER; room * EACH])],
                )
            });
            let ranks = ranks.collect();
            let done = World::new(ranks, true).run();
            out.push(done.into_iter().map(|m| m[1].cells.clone()).collect());
        }
        assert!(!out.is_empty());
        out
    }

    fn block(rank: u32, block: u32) -> Vec<Symbol> {
        let places = block as usize * EACH..(block as usize + 1) * EACH;
        places.map(|i| Symbol::of(rank, i)).collect()
    }

    fn grid(dims: &[u32], periodic: &[bool]) -> Vec<Neighbors> {
        let size: u32 = dims.iter().product();
        let shift = |rank: u32, dim: usize, by: i64| {
            let stride: u32 = dims[dim + 1..].iter().product();
            let (d, at) = (dims[dim] as i64, (rank / stride % dims[dim]) as i64);
            let to = if periodic[dim] {
                (at + by).rem_euclid(d)
            } else {
                at + by
            };
            let moved = rank as i64 + (to - at) * stride as i64;
            (0..d).contains(&to).then_some(moved as u32)
        };
        let of = |r| {
            Neighbors::of_grid(
                (0..dims.len()).map(move |dim| (shift(r, dim, -1), shift(r, dim, 1))),
            )
        };
        (0..size).map(of).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_grid_s_block_comes_from_the_other_way(dims in prop::collection::vec(1u32..5, 1..4), bits in 0usize..8) {
            let periodic: Vec<bool> = (0..dims.len()).map(|i| bits >> i & 1 > 0).collect();
            let all = grid(&dims, &periodic);
            let degree = |_| (2 * dims.len(), 2 * dims.len());
            for (coll, spread) in [(Coll::NeighborAlltoall, true), (Coll::NeighborAllgather, false)] {
                for got in results(coll, &all, &degree) {
                    for (r, got) in got.iter().enumerate() {
                        let mut want = vec![Symbol::NEVER; got.len()];
                        for e in &all[r].from {
                            let sent = if spread { e.block ^ 1 } else { 0 };
                            want[e.block as usize * EACH..][..EACH].copy_from_slice(&block(e.rank, sent));
                        }
                        prop_assert_eq!(got, &want);
                    }
                }
            }
        }

        #[test]
        fn several_edges_between_two_ranks_match_in_order(n in 1u32..7, ends in prop::collection::vec((0u32..7, 0u32..7), 0..40)) {
            let edges: Vec<(u32, u32)> = ends.iter().map(|&(a, b)| (a % n, b % n)).collect();
            let out = |r: u32| edges.iter().filter(move |e| e.0 == r).map(|e| e.1);
            // the receivers list their sources by another rule
            let into = |r: u32| {
                let mut sources: Vec<u32> = edges.iter().filter(|e| e.1 == r).map(|e| e.0).collect();
                sources.sort_by_key(|s| (s + r) % 3);
                sources
            };
            let all: Vec<Neighbors> = (0..n).map(|r| Neighbors::of_graph(into(r).into_iter(), out(r))).collect();
            let degree = |r: usize| (all[r].to.len(), all[r].from.len());
            for got in results(Coll::NeighborAlltoall, &all, &degree) {
                for r in 0..n {
                    let mut want = Vec::new();
                    for (i, &s) in into(r).iter().enumerate() {
                        let k = into(r)[..i].iter().filter(|&&other| other == s).count();
                        let sent = (0..).zip(out(s)).filter(|e| e.1 == r).nth(k).map_or(0, |e| e.0);
                        want.extend(block(s, sent));
                    }
                    prop_assert_eq!(&got[r as usize], &want);
                }
            }
        }
    }
}
