//! The numbers of the UDP path, in one place, and where they come from. Those of the protocol are
//! [`kw_core::reliable::Params`].

use kw_core::reliable::Params;

/// What may be set otherwise by an experiment.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The protocol's numbers.
    pub params: Params,
    /// Bytes asked for as receive buffer of the socket, which all peers share; the system may grant less
    /// (`net.core.rmem_max`).
    pub receive_buffer: usize,
    /// Smallest and largest window of one peer, whatever the system grants.
    pub window: (u64, u64),
    /// Most bytes handed to the system in one call: a packet of the network layer is at most 64 KB with its headers (IPv6: 48 bytes).
    pub batch: usize,
    /// Calls for receiving before it is the turn of sending.
    pub turns: u32,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            params: Params::default(),
            receive_buffer: 4 << 20,
            window: (128 << 10, 1 << 20),
            batch: 65_487,
            turns: 8,
        }
    }
}
