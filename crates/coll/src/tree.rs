//! Trees over ranks: of every `fan` ranks the first leads, of every `fan` leaders the first leads,
//! and so on. Where the ranks of a host are in several domains ([`Levels`]), the tree follows them:
//! one of such trees among the ranks of each group, and one among the groups' heads. A group's head
//! is the root, or its lowest rank.
//!
//! With rank 0 as root, a rank leads consecutive ranks, itself first, if the ranks of every group
//! follow one another, so operations that do not commute keep their order.

use super::{CallView, Levels, Nodes};

/// A tree of ranks.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    fan: u32,
    size: u32,
    root: u32,
    tiers: &'a [Nodes],
}

impl<'a> Tree<'a> {
    /// With the call's root, from which ranks are counted.
    pub fn rooted(call: &CallView) -> Tree<'a> {
        Tree {
            fan: call.param.max(2),
            size: call.size,
            root: call.root,
            tiers: &[],
        }
    }

    /// With rank 0 as root.
    pub fn first(call: &CallView) -> Tree<'a> {
        Tree::rooted(&CallView { root: 0, ..*call })
    }

    /// The tree that follows the domains of the host, as far as they are known.
    pub fn by_levels(self, call: &CallView<'a>) -> Tree<'a> {
        let tiers = call.levels.map_or(&[][..], Levels::tiers);
        Tree { tiers, ..self }
    }

    /// Parent of `r`; `None` for the root.
    pub fn parent(&self, r: u32) -> Option<u32> {
        let row = self.row(self.outermost(r), r);
        let mut group = self.fan;
        let at = row.of(r);
        while at > 0 && at % group == 0 {
            group = group.saturating_mul(self.fan);
        }
        (at > 0).then(|| row.nth(at - at % group))
    }

    /// Children of `r`, those of its innermost group first.
    pub fn children(&self, r: u32) -> Vec<u32> {
        self.children_by_level(r).concat()
    }

    /// Children of `r` at each level where it is a head, the innermost level first; ascending if
    /// the tree is in rank order.
    pub fn children_by_level(&self, r: u32) -> Vec<Vec<u32>> {
        let levels = (self.outermost(r)..=self.tiers.len()).rev();
        levels
            .map(|level| self.row(level, r).children(r, self.fan))
            .collect()
    }

    /// Parent of `r` in the tree; the root is its own parent.
    pub fn head(&self, r: u32) -> u32 {
        self.row(self.outermost(r), r).nth(0)
    }

    /// Whether `r` is not the root, and at the head of a group with others in it.
    pub fn releases(&self, r: u32) -> bool {
        r != self.root && self.is_head(r)
    }

    /// Whether `r` is at the head of a group with others in it.
    fn is_head(&self, r: u32) -> bool {
        let levels = self.outermost(r)..=self.tiers.len();
        levels
            .map(|level| self.row(level, r))
            .any(|row| row.len() > 1 && row.nth(0) == r)
    }

    /// The outermost level at which a rank meets others.
    fn outermost(&self, r: u32) -> usize {
        let tiers = self.tiers.iter().enumerate();
        let mut leads = tiers.filter(|(_, tier)| self.leads(tier, r));
        leads.next().map_or(self.tiers.len(), |(level, _)| level)
    }

    fn leads(&self, tier: &Nodes, r: u32) -> bool {
        let group = tier.of(r);
        r == self.root || group != tier.of(self.root) && tier.leader(group) == r
    }

    /// The ranks that `r` meets at a level.
    fn row(&self, level: usize, r: u32) -> Row {
        if self.tiers.is_empty() {
            return Row::All {
                root: self.root,
                size: self.size,
            };
        }
        let meets = |m: &u32| self.tiers.get(level).is_none_or(|t| self.leads(t, *m));
        let mut ranks: Vec<u32> = match level.checked_sub(1) {
            Some(outer) => {
                let outer = &self.tiers[outer];
                outer
                    .ranks(outer.of(r))
                    .iter()
                    .copied()
                    .filter(meets)
                    .collect()
            }
            None => (0..self.size).filter(meets).collect(),
        };
        let first = ranks.iter().position(|m| *m == self.root);
        ranks.rotate_left(first.unwrap_or(0));
        Row::Some(ranks)
    }
}

