//! The numbers of the protocol, in one place, and their sources.

use std::time::Duration;

/// Parameters that an experiment may change. Sender and receiver need not agree on any of them.
#[derive(Clone, Debug)]
pub struct Params {
    /// Bytes of the longest datagram (payload of UDP); agreed upon by the handshake.
    pub datagram: usize,
    /// Bytes beyond the next one in line that the receiver takes: what its socket can hold.
    pub window: u64,
    /// Bytes that may be sent before the receiver has said how many it takes.
    pub first_limit: u64,
    /// Packets after which an acknowledgement is due. RFC 9000, 13.2.2 says two; a sender here says
    /// which packet it waits for, so the others only have to keep its list short. More than a
    /// message of 64 KB has: its acknowledgement rides on the answer.
    pub ack_every: u32,
    /// Longest time that an acknowledgement is held back (RFC 9000: `max_ack_delay`, 25 ms there):
    /// it may ride on an answer.
    pub ack_delay: Duration,
    /// Packets that must pass one before it is lost (RFC 9002, 6.1.1: `kPacketThreshold`).
    pub reordering: u64,
    /// Shortest time that a timer measures (RFC 9002, 6.1.2: `kGranularity`, 1 ms there).
    pub granularity: Duration,
    /// Round trip before the first sample (RFC 9002, 6.2.2: `kInitialRtt`, 333 ms there).
    pub first_rtt: Duration,
    /// Shortest time, beyond round trip and held acknowledgements, before the first question.
    pub probe_least: Duration,
    /// Longest time before the first probe. A local network answers faster; a rank that computes
    /// does not, and one packet is the price of an unanswered probe.
    pub probe_first: Duration,
    /// Longest time between two probes, however many remained unanswered.
    pub probe_last: Duration,
    /// Packets of the first congestion window. RFC 9002, 7.2 says ten, for the internet.
    pub first_window: u64,
    /// Packets of the smallest (RFC 9002, 7.2: two).
    pub least_window: u64,
    /// Bytes that may leave at once (see `pacing`): what one system call sends.
    pub burst: u64,
    /// Whether the network is asked to mark packets instead of dropping them (ECN).
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            datagram: 1472,
            window: 1 << 20,
            first_limit: 128 << 10,
            ack_every: 64,
            ack_delay: Duration::from_millis(1),
            reordering: 3,
            granularity: Duration::from_micros(500),
            first_rtt: Duration::from_millis(1),
            probe_least: Duration::from_micros(150),
            probe_first: Duration::from_millis(20),
            probe_last: Duration::from_millis(250),
            first_window: 32,
            least_window: 4,
            burst: 128 << 10,
            ecn: true,
        }
    }
}
