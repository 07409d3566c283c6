//! Which ranks of a communicator share a machine. The ranks on one machine are a *node*; its lowest
//! rank is its *leader*. Where ranks are bound, the domains inside each node are known, too.

use super::{Domain, Levels};
use std::collections::HashMap;

/// The nodes of a communicator, numbered by their lowest ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Node of every rank.
    of: Box<[u32]>,
    /// Ranks by node, ascending within one.
    ranks: Box<[u32]>,
    /// Start of each node's ranks in `ranks`, and one more for the end.
    starts: Box<[u32]>,
    /// Ranks on the smallest and on the largest node.
    sizes: (u32, u32),
    /// Whether the ranks of every node follow one another.
    in_order: bool,
    inside: Inside,
}

/// The domains inside the nodes; nodes that are alike share theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Inside {
    kinds: Box<[Levels]>,
    /// The kind of each node, if that is known; empty if it is known for none.
    of: Box<[Option<u32>]>,
}

impl Nodes {
    /// The nodes, from any numbering of the hosts, one for each rank; `None` if there is only one
    /// host (nothing to remember then).
    pub fn of_hosts(hosts: impl Iterator<Item = u32>) -> Option<Nodes> {
        let mut seen: Vec<u32> = Vec::new();
        let of: Box<[u32]> = hosts
            .map(|h| {
                let known = seen.iter().position(|&s| s == h);
                known.unwrap_or_else(|| {
                    seen.push(h);
                    seen.len() - 1
                }) as u32
            })
            .collect();
        if seen.len() < 2 {
            return None;
        }
        let (mut ranks, mut starts) = (Vec::with_capacity(of.len()), vec![0]);
        for node in 0..seen.len() as u32 {
            ranks.extend((0..of.len() as u32).filter(|&r| of[r as usize] == node));
            starts.push(ranks.len() as u32);
        }
        let sizes = || starts.windows(2).map(|w| w[1] - w[0]);
        Some(Nodes {
            sizes: (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)),
            in_order: ranks.is_sorted(),
            of,
            ranks: ranks.into(),
            starts: starts.into(),
            inside: Inside::default(),
        })
    }

    /// The nodes with the domain of every rank on its node, if known.
    pub fn with_domains(self, domain: impl Fn(u32) -> Option<Domain>) -> Nodes {
        let mut seen: HashMap<Vec<Domain>, u32> = HashMap::new();
        let mut kinds = Vec::new();
        let mut kind = |node: u32| {
            let ranks = self.ranks(node).iter();
            let domains: Vec<Domain> = ranks.map(|&r| domain(r)).collect::<Option<_>>()?;
            let new = |domains: &Vec<Domain>| {
                kinds.push(Levels::of(domains));
                kinds.len() as u32 - 1
            };
            Some(*seen.entry(domains).or_insert_with_key(new))
        };
        let of: Box<[Option<u32>]> = (0..self.count()).map(&mut kind).collect();
        let inside = match kinds.is_empty() {
            true => Inside::default(),
            false => Inside {
                kinds: kinds.into(),
                of,
            },
        };
        Nodes { inside, ..self }
    }

    /// The domains of a node's ranks, which count from 0 there; `None` if unknown.
    pub fn levels(&self, node: u32) -> Option<&Levels> {
        let kind = (*self.inside.of.get(node as usize)?)?;
        self.inside.kinds.get(kind as usize)
    }

    /// The domains by which all ranks price steps inside a node: those of the first of the largest
    /// nodes.
    pub fn priced_levels(&self) -> Option<&Levels> {
        if self.inside.kinds.is_empty() {
            return None;
        }
        let most = |&node: &u32| self.ranks(node).len() as u32 == self.most();
        self.levels((0..self.count()).find(most)?)
    }

    /// Number of nodes, at least 2.
    pub fn count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Node of a rank.
    #[inline]
    pub fn of(&self, rank: u32) -> u32 {
        self.of[rank as usize]
    }

    /// Ranks of a node, ascending.
    #[inline]
    pub fn ranks(&self, node: u32) -> &[u32] {
        &self.ranks[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// All ranks, node by node.
    pub fn in_order(&self) -> &[u32] {
        &self.ranks
    }

    /// How many ranks precede those of a node, node by node.
    pub fn start(&self, node: u32) -> u32 {
        self.starts[node as usize]
    }

    /// Whether the ranks of every node follow one another, so that data in the order of nodes is in
    /// the order of ranks.
    pub fn are_in_order(&self) -> bool {
        self.in_order
    }

    /// Ranks on the smallest node.
    pub fn fewest(&self) -> u32 {
        self.sizes.0
    }

    /// Ranks on the largest node.
    pub fn most(&self) -> u32 {
        self.sizes.1
    }

    /// Bytes of another node, on average of those that a node of `own` ranks exchanges data with,
    /// if each rank has `each`.
    pub fn elsewhere(&self, own: u32, each: u64) -> u64 {
        let others = self.of.len() as u64 - u64::from(own);
        others * each / (u64::from(self.count()) - 1)
    }

    /// Lowest rank of a node.
    #[inline]
    pub fn leader(&self, node: u32) -> u32 {
        self.ranks(node)[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_by_their_lowest_ranks() {
        let nodes = Nodes::of_hosts([7, 3, 7, 9, 3].into_iter()).unwrap();
        assert_eq!(nodes.count(), 3);
        assert_eq!(
            (0..5).map(|r| nodes.of(r)).collect::<Vec<_>>(),
            [0, 1, 0, 2, 1]
        );
        assert_eq!(nodes.ranks(0), [0, 2]);
        assert_eq!(nodes.ranks(1), [1, 4]);
        assert_eq!(nodes.leader(2), 3);
        assert_eq!(nodes.in_order(), [0, 2, 1, 4, 3]);
        assert_eq!((nodes.start(1), nodes.fewest()), (2, 1));
        assert!(!nodes.are_in_order());
        let blocked = Nodes::of_hosts([5, 5, 2, 2, 2].into_iter()).unwrap();
        assert!(blocked.are_in_order() && blocked.fewest() == 2);
    }

    #[test]
    fn nodes_that_are_alike_share_their_domains() {
        let nodes = || Nodes::of_hosts([0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3].into_iter()).unwrap();
        let domain = |r: u32| Domain {
            package: r / 2 % 2,
            cache: Some(0),
        };
        let known = nodes().with_domains(|r| (r != 10).then(|| domain(r)));
        assert_eq!(known.inside.kinds.len(), 2, "one package, and two");
        let tiers = |node| known.levels(node).map(|l| l.tiers().len());
        assert_eq!([0, 1, 2, 3].map(tiers), [Some(0), Some(1), Some(1), None]);
        assert_eq!(known.priced_levels(), known.levels(1));
        let unknown = nodes().with_domains(|_| None);
        assert_eq!((unknown.priced_levels(), &unknown), (None, &nodes()));
    }

    #[test]
    fn one_host_is_nothing_to_remember() {
        assert_eq!(Nodes::of_hosts([4, 4].into_iter()), None);
    }
}
