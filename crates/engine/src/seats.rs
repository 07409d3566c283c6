//! Where the ranks of the job run, as far as this rank knows: the hosts of all, the processors of
//! those that share its memory. For placing virtual topologies (`kw_types::comm::reorder`).

use crate::engine::Engine;
use kw_base::Peer;
use kw_base::sync::thread;
use kw_sys::topology::Tree;
use kw_types::comm::reorder::Seat;

impl Engine {
    /// The first processor of a rank of this host, as its card says. A rank joins before it leaves
    /// MPI_Init; until it has, we wait, so that all read the same.
    fn cpu(&mut self, peer: Peer) -> Option<usize> {
        while self.paths.has_yet_to_join(peer) {
            self.progress();
            thread::yield_now();
        }
        self.paths.cpu(peer)
    }

    /// The seats of these ranks, in their order. The machine's tree is read only when ranks of this
    /// host begin at different processors.
    pub fn seats(&mut self, peers: &[Peer]) -> Vec<Seat> {
        let cpus: Vec<Option<usize>> = peers.iter().map(|&p| self.cpu(p)).collect();
        let mut known = cpus.iter().flatten();
        let first = known.next();
        let apart = known.any(|c| Some(c) != first);
        let tree = apart.then(|| self.tree.get_or_insert_with(Tree::read).clone());
        let place = |cpu: Option<usize>| tree.as_ref()?.place(cpu?);
        let hosts = self.hosts();
        let seat = |(&peer, cpu): (&Peer, Option<usize>)| {
            let (package, core) = place(cpu).unwrap_or_default();
            Seat {
                host: hosts[peer.idx()],
                package,
                core,
            }
        };
        peers.iter().zip(cpus).map(seat).collect()
    }
}
