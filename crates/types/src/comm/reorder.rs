//! Which process takes which place of a virtual topology (MPI 5.0, 8.5, `reorder`): heavy edges
//! stay within a host, and there within a package.
//!
//! Two stages. First the places are dealt out to hosts, by information that all processes share
//! (the hosts); then each host deals its places out to its packages, which only the processes of
//! that host need to know. An arrangement is judged by the weight of the edges that leave a host
//! (or a package), and the one without reordering is always a candidate, so the result is never
//! worse. Placing a graph optimally is NP-hard; the candidates are blocks of the grid (after W.
//! Gropp, *Using Node Information to Implement MPI Cartesian Topologies*, 2018) and sets grown
//! along the heaviest edges.

use std::collections::{BTreeMap, BinaryHeap};

/// Location of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Location {
    /// Number of its host.
    pub host: u32,
    /// Its package on that host; equal for all ranks if unknown.
    pub package: u32,
    /// Its place in the order of the host's cores.
    pub core: u32,
}

/// An edge of the topology: two places and how much goes between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// One end.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Weight; both directions count.
    pub weight: u64,
}

/// The faces between neighbouring places of a grid, row-major.
pub fn faces(dims: &[u32], periods: &[bool]) -> Vec<Link> {
    let size: u32 = dims.iter().product();
    let mut links = Vec::new();
    let mut stride = size;
    for (&d, &periodic) in dims.iter().zip(periods) {
        stride /= d;
        for a in 0..size {
            let at = a / stride % d;
            if at + 1 < d {
                links.push(link(a, a + stride));
            } else if periodic {
                links.push(link(a, a - at * stride));
            }
        }
    }
    links
}

fn link(a: u32, b: u32) -> Link {
    Link { a, b, weight: 1 }
}

/// The place of each process of a grid, whose size is the number of locations.
pub fn grid(dims: &[u32], periods: &[bool], locations: &[Location]) -> Vec<u32> {
    if alike(locations) {
        return identity(locations.len());
    }
    let room = rooms(locations, |s| s.host).values().map(Vec::len).max();
    let blocks = shapes(dims, room.unwrap_or(1) as u32);
    let orders = blocks.iter().map(|b| in_blocks(dims, b)).collect();
    arrange(&faces(dims, periods), locations, orders)
}

/// The place of each process of a graph that has one place for each location.
pub fn graph(links: &[Link], locations: &[Location]) -> Vec<u32> {
    match alike(locations) {
        true => identity(locations.len()),
        false => arrange(links, locations, Vec::new()),
    }
}

/// The weight of the edges between processes for which `group` differs. `places` is a result of
/// [`grid`] or [`graph`].
pub fn crossing(links: &[Link], places: &[u32], group: impl Fn(usize) -> u64) -> u64 {
    let mut of = vec![0; places.len()];
    for (process, &place) in places.iter().enumerate() {
        of[place as usize] = group(process);
    }
    let apart = links
        .iter()
        .filter(|l| of[l.a as usize] != of[l.b as usize]);
    apart.fold(0, |sum, l| sum.saturating_add(l.weight))
}

/// Whether all run on one package of one host, as far as is known: then every order is equally
/// good.
pub fn alike(locations: &[Location]) -> bool {
    let group = |s: &Location| (s.host, s.package);
    locations.windows(2).all(|w| group(&w[0]) == group(&w[1]))
}

