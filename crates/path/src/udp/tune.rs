//! The numbers of the UDP path, in one place, and their sources. Those of the protocol are
//! [`kw_proto::reliable::Params`].

use kw_proto::reliable::Params;
use std::time::Duration;

/// Values that an experiment may change.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The protocol's numbers.
    pub params: Params,
    /// Bytes asked for as receive buffer of the socket, which all peers share; the system may grant
    /// less (`net.core.rmem_max`).
    pub receive_buffer: usize,
    /// Smallest and largest window of one peer, whatever the system grants.
    pub window: (u64, u64),
    /// Most bytes handed to the system in one call: a packet of the network layer is at most 64 KB,
    /// and one that is longer than a shaped link takes at once (56 KB in the host lab) is cut up by
    /// the host's CPUs.
    pub batch: usize,
    /// Time between two attempts to send data that the socket had no room for: a datagram of 1500
    /// bytes at 1 Gb/s takes 12 us.
    pub retry: Duration,
    /// Calls for receiving before it is the turn of sending.
    pub turns: u32,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            params: Params::default(),
            receive_buffer: 4 << 20,
            window: (128 << 10, 1 << 20),
            batch: 56_000,
            retry: Duration::from_micros(50),
            turns: 8,
        }
    }
}
