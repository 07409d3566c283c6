//! Groups: ordered sets of processes, immutable (MPI 5.0, 7.3).
//!
//! Most groups are evenly spaced (all of the world, every other rank, one row of a grid): those
//! take three words whatever their size. Others share one list with every group and communicator
//! made from them.

use kw_base::Peer;
use std::fmt;
use std::sync::Arc;

/// From this size on a list carries an index, so that looking a process up takes logarithmic time.
const INDEXED_FROM: usize = 32;

/// An ordered set of processes.
#[derive(Clone)]
pub struct Group {
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    /// Members `first`, `first + step`, ...; `step` is at least 1.
    Even { first: u32, step: u32, len: u32 },
    /// Any members in any order.
    List(Arc<List>),
}

struct List {
    members: Box<[u32]>,
    /// Ranks sorted by member; empty for short lists.
    sorted: Box<[u32]>,
}

/// Error in the arguments of a group constructor. Ranks and ranges are identified by their index in
/// the argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GroupError {
    /// No such rank.
    #[error("ranks[{at}] is {rank}, but the group has {size} processes")]
    Rank {
        /// Position in the argument.
        at: usize,
        /// The rank found there.
        rank: i64,
        /// Processes of the group.
        size: u32,
    },
    /// A rank that is named twice.
    #[error("ranks[{at}] is {rank}, which was named before")]
    Twice {
        /// Position in the argument.
        at: usize,
        /// The rank found there.
        rank: i64,
    },
    /// A range that steps nowhere or the wrong way.
    #[error(
        "ranges[{at}] is ({first}, {last}, {stride}), whose stride does not lead from the first rank to the last"
    )]
    Stride {
        /// Position in the argument.
        at: usize,
        /// First rank.
        first: i64,
        /// Last rank.
        last: i64,
        /// Stride.
        stride: i64,
    },
}

/// Result of comparing two groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Likeness {
    /// Same members in the same order.
    Identical,
    /// Same members in another order.
    Similar,
    /// Different members.
    Unequal,
}

impl Group {
    /// A group of these processes, in this order; they must differ.
    pub fn new(members: Vec<Peer>) -> Group {
        Group::from_ids(members.into_iter().map(|p| p.0).collect())
    }

    /// Processes `first..first + len`.
    pub fn range(first: Peer, len: u32) -> Group {
        Group {
            shape: Shape::Even {
                first: first.0,
                step: 1,
                len,
            },
        }
    }

    /// No processes.
    pub fn empty() -> Group {
        Group::range(Peer(0), 0)
    }

    fn from_ids(ids: Vec<u32>) -> Group {
        if let Some(shape) = even(&ids) {
            return Group { shape };
        }
        let mut sorted: Box<[u32]> = Box::default();
        if ids.len() >= INDEXED_FROM {
            sorted = (0..ids.len() as u32).collect();
            sorted.sort_unstable_by_key(|&r| ids[r as usize]);
        }
        Group {
            shape: Shape::List(Arc::new(List {
                members: ids.into(),
                sorted,
            })),
        }
    }

    /// Number of processes.
    #[inline]
    pub fn size(&self) -> u32 {
        match &self.shape {
            Shape::Even { len, .. } => *len,
            Shape::List(list) => list.members.len() as u32,
        }
    }

    /// Whether the group is empty.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// The process of a rank below `size`.
    #[inline]
    pub fn peer(&self, rank: u32) -> Peer {
        match &self.shape {
            Shape::Even { first, step, len } => {
                debug_assert!(rank < *len);
                Peer(first + step * rank)
            }
            Shape::List(list) => Peer(list.members[rank as usize]),
        }
    }