fn identity(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

/// The processes of each group, in the order of their cores. Groups are in order of their numbers.
fn rooms(locations: &[Location], group: impl Fn(&Location) -> u32) -> BTreeMap<u32, Vec<usize>> {
    let mut rooms: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (process, location) in locations.iter().enumerate() {
        rooms.entry(group(location)).or_default().push(process);
    }
    for processes in rooms.values_mut() {
        processes.sort_by_key(|&p| locations[p]);
    }
    rooms
}

/// Both stages. `orders` are sequences of the places that are good to cut into pieces of the hosts'
/// sizes.
fn arrange(links: &[Link], locations: &[Location], mut orders: Vec<Vec<u32>>) -> Vec<u32> {
    let near = Near::new(locations.len(), links);
    let hosts: Vec<Vec<usize>> = rooms(locations, |s| s.host).into_values().collect();
    let sizes: Vec<usize> = hosts.iter().map(Vec::len).collect();
    if hosts.len() > 1 {
        orders.push(near.grow(&identity(locations.len()), &sizes));
    }
    let mut best = identity(locations.len());
    let cost = |places: &[u32]| crossing(links, places, |p| locations[p].host as u64);
    let mut least = cost(&best);
    for order in orders {
        let mut places = vec![0; locations.len()];
        for (&process, &place) in hosts.iter().flatten().zip(&order) {
            places[process] = place;
        }
        let now = cost(&places);
        if now < least {
            (least, best) = (now, places);
        }
    }
    for processes in &hosts {
        within(&near, links, locations, processes, &mut best);
    }
    best
}

/// Redistributes the ranks of one host among its packages, if that is better.
fn within(
    near: &Near,
    links: &[Link],
    locations: &[Location],
    processes: &[usize],
    places: &mut [u32],
) {
    let here: Vec<Location> = processes.iter().map(|&p| locations[p]).collect();
    if alike(&here) {
        return;
    }
    let sizes: Vec<usize> = rooms(&here, |s| s.package).values().map(Vec::len).collect();
    let own: Vec<u32> = processes.iter().map(|&p| places[p]).collect();
    let mut other = places.to_vec();
    for (&process, place) in processes.iter().zip(near.grow(&own, &sizes)) {
        other[process] = place;
    }
    let mut inside = vec![false; places.len()];
    own.iter().for_each(|&place| inside[place as usize] = true);
    let inner = |l: &&Link| inside[l.a as usize] && inside[l.b as usize];
    let inner: Vec<Link> = links.iter().filter(inner).copied().collect();
    let cost = |places: &[u32]| crossing(&inner, places, |p| locations[p].package as u64);
    if cost(&other) < cost(places) {
        places.copy_from_slice(&other);
    }
}

/// The edges by place.
struct Near {
    starts: Vec<usize>,
    ends: Vec<(u32, u64)>,
}

impl Near {
    fn new(n: usize, links: &[Link]) -> Near {
        let mut both: Vec<(u32, u32, u64)> = links
            .iter()
            .filter(|l| l.a != l.b && l.weight > 0)
            .flat_map(|l| [(l.a, l.b, l.weight), (l.b, l.a, l.weight)])
            .collect();
        both.sort_unstable();
        let mut starts = vec![0; n + 1];
        both.iter().for_each(|e| starts[e.0 as usize + 1] += 1);
        (0..n).for_each(|i| starts[i + 1] += starts[i]);
        let ends = both.into_iter().map(|e| (e.1, e.2)).collect();
        Near { starts, ends }
    }

    fn of(&self, place: u32) -> &[(u32, u64)] {
        &self.ends[self.starts[place as usize]..self.starts[place as usize + 1]]
    }

    /// Cuts `places` into sets of these sizes, one after the other: each begins with the first
    /// place that is left and takes the places that are tied to it most heavily.
    fn grow(&self, places: &[u32], sizes: &[usize]) -> Vec<u32> {
        let mut free = vec![false; self.starts.len() - 1];
        places.iter().for_each(|&p| free[p as usize] = true);
        let mut order = Vec::with_capacity(places.len());
        let mut seeds = places.iter().copied();
        for &size in sizes {
            let mut pull = vec![0u64; free.len()];
            let mut heap: BinaryHeap<(u64, std::cmp::Reverse<u32>)> = BinaryHeap::new();
            let until = order.len() + size;
            while order.len() < until {
                let tied = std::iter::from_fn(|| heap.pop())
                    .find(|&(w, p)| free[p.0 as usize] && pull[p.0 as usize] == w);
                let next = tied.map(|(_, p)| p.0);
                let Some(next) = next.or_else(|| seeds.by_ref().find(|&p| free[p as usize])) else {
                    return order;
                };
                free[next as usize] = false;
                order.push(next);
                for &(other, weight) in self.of(next).iter().filter(|e| free[e.0 as usize]) {
                    let pull = &mut pull[other as usize];
                    *pull = pull.saturating_add(weight);
                    heap.push((*pull, std::cmp::Reverse(other)));
                }
            }
        }
        order
    }
}

/// Block shapes whose sides divide the grid's and that hold as many places as a host has room for,
/// or as many of these as blocks can.
fn shapes(dims: &[u32], room: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![]];
    for &d in dims {
        let sides: Vec<u32> = (1..=d.min(room)).filter(|s| d % s == 0).collect();
        let longer = |shape: &Vec<u32>| {
            let used: u32 = shape.iter().product();
            let fits = sides.iter().filter(move |&&s| used * s <= room);
            fits.map(|&s| [&shape[..], &[s]].concat())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    let volume = |s: &Vec<u32>| s.iter().product::<u32>();
    let most = all.iter().map(volume).max().unwrap_or(1);
    all.retain(|s| volume(s) == most);
    all
}

/// All places of a grid, block after block.
fn in_blocks(dims: &[u32], block: &[u32]) -> Vec<u32> {
    let size: u32 = dims.iter().product();
    let mut order = identity(size as usize);
    order.sort_by_cached_key(|&place| {
        let (mut outer, mut inner, mut stride) = (0, 0, size);
        for (&d, &b) in dims.iter().zip(block) {
            stride /= d;
            let at = place / stride % d;
            outer = outer * (d / b) + at / b;
            inner = inner * b + at % b;
        }
        (outer, inner)
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn locations(hosts: &[u32], packages: &[u32]) -> Vec<Location> {
        let location = |(i, (&host, &package)): (usize, (&u32, &u32))| Location {
            host,
            package,
            core: i as u32,
        };
        hosts
            .iter()
            .zip(packages)
            .enumerate()
            .map(location)
            .collect()
    }

    fn is_permutation(places: &[u32]) -> bool {
        let mut seen = places.to_vec();
        seen.sort_unstable();
        seen == identity(places.len())
    }

    /// A valid permutation, not worse between hosts than none.
    fn judge(links: &[Link], locations: &[Location], places: &[u32]) {
        assert!(is_permutation(places), "{places:?}");
        let cost = |places: &[u32]| crossing(links, places, |p| locations[p].host as u64);
        assert!(cost(places) <= cost(&identity(locations.len())));
    }

    #[test]
    fn a_square_falls_into_blocks_of_a_host() {
        // 8 x 8 on four hosts with 16 processes each: where the torus is closed, pairs of rows are
        // as good as squares.
        let hosts: Vec<u32> = (0..64).map(|r| r / 16).collect();
        let locations = locations(&hosts, &[0; 64]);
        let (dims, periods) = ([8, 8], [true, true]);
        let places = grid(&dims, &periods, &locations);
        let cost = |places: &[u32]| {
            crossing(&faces(&dims, &periods), places, |p| {
                locations[p].host as u64
            })
        };
        assert_eq!(cost(&identity(64)), 32);
        assert_eq!(cost(&places), 32);
        let open = [false, false];
        let places = grid(&dims, &open, &locations);
        let cost =
            |places: &[u32]| crossing(&faces(&dims, &open), places, |p| locations[p].host as u64);
        assert_eq!((cost(&identity(64)), cost(&places)), (24, 16));
    }

    #[test]
    fn ranks_dealt_out_in_turn_come_together() {
        let hosts: Vec<u32> = (0..12).map(|r| r % 3).collect();
        let locations = locations(&hosts, &[0; 12]);
        let links = faces(&[12], &[true]);
        let places = grid(&[12], &[true], &locations);
        assert_eq!(crossing(&links, &places, |p| locations[p].host as u64), 3);
        let places = graph(&links, &locations);
        assert_eq!(crossing(&links, &places, |p| locations[p].host as u64), 3);
    }

    #[test]
    fn heavy_edges_stay_inside() {
        // pairs (0,3), (1,4), (2,5) are tied heavily; hosts hold (0,1), (2,3), (4,5)
        let mut links: Vec<Link> = (0..6).map(|a| link(a, (a + 1) % 6)).collect();
        links.extend((0..3).map(|a| Link {
            a,
            b: a + 3,
            weight: 100,
        }));
        let locations = locations(&[0, 0, 1, 1, 2, 2], &[0; 6]);
        let places = graph(&links, &locations);
        assert_eq!(crossing(&links, &places, |p| locations[p].host as u64), 6);
    }

    #[test]
    fn packages_of_a_host_are_filled_in_turn() {
        let locations = locations(&[0; 8], &[0, 1, 0, 1, 0, 1, 0, 1]);
        let links = faces(&[4, 2], &[false, false]);
        let places = grid(&[4, 2], &[false, false], &locations);
        assert!(is_permutation(&places));
        assert_eq!(
            crossing(&links, &places, |p| locations[p].package as u64),
            2
        );
    }

    #[test]
    fn one_host_keeps_its_order() {
        let locations = locations(&[3; 6], &[0; 6]);
        assert_eq!(grid(&[3, 2], &[true, false], &locations), identity(6));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn grids_are_never_worse(dims in prop::collection::vec(1u32..6, 0..4), hosts in prop::collection::vec(0u32..5, 125),
                                 turns in any::<bool>(), bits in 0usize..8) {
            let size: u32 = dims.iter().product();
            let periods: Vec<bool> = (0..dims.len()).map(|i| bits >> i & 1 > 0).collect();
            let mut hosts = hosts[..size as usize].to_vec();
            if turns {
                hosts.sort_unstable();
            }
            let packages: Vec<u32> = (0..size).map(|r| r * 7 % 3).collect();
            let locations = locations(&hosts, &packages);
            judge(&faces(&dims, &periods), &locations, &grid(&dims, &periods, &locations));
        }

        #[test]
        fn graphs_are_never_worse(hosts in prop::collection::vec(0u32..4, 1..24), ends in prop::collection::vec((0u32..24, 0u32..24, 0u64..50), 0..80)) {
            let n = hosts.len() as u32;
            let links: Vec<Link> = ends.iter().map(|&(a, b, weight)| Link { a: a % n, b: b % n, weight }).collect();
            let packages: Vec<u32> = (0..n).map(|r| r % 2).collect();
            let locations = locations(&hosts, &packages);
            judge(&links, &locations, &graph(&links, &locations));
        }

        #[test]
        fn what_a_host_does_not_know_of_others_changes_nothing(hosts in prop::collection::vec(0u32..3, 1..20), packages in prop::collection::vec(0u32..3, 20)) {
            // each host knows its own packages only; together they still give every place away once
            let n = hosts.len();
            let links: Vec<Link> = (0..n as u32).flat_map(|a| [link(a, (a + 1) % n as u32), link(a, a * 5 % n as u32)]).collect();
            let mut places = vec![0; n];
            for own in 0..3 {
                let known: Vec<u32> = (0..n).map(|p| if hosts[p] == own { packages[p] } else { 0 }).collect();
                let seen = graph(&links, &locations(&hosts, &known));
                (0..n).filter(|&p| hosts[p] == own).for_each(|p| places[p] = seen[p]);
            }
            prop_assert!(is_permutation(&places));
        }
    }
}
