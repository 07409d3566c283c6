//! Two ranks that share memory, in one process.

use kw_base::Peer;
use kw_path::ShmPath;
use kw_path::shm::Local;
use std::time::Duration;

/// Ranks 0 and 1.
pub fn pair() -> [ShmPath; 2] {
    let local = |me| Local {
        me: Peer(me),
        peers: vec![Peer(0), Peer(1)],
    };
    let key = [5; 32];
    let lead = ShmPath::lead(&local(0)).expect("memory and a socket");
    let address = lead.address();
    let joining = std::thread::spawn(move || ShmPath::join(&local(1), &key, &address));
    let first = lead.serve(&key, Duration::from_secs(100)).expect("joined");
    [first, joining.join().expect("no panic").expect("served")]
}
