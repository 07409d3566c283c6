//! How much may be in flight: a trait, and its default implementation.

mod lan;

pub use lan::Lan;

use kw_base::Tick;
use std::time::Duration;

/// Events of packets, reported by [`super::Conn`]; bytes are those of whole datagrams.
pub trait Congestion: std::fmt::Debug + Send {
    /// Packets with this many bytes were acknowledged. `limited`: the window had been full, so a
    /// larger one would have been used.
    fn on_acked(&mut self, now: Tick, bytes: u64, rtt: Duration, limited: bool);
    /// Packets with this many bytes were lost, the newest of them sent at `sent`.
    fn on_lost(&mut self, now: Tick, bytes: u64, sent: Tick);
    /// The network has marked a packet that was sent at `sent` (ECN).
    fn on_marked(&mut self, now: Tick, sent: Tick);
    /// All packets of a long time were lost (RFC 9002, 7.6).
    fn on_collapse(&mut self, now: Tick);
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
}
