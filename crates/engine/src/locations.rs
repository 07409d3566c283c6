//! Where the ranks of the job run, as far as this rank knows: the hosts of all ranks, the CPUs of
//! those that share its memory. For placing virtual topologies (`kw_types::comm::reorder`).

use crate::engine::Engine;
use crate::paths::Paths;
use kw_base::Peer;
use kw_base::sync::thread;
use kw_sys::topology::Tree;
use kw_types::comm::reorder::Location;

/// Known properties of this machine's cores.
#[derive(Debug, Default)]
pub(crate) struct Locations {
    /// Its tree, once it was needed.
    tree: Option<Tree>,
}

impl Locations {
    /// The locations of ranks by their host and first CPU, in their order. The machine's tree is
    /// read only when they begin at different CPUs.
    fn of(&mut self, ranks: impl Iterator<Item = (u32, Option<usize>)> + Clone) -> Vec<Location> {
        let mut known = ranks.clone().filter_map(|(_, cpu)| cpu);
        let first = known.next();
        let apart = known.any(|c| Some(c) != first);
        let tree = apart.then(|| &*self.tree.get_or_insert_with(Tree::read));
        let place = |cpu: Option<usize>| tree?.place(cpu?);
        let location = |(host, cpu)| {
            let (package, core) = place(cpu).unwrap_or_default();
            Location {
                host,
                package,
                core,
            }
        };
        ranks.map(location).collect()
    }
}

impl Engine {
    /// The locations of these ranks, in their order. A rank of this host publishes its location
    /// when it joins, before it leaves MPI_Init; until it has, we wait, so that all read the same.
    pub fn locations(&mut self, peers: &[Peer]) -> Vec<Location> {
        for &peer in peers {
            while has_yet_to_join(&self.messages.paths, peer) {
                self.progress();
                thread::yield_now();
            }
        }
        let (hosts, paths) = (self.job.hosts(), &self.messages.paths);
        // Each rank of another job counts as on a host of its own.
        let host = |p: Peer| hosts.get(p.idx()).copied().unwrap_or(u32::MAX - p.0);
        let ranks = peers
            .iter()
            .map(|&p| (host(p), paths.ranks().and_then(|ranks| ranks.cpu(p))));
        self.locations.of(ranks)
    }
}

/// Whether a rank that shares our memory has not joined yet.
fn has_yet_to_join(paths: &Paths, peer: Peer) -> bool {
    let ranks = paths.ranks();
    ranks.is_some_and(|ranks| ranks.has_yet_to_join(peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_begin_at_one_processor_need_no_tree() {
        let mut locations = Locations::default();
        let ranks = [(0, Some(3)), (1, None), (0, Some(3))];
        let found = locations.of(ranks.into_iter());
        let hosts: Vec<u32> = found.iter().map(|s| s.host).collect();
        assert_eq!(hosts, [0, 1, 0]);
        assert!(found.iter().all(|s| (s.package, s.core) == (0, 0)));
        assert!(locations.tree.is_none());
    }
}
