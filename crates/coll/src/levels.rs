//! Which ranks of a host are close to each other: those of a package, and
//! within it those of a last-level cache. Groups within groups, each level as [`Nodes`] says which
//! ranks share a machine.

use super::Nodes;

/// Location of a rank on its host. Numbers tell packages, and caches, of one host apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Domain {
    /// The package.
    pub package: u32,
    /// The last-level cache, a part of the package or all of it, if it is known.
    pub cache: Option<u32>,
}

/// The levels of a communicator on one host, if each rank is bound to a known place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The outermost first; each has several groups, and divides those of the level before it.
    tiers: Box<[Nodes]>,
    shape: Shape,
}

/// Distance of two ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Apart {
    /// They share a last-level cache.
    InCache,
    /// They share a package, and have other caches.
    InPackage,
    /// They are on several packages.
    Packages,
}

/// Parameters of the prices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// How many meet at each level, from the outermost to the innermost, in the largest group; 1 or
    /// 0 if there is no such level.
    widths: [u32; 3],
    /// The same for the levels without the outermost group of rank 0.
    others: [u32; 3],
    /// The outermost level is that of packages.
    pub packages: bool,
    /// Ranks of the package that has most.
    pub most: u32,
    /// Pairs of ranks on one package, per thousand.
    pub near: u32,
    /// Pairs of ranks that share a last-level cache, per thousand.
    pub cached: u32,
    /// The ranks of each innermost group share a last-level cache.
    inside_caches: bool,
    /// The ranks of every group follow one another.
    pub in_order: bool,
}

impl Shape {
    /// How many meet at each level, the outermost first, and their distance.
    pub fn widths(&self) -> impl Iterator<Item = (u32, Apart)> + use<> {
        let (packages, inside_caches) = (self.packages, self.inside_caches);
        let innermost = self.widths.iter().rposition(|w| *w > 0);
        let levels = self.widths.into_iter().enumerate();
        levels
            .filter(|(_, width)| *width > 1)
            .map(move |(i, width)| match i {
                0 if packages => (width, Apart::Packages),
                _ if inside_caches && Some(i) == innermost => (width, Apart::InCache),
                _ => (width, Apart::InPackage),
            })
    }

    /// For each of those levels, how many meet in a group that rank 0 is not in.
    pub fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let levels = self.widths.into_iter().zip(self.others);
        levels
            .filter(|(width, _)| *width > 1)
            .map(|(_, other)| other)
    }
}

impl Levels {
    /// The levels, from the domain of every rank.
    pub fn of(domains: &[Domain]) -> Levels {
        let packages = Nodes::of_hosts(domains.iter().map(|d| d.package));
        // Caches of different packages are different, whatever their numbers.
        let id = |d: &Domain| domains.iter().position(|other| other == d).unwrap_or(0) as u32;
        let by_caches = Nodes::of_hosts(domains.iter().map(id));
        let known = domains.iter().all(|d| d.cache.is_some());
        let size = domains.len() as u32;
        // A level whose groups are those of the one before, or single ranks, adds nothing.
        let alone = |n: &Nodes| n.count() == size;
        let new = |c: &Nodes| !alone(c) && packages.as_ref() != Some(c);
        let caches = by_caches.clone().filter(new);
        let (by_package, most) = (
            packages.is_some(),
            packages.as_ref().map_or(size, Nodes::most),
        );
        let near_in = |groups: &Option<Nodes>| groups.as_ref().map_or(1000, |g| near(g, size));
        let (near, cached) = (near_in(&packages), near_in(&by_caches));
        let tiers: Vec<Nodes> = packages
            .filter(|p| !alone(p))
            .into_iter()
            .chain(caches)
            .collect();
        let innermost = tiers.last();
        let inside_caches = known && (innermost == by_caches.as_ref() || cached == 1000);
        let shape = Shape {
            widths: widths(&tiers, size, |_| true),
            others: widths(&tiers, size, |r| {
                tiers.first().is_some_and(|t| t.of(r) != t.of(0))
            }),
            inside_caches,
            cached: if known { cached } else { 0 },
            packages: by_package,
            most,
            near,
            in_order: tiers.iter().all(Nodes::are_in_order),
        };
        Levels {
            tiers: tiers.into(),
            shape,
        }
    }

    /// The levels with several groups, the outermost first; none if all ranks are in one.
    pub fn tiers(&self) -> &[Nodes] {
        &self.tiers
    }

