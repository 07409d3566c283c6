//! Helpers of several tests.

use kw_base::Peer;
use kw_path::Path;

/// Paths of ranks 0, 1, ... that have told each other their addresses.
pub fn introduced<P: Path>(mut paths: Vec<P>) -> Vec<P> {
    let addresses: Vec<_> = paths.iter().map(|p| p.address()).collect();
    for (me, path) in paths.iter_mut().enumerate() {
        for (peer, address) in addresses.iter().enumerate().filter(|(p, _)| *p != me) {
            path.introduce(Peer(peer as u32), address)
                .expect("an own address");
        }
    }
    paths
}
