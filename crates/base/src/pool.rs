//! The slots of shared memory that long payload goes through, as its path, the measurement of a host
//! and the prices of collectives know them.

/// Bytes of a slot: the longest piece of a long payload, and what a receiver waits for before it
/// begins to copy.
pub const SLOT: usize = 8 << 10;

/// A processor that reads a slot fetches ahead beyond its end, and what lies there must not be what
/// the sender writes at that moment: so slots are taken at such distances. Not so while a sender
/// streams past the caches: there the reader gains by fetching ahead.
pub const APART: usize = 3;
