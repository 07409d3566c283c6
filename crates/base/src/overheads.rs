//! Costs of the library's code and the kernel, added to the calibration of a host. Protocols and
//! collectives are priced with these numbers. They are not measured; they are the values of the
//! machine in `docs/decisions.md#raw-path`.

/// Cost that the ring adds to a frame beyond the cache line transfer, nanoseconds.
pub const RING: f64 = 25.0;
/// A frame over TCP: system calls of both sides, and the loopback interface. Nanoseconds.
pub const TCP_FRAME: f64 = 4_200.0;
/// A byte over TCP within a host: two copies by the kernel. Nanoseconds.
pub const TCP_BYTE: f64 = 0.12;
/// Bytes that may always be in flight to a peer before it asks for them.
pub const WINDOW: u64 = 256 << 10;
/// Time from a send over the loopback interface until its receiver begins, in addition to the work
/// of both, nanoseconds.
pub const LOOPBACK: f64 = 1_200.0;