    /// Parameters of the prices.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

/// Pairs of ranks in one group, of a thousand pairs.
fn near(groups: &Nodes, size: u32) -> u32 {
    let pairs = |n: u64| n * n.saturating_sub(1);
    let inside: u64 = (0..groups.count())
        .map(|g| pairs(groups.ranks(g).len() as u64))
        .sum();
    (1000 * inside / pairs(u64::from(size)).max(1)) as u32
}

/// How many groups of each level are in one of the level before, at most, and ranks in one of the
/// last, if `counts` is true for a group's first rank; groups of the outermost all count.
fn widths(tiers: &[Nodes], size: u32, counts: impl Fn(u32) -> bool) -> [u32; 3] {
    let mut widths = [0; 3];
    for (level, tier) in tiers.iter().enumerate() {
        widths[level] = match level.checked_sub(1).and_then(|l| tiers.get(l)) {
            None => tier.count(),
            Some(outer) => {
                let inside =
                    |g: u32| (0..tier.count()).filter(move |&t| outer.of(tier.leader(t)) == g);
                let groups = (0..outer.count()).filter(|g| counts(outer.leader(*g)));
                groups.map(|g| inside(g).count() as u32).max().unwrap_or(1)
            }
        };
    }
    widths[tiers.len()] = tiers.last().map_or(size, |last| {
        let groups = (0..last.count()).filter(|g| counts(last.leader(*g)));
        groups
            .map(|g| last.ranks(g).len() as u32)
            .max()
            .unwrap_or(1)
    });
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(domains: &[(u32, u32)]) -> Levels {
        let domain = |&(package, cache): &(u32, u32)| Domain {
            package,
            cache: Some(cache),
        };
        Levels::of(&domains.iter().map(domain).collect::<Vec<_>>())
    }

    #[test]
    fn one_domain_has_no_levels() {
        let one = levels(&[(3, 1); 4]);
        assert_eq!(one.tiers(), []);
        assert_eq!((one.shape().near, one.shape().most), (1000, 4));
        assert_eq!(
            one.shape().widths().collect::<Vec<_>>(),
            [(4, Apart::InCache)]
        );
    }

    #[test]
    fn packages_hold_caches_and_caches_hold_ranks() {
        // Numbers of caches may come again on another package.
        let two = [
            (0, 0),
            (0, 0),
            (0, 1),
            (0, 1),
            (1, 0),
            (1, 0),
            (1, 0),
            (1, 2),
        ];
        let two = levels(&two);
        assert_eq!(two.tiers().len(), 2);
        assert_eq!(two.tiers()[1].count(), 4);
        let widths: Vec<_> = two.shape().widths().collect();
        let apart = [Apart::Packages, Apart::InPackage, Apart::InCache];
        assert_eq!(widths, [(2, apart[0]), (2, apart[1]), (3, apart[2])]);
        assert_eq!(two.shape().cached, 1000 * 10 / 56);
        assert!(two.shape().in_order && two.shape().most == 4);
        assert_eq!(two.shape().near, 1000 * 24 / 56);
    }

    #[test]
    fn a_level_that_says_nothing_new_is_left_out() {
        let same = levels(&[(0, 0), (1, 1), (0, 0), (1, 1)]);
        assert_eq!(same.tiers().len(), 1);
        assert!(!same.shape().in_order);
        let caches = levels(&[(0, 0), (0, 0), (0, 1)]);
        assert_eq!((caches.tiers().len(), caches.shape().packages), (1, false));
        assert_eq!(levels(&[(0, 0), (0, 1), (0, 2)]).tiers(), []);
        // Ranks of a package that have a cache each are not as close as those that share one.
        let alone = levels(&[(0, 0), (0, 1), (1, 2), (1, 3)]);
        let widths: Vec<_> = alone.shape().widths().collect();
        assert_eq!(widths, [(2, Apart::Packages), (2, Apart::InPackage)]);
        let unknown = Levels::of(&[0, 0, 1, 1].map(|package| Domain {
            package,
            cache: None,
        }));
        assert_eq!((unknown.tiers().len(), unknown.shape().cached), (1, 0));
        let inside = unknown.shape().widths().last();
        assert_eq!(inside, Some((2, Apart::InPackage)));
        let apart = levels(&[(0, 0), (1, 1), (2, 2)]);
        assert_eq!((apart.tiers(), apart.shape().near), (&[][..], 0));
    }
}