/// Ranks that meet at a level; the first is their head.
enum Row {
    /// All ranks, from the root on.
    All { root: u32, size: u32 },
    /// A tree of these ranks.
    Some(Vec<u32>),
}

impl Row {
    fn len(&self) -> u32 {
        match self {
            Row::All { size, .. } => *size,
            Row::Some(ranks) => ranks.len() as u32,
        }
    }

    fn nth(&self, at: u32) -> u32 {
        match self {
            Row::All { root, size } => (root + at) % size,
            Row::Some(ranks) => ranks[at as usize],
        }
    }

    fn of(&self, r: u32) -> u32 {
        match self {
            Row::All { root, size } => (r + size - root) % size,
            Row::Some(ranks) => ranks.iter().position(|m| *m == r).unwrap_or(0) as u32,
        }
    }

    fn children(&self, r: u32, fan: u32) -> Vec<u32> {
        let (at, mut step, mut children) = (self.of(r), 1u32, Vec::new());
        while step < self.len() && at % step.saturating_mul(fan) == 0 {
            let row = (1..fan).map(|j| u64::from(at) + u64::from(j) * u64::from(step));
            let row = row.take_while(|&c| c < u64::from(self.len()));
            children.extend(row.map(|c| self.nth(c as u32)));
            step = step.saturating_mul(fan);
        }
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;

    /// Every rank has one parent that lists it as a child; heads lead to the root.
    fn is_a_tree(tree: &Tree, size: u32, root: u32) {
        let mut seen = vec![0; size as usize];
        for (r, c) in (0..size).flat_map(|r| tree.children(r).into_iter().map(move |c| (r, c))) {
            assert_eq!(tree.parent(c), Some(r), "{tree:?} child={c}");
            seen[c as usize] += 1;
        }
        assert_eq!(tree.parent(root), None, "{tree:?}");
        let others = (0..size).filter(|r| *r != root);
        assert!(
            others.into_iter().all(|r| seen[r as usize] == 1),
            "{tree:?}"
        );
        for mut r in 0..size {
            for _ in 0..4 {
                let head = tree.head(r);
                assert!(head == r && r == root || tree.is_head(head), "{tree:?} {r}");
                r = head;
            }
            assert_eq!(r, root, "{tree:?}");
        }
    }

    #[test]
    fn parents_and_children_agree_and_everybody_has_one_parent() {
        for (fan, size) in (1..6).flat_map(|f| (1..70).map(move |n| (f, n))) {
            for root in [0, size / 2, size - 1] {
                let call = CallView {
                    param: fan,
                    root,
                    ..CallView::new(0, size)
                };
                is_a_tree(&Tree::rooted(&call), size, root);
            }
        }
    }

    #[test]
    fn trees_follow_the_domains() {
        let domains: [fn(u32) -> (u32, u32); 4] = [
            |r| (r / 8, r / 4),
            |r| (r % 2, r % 6),
            |r| (r * r % 3, 0),
            |r| (r / 5, r),
        ];
        for (size, of) in (1..40).flat_map(|n| domains.map(|d| (n, d))) {
            let domain = |r| Domain {
                package: of(r).0,
                cache: Some(of(r).1),
            };
            let levels = Levels::of(&(0..size).map(domain).collect::<Vec<_>>());
            for (fan, root) in [(2, 0), (3, size / 2), (16, size - 1)] {
                let call = CallView {
                    param: fan,
                    root,
                    levels: Some(&levels),
                    ..CallView::new(0, size)
                };
                let tree = Tree::rooted(&call).by_levels(&call);
                is_a_tree(&tree, size, root);
                // Only heads talk to other groups.
                let Some(tier) = levels.tiers().first() else {
                    continue;
                };
                let far = |r: &u32| tree.parent(*r).is_some_and(|p| tier.of(p) != tier.of(*r));
                let crossings = (0..size).filter(far).count() as u32;
                assert_eq!(crossings, tier.count() - 1, "{tree:?}");
            }
        }
    }
}