    /// The rank of a process, if it is a member.
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        match &self.shape {
            Shape::Even { first, step, len } => {
                let from = peer.0.checked_sub(*first)?;
                (from % step == 0 && from / step < *len).then_some(from / step)
            }
            Shape::List(list) => list.rank_of(peer.0),
        }
    }

    /// Whether the process is a member.
    pub fn contains(&self, peer: Peer) -> bool {
        self.rank_of(peer).is_some()
    }

    /// The processes in order.
    pub fn iter(&self) -> impl Iterator<Item = Peer> + '_ {
        (0..self.size()).map(|r| self.peer(r))
    }

    /// All of `self`, then those of `other` that are not in `self`.
    pub fn union(&self, other: &Group) -> Group {
        let more = other.iter().filter(|&p| !self.contains(p));
        Group::new(self.iter().chain(more).collect())
    }

    /// Members of `self` that are also in `other`, in the order of `self`.
    pub fn intersection(&self, other: &Group) -> Group {
        Group::new(self.iter().filter(|&p| other.contains(p)).collect())
    }

    /// Members of `self` that are not in `other`, in the order of `self`.
    pub fn difference(&self, other: &Group) -> Group {
        Group::new(self.iter().filter(|&p| !other.contains(p)).collect())
    }

    /// The processes of these ranks, in this order.
    pub fn incl(&self, ranks: &[i64]) -> Result<Group, GroupError> {
        self.marked(ranks)?;
        Ok(Group::new(
            ranks.iter().map(|&r| self.peer(r as u32)).collect(),
        ))
    }

    /// All processes but those of these ranks.
    pub fn excl(&self, ranks: &[i64]) -> Result<Group, GroupError> {
        let marked = self.marked(ranks)?;
        let kept = (0..self.size()).filter(|&r| !marked[r as usize]);
        Ok(Group::new(kept.map(|r| self.peer(r)).collect()))
    }

    /// Like [`Group::incl`] with `(first, last, stride)` triplets.
    pub fn range_incl(&self, ranges: &[[i64; 3]]) -> Result<Group, GroupError> {
        self.incl(&self.expand(ranges)?)
    }

    /// Like [`Group::excl`] with `(first, last, stride)` triplets.
    pub fn range_excl(&self, ranges: &[[i64; 3]]) -> Result<Group, GroupError> {
        self.excl(&self.expand(ranges)?)
    }

    /// Rank in `other` of the process with this rank here.
    pub fn translate(&self, rank: u32, other: &Group) -> Option<u32> {
        other.rank_of(self.peer(rank))
    }

    /// How alike two groups are.
    pub fn compare(&self, other: &Group) -> Likeness {
        if self == other {
            Likeness::Identical
        } else if self.size() == other.size() && self.iter().all(|p| other.contains(p)) {
            Likeness::Similar
        } else {
            Likeness::Unequal
        }
    }

    /// Marks for the named ranks; each must exist and be named once.
    fn marked(&self, ranks: &[i64]) -> Result<Vec<bool>, GroupError> {
        let size = self.size();
        let mut marked = vec![false; size as usize];
        for (at, &rank) in ranks.iter().enumerate() {
            if rank < 0 || rank >= size as i64 {
                return Err(GroupError::Rank { at, rank, size });
            }
            if std::mem::replace(&mut marked[rank as usize], true) {
                return Err(GroupError::Twice { at, rank });
            }
        }
        Ok(marked)
    }

    fn expand(&self, ranges: &[[i64; 3]]) -> Result<Vec<i64>, GroupError> {
        let mut ranks = Vec::new();
        let size = self.size();
        for (at, &[first, last, stride]) in ranges.iter().enumerate() {
            for rank in [first, last] {
                if rank < 0 || rank >= size as i64 {
                    return Err(GroupError::Rank { at, rank, size });
                }
            }
            let leads = match stride.signum() {
                0 => false,
                1 => first <= last,
                _ => first >= last,
            };
            if !leads {
                return Err(GroupError::Stride {
                    at,
                    first,
                    last,
                    stride,
                });
            }
            let steps = (last - first) / stride;
            ranks.extend((0..=steps).map(|i| first + i * stride));
        }
        Ok(ranks)
    }
}

/// The evenly spaced shape of these members, if they have it.
fn even(ids: &[u32]) -> Option<Shape> {
    let first = ids.first().copied().unwrap_or(0);
    let step = match ids {
        [a, b, ..] => b.checked_sub(*a).filter(|&s| s > 0)?,
        _ => 1,
    };
    let fits = |(i, &id): (usize, &u32)| id as u64 == first as u64 + step as u64 * i as u64;
    ids.iter().enumerate().all(fits).then_some(Shape::Even {
        first,
        step,
        len: ids.len() as u32,
    })
}

impl List {
    fn rank_of(&self, id: u32) -> Option<u32> {
        if self.sorted.is_empty() {
            return self.members.iter().position(|&m| m == id).map(|r| r as u32);
        }
        let at = self
            .sorted
            .binary_search_by_key(&id, |&r| self.members[r as usize]);
        at.ok().map(|i| self.sorted[i])
    }
}

impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        if let (Shape::List(a), Shape::List(b)) = (&self.shape, &other.shape) {
            if Arc::ptr_eq(a, b) {
                return true;
            }
        }
        self.size() == other.size() && self.iter().eq(other.iter())
    }
}

