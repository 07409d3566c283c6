//! Whether any sent data may still be in flight: for the analysis of hangs.

use super::peers::{Peers, Slot};
use super::socket::Socket;
use super::stream::Stream;

impl Peers {
    /// Whether the kernels of all peers have all that was sent to them. Queries the system about
    /// each connection.
    pub fn are_quiet(&mut self) -> bool {
        let peers: Vec<_> = self.lists().live.iter().collect();
        let quiet = |peer| match self.slot_mut(peer) {
            Slot::Up(link) => matches!(link.unacked().1.is_acknowledged(), Ok(true)),
            // Data that a broken connection may not have delivered is sent again over the next one.
            Slot::Idle(Some(stream)) => is_done(stream),
            Slot::Dialing(dialing) => is_done(&dialing.stream),
            Slot::Idle(None) | Slot::Gone(_) => true,
        };
        peers.into_iter().all(quiet)
    }
}

fn is_done(stream: &Stream) -> bool {
    stream.is_flushed() && stream.unacked().len() == 0
}