impl Eq for Group {}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Shape::Even { first, step, len } => write!(f, "Group({first} + {step} * 0..{len})"),
            Shape::List(list) => f.debug_tuple("Group").field(&list.members).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group() -> impl Strategy<Value = Vec<u32>> {
        let even = (0u32..20, 1u32..4, 0u32..50)
            .prop_map(|(f, s, n)| (0..n).map(|i| f + s * i).collect::<Vec<_>>());
        let any = Just((0u32..80).collect::<Vec<_>>())
            .prop_shuffle()
            .prop_flat_map(|v| (Just(v), 0usize..70))
            .prop_map(|(v, n)| v[..n].to_vec());
        prop_oneof![even, any]
    }

    fn ids(g: &Group) -> Vec<u32> {
        g.iter().map(|p| p.0).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn set_algebra_agrees_with_lists(a in group(), b in group()) {
            let (ga, gb) = (Group::from_ids(a.clone()), Group::from_ids(b.clone()));
            prop_assert_eq!(ids(&ga), a.clone());
            for id in 0..100 {
                let naive = a.iter().position(|&m| m == id).map(|r| r as u32);
                prop_assert_eq!(ga.rank_of(Peer(id)), naive);
            }
            let union: Vec<u32> = a.iter().chain(b.iter().filter(|x| !a.contains(x))).copied().collect();
            let both: Vec<u32> = a.iter().filter(|x| b.contains(x)).copied().collect();
            let less: Vec<u32> = a.iter().filter(|x| !b.contains(x)).copied().collect();
            prop_assert_eq!(ids(&ga.union(&gb)), union);
            prop_assert_eq!(ids(&ga.intersection(&gb)), both);
            prop_assert_eq!(ids(&ga.difference(&gb)), less);
            let mut reversed = a.clone();
            reversed.reverse();
            let likeness = if a.len() < 2 { Likeness::Identical } else { Likeness::Similar };
            prop_assert_eq!(ga.compare(&Group::from_ids(reversed)), likeness);
        }

        #[test]
        fn incl_and_excl_part_the_group(a in group(), pick in any::<u64>()) {
            let g = Group::from_ids(a.clone());
            let ranks: Vec<i64> = (0..a.len() as i64).filter(|r| pick >> (r % 64) & 1 == 1).collect();
            let (inside, outside) = (g.incl(&ranks).unwrap(), g.excl(&ranks).unwrap());
            prop_assert_eq!(inside.size() + outside.size(), g.size());
            prop_assert_eq!(inside.union(&outside).compare(&g) != Likeness::Unequal, true);
            prop_assert!(inside.intersection(&outside).is_empty());
        }
    }

    #[test]
    fn ranges_run_both_ways() {
        let g = Group::range(Peer(0), 10);
        assert_eq!(ids(&g.range_incl(&[[1, 8, 3]]).unwrap()), [1, 4, 7]);
        assert_eq!(
            ids(&g.range_incl(&[[9, 5, -2], [0, 0, 1]]).unwrap()),
            [9, 7, 5, 0]
        );
        assert_eq!(
            ids(&g.range_excl(&[[9, 1, -1]]).unwrap()),
            ids(&Group::range(Peer(0), 1))
        );
    }

    #[test]
    fn bad_arguments_are_named() {
        let g = Group::range(Peer(5), 3);
        let e = g.incl(&[0, 3]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "ranks[1] is 3, but the group has 3 processes"
        );
        assert!(matches!(
            g.excl(&[1, 1]),
            Err(GroupError::Twice { at: 1, rank: 1 })
        ));
        assert!(matches!(
            g.range_incl(&[[0, 2, 0]]),
            Err(GroupError::Stride { .. })
        ));
        assert!(matches!(
            g.range_incl(&[[0, 2, -1]]),
            Err(GroupError::Stride { .. })
        ));
    }

    #[test]
    fn a_scattered_group_of_64_is_small_and_shared() {
        let ids: Vec<u32> = (0..64).map(|i| i * i).collect();
        let g = Group::from_ids(ids);
        let Shape::List(list) = &g.shape else {
            panic!("squares are not evenly spaced")
        };
        assert!(4 * (list.members.len() + list.sorted.len()) <= 512);
        let again = g.clone();
        let Shape::List(other) = &again.shape else {
            unreachable!()
        };
        assert!(Arc::ptr_eq(list, other));
    }
}
